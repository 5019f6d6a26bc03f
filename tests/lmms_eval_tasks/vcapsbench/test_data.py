"""VCapsBench's official file: read whole, odd strings counted, broken rows named."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.sample import render, sample_root
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import (
    GROUP_OF,
    GROUPS,
    VCAPSBENCH,
    parse_question,
    read_videos,
)


def _settings(root: Path) -> Settings:
    return read_settings({"LMMS_CAPTIONS_DATA": str(root)})


def _write(root: Path, *rows: object) -> Settings:
    path = root / "vcapsbench" / "VCapsBench_100KQA.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return _settings(root)


def test_there_are_21_categories_in_4_groups() -> None:
    """The taxonomy of section 3.2 and the tables: 7, 4, 5 and 5 categories."""
    assert [len(names) for names in GROUPS.values()] == [7, 4, 5, 5]
    assert len(GROUP_OF) == 21


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("color*Is it red?*yes", ("color", "Is it red?", "yes"), id="official"),
        pytest.param(" color * Is it red? * no ", ("color", "Is it red?", "no"), id="spaces"),
        pytest.param("color*Is it red?*Yes", ("color", "Is it red?", "yes"), id="upper-case"),
        pytest.param("color*Is it red?*yes.", ("color", "Is it red?", "yes"), id="full-stop"),
        pytest.param("color*Is it red?*yes\n", ("color", "Is it red?", "yes"), id="line-end"),
        pytest.param("Entity Size*Is it?*no", ("entity size", "Is it?", "no"), id="title-case"),
        pytest.param("shot_type*Is it?*no", ("shot type", "Is it?", "no"), id="underscore"),
        pytest.param("text*Is it 5* rated?*yes", ("text", "Is it 5* rated?", "yes"), id="star"),
        pytest.param("text*Is it **?*yes", ("text", "Is it **?", "yes"), id="stars"),
        pytest.param("mood*Is it sad?*no", ("mood", "Is it sad?", "no"), id="other-category"),
        pytest.param("Is it red?*yes", None, id="one-star"),
        pytest.param("color Is it red? yes", None, id="no-star"),
        pytest.param("color*Is it red?*", None, id="no-answer"),
        pytest.param("color*Is it red?*maybe", None, id="answer-off-the-menu"),
        pytest.param("color*Is it red?*unanswerable", None, id="gold-unanswerable"),
        pytest.param("color**yes", None, id="no-question"),
        pytest.param("*Is it red?*yes", None, id="no-category"),
        pytest.param("**", None, id="stars-alone"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="null"),
        pytest.param(["color", "Is it red?", "yes"], None, id="list"),
    ],
)
def test_official_strings(text: object, expected: tuple[str, str, str] | None) -> None:
    """The first star ends the category, the last one begins the answer; the rest is malformed."""
    question = parse_question(text)
    assert (question and tuple(question.values())) == expected


def test_malformed_strings_are_counted_and_reported(tmp_path: Path, logged: list[str]) -> None:
    """They are left out, each video knows how many it had, and the log says so with an example."""
    good = "color*Is it red?*yes"
    settings = _write(
        tmp_path,
        {"video_id": "a.mp4", "qa": [good, "nonsense", None]},
        {"video_id": "b.mp4", "qa": [good]},
        {"video_id": "c.mp4", "qa": ["nonsense"]},
        {"video_id": "d.mp4", "qa": []},
    )
    videos = read_videos(settings)
    assert [(v["video_id"], len(v["questions"]), v["n_malformed_in_file"]) for v in videos] == [
        ("a.mp4", 1, 3),
        ("b.mp4", 1, 3),
    ]
    assert any("3 of 5 strings" in line and "a.mp4: 'nonsense'" in line for line in logged)
    assert any("2 videos have no question" in line and "c.mp4, d.mp4" in line for line in logged)


def test_rows_of_one_video_are_taken_together(tmp_path: Path) -> None:
    """A video that is there twice is captioned once and asked everything."""
    row = {"video_id": "a", "qa": ["color*Is it red?*yes"]}
    videos = read_videos(
        _write(tmp_path, row, {"video_id": "a", "qa": ["count*Are there two?*no"]})
    )
    assert [question["category"] for question in videos[0]["questions"]] == ["color", "count"]
    assert len(videos) == 1


def test_a_category_that_the_paper_does_not_name_is_kept_and_reported(
    tmp_path: Path, logged: list[str]
) -> None:
    videos = read_videos(_write(tmp_path, {"video_id": "a", "qa": ["mood*Is it sad?*no"]}))
    assert videos[0]["questions"][0]["category"] == "mood"
    assert any("in no group of the paper: mood" in line for line in logged)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param({"qa": []}, "line 2, video_id: expected text", id="no-video"),
        pytest.param({"video_id": "a"}, "line 2, qa: expected a list", id="no-questions"),
        pytest.param({"video_id": 3, "qa": []}, "line 2, video_id: expected text", id="number"),
        pytest.param({"video_id": "a", "qa": "x"}, "qa: expected a list", id="text"),
    ],
)
def test_rows_of_another_shape_are_named(
    row: dict[str, object], message: str, tmp_path: Path
) -> None:
    """A row that is not official ends the run with its place and what was expected."""
    settings = _write(tmp_path, {"video_id": "b", "qa": ["color*Is it red?*yes"]}, row)
    with pytest.raises(DataError, match=message):
        read_videos(settings)


def test_the_sample_is_official_and_well_formed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every clip has its video and questions with both answers; none is malformed."""
    monkeypatch.setattr(render, "write_video", lambda _scene, path: path.write_bytes(b"video"))
    settings = _settings(sample_root(tmp_path))
    videos = read_videos(settings)
    assert len(videos) == 12
    assert not any(video["n_malformed_in_file"] for video in videos)
    assert all(
        VCAPSBENCH.video_path(settings, {"video_id": video["video_id"]}).is_file()
        for video in videos
    )
    questions = [question for video in videos for question in video["questions"]]
    assert {question["category"] for question in questions} <= set(GROUP_OF)
    assert min(Counter(question["answer"] for question in questions).values()) > 20
