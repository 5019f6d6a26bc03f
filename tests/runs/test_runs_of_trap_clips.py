"""Whole runs of lmms-eval over folders in which hostile files stand among good clips."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import pytest

import hostile_clips
from lmms_eval_captions.lmms_eval_tasks.sample import write_sample
from runs import environment, run_lmms_eval

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.nightly

TASKS = ("vdc_detailed", "vidcapbench_ae", "vcapsbench", "capquiz")
BAD = ("sample_02", "sample_04", "sample_05", "sample_06")

CAPTIONER = """
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.video.sampling import Uniform


class Words(Captioner):
    sampling = Uniform(4)

    def caption(self, batch):
        return ["A red circle moves to the right." for job in batch.jobs]
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The sample; of each benchmark's clips four are traps, and one aborts decord."""
    root = tmp_path / "data"
    write_sample(root)
    for videos in {clip.parent for clip in root.rglob("*.mp4")}:
        for name in (*BAD, "sample_03"):
            (videos / f"{name}.mp4").unlink()
        (videos / "sample_02.mp4").write_text("ffconcat version 1.0\nfile sample_02.mp4\n")
        hostile_clips.endless_repeats(videos / "sample_03.mp4")
        hostile_clips.unknown_codec(videos / "sample_04.mp4")
        os.mkfifo(videos / "sample_05.mp4")
        (videos / "sample_06.mp4").symlink_to("/dev/zero")
    return root


@pytest.mark.parametrize("model", ["caption_baseline", "caption_custom"])
def test_bad_clips_cost_their_own_questions_alone(data: Path, tmp_path: Path, model: str) -> None:
    """The run ends well and has results; what is shown by no readable clip is unscored."""
    (tmp_path / "words.py").write_text(CAPTIONER)
    arguments = ("--model_args", f"class={tmp_path}/words.py:Words")
    run = run_lmms_eval(
        tmp_path / "out",
        *("--model", model, "--tasks", ",".join(TASKS)),
        *(arguments if model == "caption_custom" else ()),
        env=environment(
            tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical", LMMS_CAPTIONS_DATA=str(data)
        ),
    )
    assert run.returncode == 0, run.log
    for task in TASKS:
        numbers = [
            value
            for name, value in run.results[task].items()
            if name.endswith(",none") and isinstance(value, int | float)
        ]
        assert any(not math.isnan(number) for number in numbers), (task, run.results[task])
        for sample in run.samples(task):
            caption, text = sample["filtered_resps"], str(sample)
            is_bad = sample["unscored"]["video_id"].removesuffix(".mp4") in BAD
            assert (not caption) == is_bad, (task, sample["doc_id"], text[:500])
            assert ("expected a" in text) == is_bad, text[:2000]
