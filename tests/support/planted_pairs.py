"""Results folders of captioners with random verdicts, for tests of what compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from planted_runs import VERDICTS, PlantedCaption, Question, record_of, write_run

TASKS: Final = ("vdc_camera", "vidcapbench_ae", "vcapsbench", "capquiz", "msvd_eval_ref_only")
"""A task of each benchmark."""
GROUPS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "vdc": {"aspects": ("camera",), "categories": ("zoom", "pan")},
    "vidcapbench": {
        "dimensions": ("video content", "video motion"),
        "sub_categories": ("events", "object motion"),
    },
    "vcapsbench": {
        "groups": ("Content & Entity", "Color & Lighting"), "categories": ("action", "color"),
    },
    "capquiz": {"groups": ("Descriptive", "Inferential"), "types": ("Entity", "Causal Reasoning")},
    "msvd_eval": {},
}  # fmt: skip
"""Benchmark to the sections and groups that questions are in by turns."""

Drawn = NDArray[np.int64]
"""Shape (n_runs, n_videos, n_questions): places in the benchmark's :data:`VERDICTS`."""


def drawn(task: str, seed: int, *, n_videos: int = 30, n_runs: int = 2, good: float = 0.5) -> Drawn:
    """Random verdicts, those of a video alike.

    Args:
        task: Any of ours.
        seed: Of the verdicts.
        n_videos: How many.
        n_runs: Judge runs.
        good: How often the best verdict is drawn, in [0, 1].
    """
    generator = np.random.default_rng(seed)
    benchmark = benchmark_of_task(task).name
    n_verdicts = len(VERDICTS[benchmark])
    n_questions = 1 if benchmark == "msvd_eval" else 4
    shape = n_runs, n_videos, n_questions
    is_good = generator.random(shape) < good + generator.uniform(-0.3, 0.3, (1, n_videos, 1))
    return np.where(is_good, 0, generator.integers(1, n_verdicts, shape))


def records(task: str, verdicts: Drawn, *, words: int = 6, **changes: str) -> list[CaptionRecord]:
    """The records of captions with these verdicts.

    Args:
        task: Any of ours.
        verdicts: As :func:`drawn`.
        words: Of each caption.
        changes: What :func:`record_of` takes.
    """
    benchmark = benchmark_of_task(task).name
    labels, sections = VERDICTS[benchmark], GROUPS[benchmark]
    return [
        record_of(
            task,
            PlantedCaption(
                f"video_{video:03}.mp4",
                [
                    Question(
                        f"What of {q}?",
                        {section: names[q % len(names)] for section, names in sections.items()},
                    )
                    for q in range(verdicts.shape[2])
                ],
                [[labels[place] for place in run[video]] for run in verdicts],
                text=" ".join(["word"] * words),
            ),
            **changes,
        )
        for video in range(verdicts.shape[1])
    ]


def plant(folder: Path, task: str, verdicts: Drawn, **options: Any) -> Path:
    """Write a run with these verdicts; the folder."""
    write_run(folder, {task: records(task, verdicts, **options)})
    return folder
