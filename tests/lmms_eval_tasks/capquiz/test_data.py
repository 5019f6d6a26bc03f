"""CapQuiz's file: checked in full, every problem named by its line and field."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import (
    CAPQUIZ,
    DOMAINS,
    GROUP_OF,
    SUPER_OF,
    read_videos,
)
from lmms_eval_captions.lmms_eval_tasks.sample import render, sample_root

ROW: dict[str, Any] = {
    "video": "a.mp4",
    "domain": "Nature",
    "questions": [
        {
            "category": "Entity",
            "question": "What is shown?",
            "options": ["A cat", "A dog", "A cow", "A hen", "A pig"],
            "answer": "A dog",
        }
    ],
}


def _settings(root: Path) -> Settings:
    return read_settings({"LMMS_CAPTIONS_DATA": str(root)})


def _write(root: Path, text: str) -> Settings:
    path = root / "capquiz" / "capquiz.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return _settings(root)


def _row(field: str, value: object) -> dict[str, Any]:
    """The good row with one field of its own, or of its question, replaced or (...) removed."""
    row = copy.deepcopy(ROW)
    target = row["questions"][0] if field.startswith(".") else row
    if value is ...:
        del target[field.removeprefix(".")]
    else:
        target[field.removeprefix(".")] = value
    return row


def test_the_taxonomies_are_the_papers() -> None:
    """Ten question types, and 24 domains in 5 super-categories."""
    assert len(GROUP_OF) == 10
    assert [len(names) for names in DOMAINS.values()] == [5, 3, 7, 3, 6]
    assert len(SUPER_OF) == 24


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        pytest.param("video", ..., "line 7, video: expected text, got None", id="no-video"),
        pytest.param("video", " ", "line 7, video: expected text, got ' '", id="blank-video"),
        pytest.param("domain", 3, "line 7, domain: expected text, got 3", id="domain-number"),
        pytest.param("questions", ..., "line 7, questions: expected a list", id="no-questions"),
        pytest.param("questions", [], "line 7, questions: expected a list", id="empty-questions"),
        pytest.param("questions", ["?"], "line 7, questions[0]: expected an object", id="text"),
        pytest.param(".category", " ", "questions[0].category: expected text", id="category"),
        pytest.param(".category", ..., "questions[0].category: expected text", id="no-category"),
        pytest.param(".question", "", "questions[0].question: expected text", id="no-question"),
        pytest.param(".options", ["a"], "questions[0].options: expected 5 texts", id="one-option"),
        pytest.param(".options", list("aabcd"), "expected different texts", id="same-options"),
        pytest.param(".options", ["a", "A ", "b", "c", "d"], "different texts", id="like-options"),
        pytest.param(
            ".options", ["a", "b", "c", "d", "cannot be determined."], "none of them", id="unknown"
        ),
        pytest.param(".options", ["a", "b", "c", "d", 5], "expected 5 texts", id="number-option"),
        pytest.param(".answer", "A bird", "questions[0].answer: expected one of the", id="answer"),
        pytest.param(".answer", "B", "questions[0].answer: expected one of the", id="letter"),
        pytest.param(".answer", ..., "questions[0].answer: expected one of the", id="no-answer"),
    ],
)
def test_problems_name_their_line_and_field(
    field: str, value: object, expected: str, tmp_path: Path
) -> None:
    """A problem says where it is, what was expected and what came."""
    settings = _write(tmp_path, "\n" * 6 + json.dumps(_row(field, value)))
    with pytest.raises(DataError, match=r"capquiz\.jsonl, line 7, ") as caught:
        read_videos(settings)
    assert expected in str(caught.value)


def test_a_type_of_ones_own_is_kept_as_it_is_spelled_and_counts_in_no_group(
    tmp_path: Path, logged: list[str]
) -> None:
    """It has its own row, the paper's ten their group, and the log names it."""
    own = _row(".category", "Safety at  work")
    (tmp_path / "capquiz").mkdir()
    (tmp_path / "capquiz" / "capquiz.jsonl").write_text(json.dumps(own), "utf-8")
    [doc] = read_videos(_settings(tmp_path))
    [question] = CAPQUIZ.questions(doc)
    groups = CAPQUIZ.groups(doc, question, None)
    assert question.category == groups["types"] == "Safety at work"
    assert "groups" not in groups
    assert any("Safety at work (1)" in message for message in logged)


def test_a_video_that_is_there_twice_is_named(tmp_path: Path) -> None:
    """Both lines are told."""
    settings = _write(tmp_path, f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n")
    with pytest.raises(DataError, match=r"line 3, video: 'a\.mp4' is on line 1 already"):
        read_videos(settings)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("Causal Reasoning", "Causal Reasoning", id="as-in-the-paper"),
        pytest.param("Causal", "Causal Reasoning", id="without-reasoning"),
        pytest.param("intent & emotion reasoning", "Intent & Emotion Reasoning", id="lower-case"),
        pytest.param("entity", "Entity", id="descriptive"),
    ],
)
def test_question_types_get_the_papers_names(name: str, expected: str, tmp_path: Path) -> None:
    """Case and "Reasoning" do not matter."""
    videos = read_videos(_write(tmp_path, json.dumps(_row(".category", name))))
    questions: Any = videos[0]["questions"]
    assert questions[0]["category"] == expected


def test_without_local_data_the_error_says_that_it_is_not_released() -> None:
    """No hub has it: the text says so and names the file that can be scored."""
    with pytest.raises(DataError, match=r"announced and not released.*capquiz\.jsonl"):
        read_videos(read_settings({}))


def test_the_sample_passes_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every clip has its video and questions, with the right option at every place."""
    monkeypatch.setattr(render, "write_video", lambda _scene, path: path.write_bytes(b"video"))
    settings = _settings(sample_root(tmp_path))
    videos: Any = read_videos(settings)
    assert len(videos) == 12
    assert all(CAPQUIZ.video_path(settings, video).is_file() for video in videos)
    questions = [question for video in videos for question in video["questions"]]
    places = Counter(question["options"].index(question["answer"]) for question in questions)
    assert sorted(places) == [0, 1, 2, 3, 4]
    assert min(places.values()) > 10
