"""The judging document of groups: means of tasks, and pooled questions."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from lmms_eval_captions.lmms_eval_tasks.judging_document import judging_document
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedTask, ThisRun
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import VIDCAPBENCH

TASKS = ("vidcapbench_ae", "vidcapbench_he")
RIGHT = {
    "vidcapbench_ae": {"a": 4, "b": 1, "c": 3},
    "vidcapbench_he": {"a": 3, "b": 0, "d": 2},
}
"""Of each video's four questions, those answered rightly."""


def _record(task: str, video: str, n_right: int) -> CaptionRecord:
    verdicts = ["correct"] * n_right + ["wrong"] * (4 - n_right)
    return CaptionRecord(
        task=task,
        video_id=video,
        judge="j",
        runs=1,
        protocol=1,
        extras={},
        n_questions=4,
        n_unscored=0,
        n_dropped=int(video == "c"),
        reasons={"busy": 1} if video == "a" else {},
        no_caption="gone" if video in "cd" else None,
        values={name: [verdicts] for name in VIDCAPBENCH.metrics},
        fields={"n_tokens": 5},
    )


def _document(*, is_pooled: bool) -> dict[str, Any]:
    records = {
        task: [_record(task, *video) for video in videos.items()] for task, videos in RIGHT.items()
    }
    run = ThisRun()
    run.tasks = {task: FinishedTask(VIDCAPBENCH, records[task], None) for task in TASKS}
    if is_pooled:
        pooled = [record for task in TASKS for record in records[task]]
        run.tasks["both"] = FinishedTask(VIDCAPBENCH, pooled, None)
    results = {
        "results": {
            "both": {"alias": "both", "acc,none": 325 / 6, "acc_stderr,none": "N/A"},
            **{task: {"acc,none": 60.0, "con,none": None} for task in TASKS},
        },
        "group_subtasks": {"both": list(TASKS)},
    }
    words = {"signature": "judge:j"}
    ours = dict.fromkeys(("both", *TASKS), words)
    return judging_document(results, run, ours=ours, finished_s=run.started_s + 2)


def _influences() -> dict[str, float]:
    """What each video moves of the mean of both tasks, worked out without our functions."""
    moved: dict[str, float] = {}
    for videos in RIGHT.values():
        shares = {video: 100 * n_right / 4 for video, n_right in videos.items()}
        for video, share in shares.items():
            moved[video] = moved.get(video, 0.0) + (share - fmean(shares.values())) / 3 / 2
    return moved


def test_a_mean_of_tasks_has_an_error_that_knows_their_common_videos() -> None:
    """A video of both tasks counts once: it is hard or easy in both."""
    entry = _document(is_pooled=False)["tasks"]["both"]
    moved = np.array(list(_influences().values()))
    # Four videos, of which each task has three.
    expected = np.sqrt(3 / 2 * np.sum(moved**2))
    assert entry["metrics"]["acc"]["value"] == 325 / 6
    assert entry["metrics"]["acc"]["standard_error"] == pytest.approx(expected)
    assert (entry["benchmark"], entry["headline"]) == (None, "acc")


@pytest.mark.parametrize("is_pooled", [False, True], ids=["mean", "pooled"])
def test_a_group_counts_what_its_tasks_count(is_pooled: bool) -> None:
    """Captions, questions, reasons and missing captions add up; metrics that it lacks are left."""
    document = _document(is_pooled=is_pooled)
    entry = document["tasks"]["both"]
    assert list(document["tasks"]) == ["both", *TASKS]
    assert entry["tasks"] == list(TASKS)
    assert entry["captions"] == 6
    assert entry["unscored"] == {"n": 0, "of": 24, "reasons": {"busy": 2}}
    assert (entry["missing"], entry["dropped"]) == ({"n": 1, "of": 6}, {"n": 1, "of": 6})
    assert document["tasks"]["vidcapbench_ae"]["metrics"]["con"] == {
        "value": None,
        "standard_error": None,
        "ci_low": None,
        "ci_high": None,
    }
    assert document["seconds"] == 2


def test_a_caption_that_was_left_out_is_not_missing_as_well() -> None:
    """Two captions that are not there are not four."""
    records = [_record("vidcapbench_ae", "a", 3), _record("vidcapbench_ae", "d", 0)]
    left_out = replace(records[1], n_dropped=1, n_questions=0)
    run = ThisRun()
    run.tasks = {"vidcapbench_ae": FinishedTask(VIDCAPBENCH, [records[0], left_out], None)}
    results = {"results": {"vidcapbench_ae": {"acc,none": 60.0}}}
    ours = {"vidcapbench_ae": {"signature": "vidcapbench_ae|judge:j|dropped:1/2"}}
    entry = judging_document(results, run, ours=ours, finished_s=run.started_s + 2)["tasks"][
        "vidcapbench_ae"
    ]
    assert (entry["missing"], entry["dropped"]) == ({"n": 0, "of": 2}, {"n": 1, "of": 2})
