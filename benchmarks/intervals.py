"""Time of the intervals of a full VDC at the end of a run: 5 tasks of 1,027 videos.

    python benchmarks/intervals.py [--videos 1027] [--runs 1 3]

Verdicts are planted, of 19 questions a video; as in the official files, a task has about a thousand
categories, most of them with one question. The breakdowns of all five tasks have an interval for
each metric and category, the judging document for each task and the group ``vdc_score``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

import _support  # noqa: F401 - an import path
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import FinishedTask, ThisRun
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.breakdown import break_down
from lmms_eval_captions.lmms_eval_tasks.results.results_writer import judging_document
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC
from planted_runs import PlantedCaption, Question, record_of

N_QUESTIONS: Final = 19
_SPREAD: Final = 1.5
"""Exponent of the categories' sizes, by which a task has about a thousand, as the official ones."""


def full_vdc(n_videos: int, n_runs: int, *, seed: int = 0) -> dict[str, list[CaptionRecord]]:
    """Each task of VDC to the records of its captions, 4% of the verdicts flipped in each run.

    Args:
        n_videos: Of each task.
        n_runs: Judge runs.
        seed: Of the draws.
    """
    rng = np.random.default_rng(seed)
    return {task: _records(task, n_videos, n_runs, rng) for task in VDC.tasks}


def _records(
    task: str, n_videos: int, n_runs: int, rng: np.random.Generator
) -> list[CaptionRecord]:
    categories = rng.zipf(_SPREAD, size=(n_videos, N_QUESTIONS))
    truth = rng.random((n_videos, N_QUESTIONS)) < rng.beta(2, 3, size=(n_videos, 1))
    verdicts = truth ^ (rng.random((n_runs, n_videos, N_QUESTIONS)) < 0.04)
    aspect = task.removeprefix("vdc_")
    return [
        record_of(
            task,
            PlantedCaption(
                f"v{video}",
                [
                    Question(f"q{place}", {"aspects": aspect, "categories": f"c{category}"})
                    for place, category in enumerate(categories[video])
                ],
                [["yes" if verdict else "no" for verdict in run[video]] for run in verdicts],
            ),
        )
        for video in range(n_videos)
    ]


def seconds_of(n_videos: int, n_runs: int) -> dict[str, tuple[float, float]]:
    """Return wall-clock and CPU seconds of the end of such a run."""
    tasks = full_vdc(n_videos, n_runs)
    run = ThisRun()
    run.tasks = {task: FinishedTask(VDC, records, None) for task, records in tasks.items()}
    names = ("vdc_score", *tasks)
    results = {
        "results": {name: {f"{metric},none": 50.0 for metric in VDC.metrics} for name in names},
        "group_subtasks": {"vdc_score": list(tasks)},
    }
    ours: dict[str, dict[str, str]] = {name: {} for name in names}

    def breakdowns() -> None:
        for records in tasks.values():
            break_down(VDC, records)

    def document() -> None:
        judging_document(results, run, ours=ours, finished_s=run.started_s)

    return {"breakdowns": _timed(breakdowns), "judging document": _timed(document)}


def _timed(do: Callable[[], None]) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    do()
    return time.perf_counter() - clock, time.process_time() - processor


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each number of judge runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--videos", type=int, default=1027)
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 3])
    chosen = parser.parse_args(arguments)
    for n_runs in chosen.runs:
        seconds = seconds_of(chosen.videos, n_runs)
        shown = (
            f"{what} {clock:.1f} s ({own:.1f} s of processor)"
            for what, (clock, own) in seconds.items()
        )
        print(f"{n_runs} judge runs: {', '.join(shown)}")


if __name__ == "__main__":
    main()
