"""Breakdowns: every group's own numbers, over runs, with what is unscored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from typing import Any

from breakdowns import plain
from lmms_eval_captions.lmms_eval_tasks.benchmark import Metric, over_questions
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.breakdown import Breakdown, break_down
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import VCAPSBENCH


def _share(verdicts: Sequence[bool | None]) -> float:
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * sum(scored) / len(scored) if scored else nan


SHARE: Any = VCAPSBENCH.variant(
    metrics={"share": Metric(score=over_questions(_share))},
    headline="share",
    sections={"kinds": ("b", "a")},
)


def _caption(kinds: list[str | None], *runs: list[bool | None]) -> CaptionRecord:
    return CaptionRecord(
        task="t", video_id="v", judge="j", runs=len(runs), protocol=1, extras={},
        n_questions=len(kinds), n_unscored=0, values={"share": list(runs)},
        groups={"kinds": [kinds] * len(runs)},
    )  # fmt: skip


def _down(*captions: CaptionRecord) -> Breakdown:
    of_videos = [replace(caption, video_id=f"v{n}") for n, caption in enumerate(captions)]
    return {
        section: {name: plain(figures) for name, figures in groups.items()}
        for section, groups in break_down(SHARE, of_videos).items()
    }


def test_groups_are_micro_averages_in_the_given_order() -> None:
    """Questions weigh the same whatever caption they are of; unknown groups come last."""
    breakdown = _down(
        _caption(["a", "b", "z"], [True, False, True]),
        _caption(["a"], [None]),
        _caption(["a"], [False]),
    )
    assert breakdown == {
        "overall": {"all": {"share": 50.0, "n_questions": 5, "n_unscored": 1}},
        "kinds": {
            "b": {"share": 0.0, "n_questions": 1, "n_unscored": 0},
            "a": {"share": 50.0, "n_questions": 3, "n_unscored": 1},
            "z": {"share": 100.0, "n_questions": 1, "n_unscored": 0},
        },
    }
    assert list(breakdown["kinds"]) == ["b", "a", "z"]


def test_groups_that_the_benchmark_does_not_name_come_by_size() -> None:
    """The largest first; a question without a group counts overall alone."""
    breakdown = _down(_caption(["x", "y", "y", None, "a"], [True] * 5))
    assert list(breakdown["kinds"]) == ["a", "y", "x"]
    assert breakdown["overall"]["all"]["n_questions"] == 5


def test_runs_give_a_mean_and_a_deviation() -> None:
    """A run without a value leaves both; unscored questions add up over runs."""
    breakdown = _down(_caption(["a", "b"], [True, None], [False, None]))
    assert breakdown["kinds"] == {
        "b": {"share": None, "share_std": None, "n_questions": 1, "n_unscored": 2},
        "a": {"share": 50.0, "share_std": 50.0, "n_questions": 1, "n_unscored": 0},
    }
