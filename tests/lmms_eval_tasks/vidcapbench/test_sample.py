"""VidCapBench's part of the sample: official form, true answers, videos of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.sample import render, write_sample
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import (
    CATEGORIES,
    read_videos,
)
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.sample import automatic_pairs, human_pairs


def test_the_sample_is_read_like_the_official_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """Both subsets have known categories and videos; HE has motion and physical laws alone."""
    monkeypatch.setattr(render, "write_video", lambda _scene, path: path.write_bytes(b"video"))
    write_sample(tmp_path / "sample")
    settings = read_settings({"LMMS_CAPTIONS_DATA": str(tmp_path / "sample")})
    automatic, human = (read_videos(settings, subset) for subset in ("AE", "HE"))
    assert not any("WARNING" in line for line in logged)
    assert len(automatic) == len(human) == len(SCENES)
    assert all(video.pairs for video in automatic)
    assert len(SCENES) > sum(bool(video.pairs) for video in human) > 0
    assert all(
        VIDCAPBENCH.video_path(settings, {"video_dir": video.video_dir}).is_file()
        for video in automatic
    )
    found = {pair["primary_category"] for video in automatic for pair in video.pairs}
    assert found == set(CATEGORIES)
    found = {pair["primary_category"] for video in human for pair in video.pairs}
    assert found == {"video motion", "physical laws"}


@pytest.mark.parametrize(
    ("scene", "question", "answer"),
    [
        pytest.param(1, "How does the main object move?", "it moves to the right", id="motion"),
        pytest.param(1, "Where in the frame", "on the left", id="place"),
        pytest.param(2, "fall as gravity", "yes, it moves down", id="gravity"),
        pytest.param(3, "How many objects", "three", id="number"),
        pytest.param(4, "What does the camera do?", "the camera pans to the right", id="camera"),
        pytest.param(5, "background look like", "white and patterned with darker dots", id="dots"),
        pytest.param(7, "brightness", "it gets darker", id="light"),
    ],
)
def test_answers_follow_from_the_scene(scene: int, question: str, answer: str) -> None:
    """Hand-checked answers."""
    pairs = automatic_pairs(SCENES[scene - 1]) + human_pairs(SCENES[scene - 1])
    assert [pair["answer"] for pair in pairs if question in pair["question"]] == [answer]


def test_no_question_is_asked_twice_of_a_clip() -> None:
    """Within a subset, the questions of a clip differ."""
    for pairs_of in (automatic_pairs, human_pairs):
        for scene in SCENES:
            counts = Counter(pair["question"] for pair in pairs_of(scene))
            assert not counts or max(counts.values()) == 1
