"""Breakdowns: every group's own numbers, over runs, with what is unscored."""

from __future__ import annotations

from math import nan

import pytest

from lmms_eval_captions.lmms_eval_tasks.breakdown import (
    Breakdown,
    break_down,
    listed,
    table_of,
    verdicts_by_run,
)
from lmms_eval_captions.lmms_eval_tasks.judge_run import Record


def _share(verdicts: list[bool | None]) -> float:
    scored = [verdict for verdict in verdicts if verdict is not None]
    return 100.0 * sum(scored) / len(scored) if scored else nan


def _down(*items: Record) -> Breakdown:
    return break_down(
        items,
        groups=lambda item: [
            [("overall", "all"), ("kinds", str(kind))] for kind in listed(item, "kinds")
        ],
        metrics={"share": _share},  # type: ignore[dict-item]
        order={"overall": ["all"], "kinds": ["b", "a"]},
    )


def test_groups_are_micro_averages_in_the_given_order() -> None:
    """Questions weigh the same whatever caption they are of; unknown groups come last."""
    breakdown = _down(
        {"kinds": ["a", "b", "z"], "verdicts": [[True, False, True]]},
        {"kinds": ["a"], "verdicts": [[None]]},
        {"kinds": ["a"], "verdicts": [[False]]},
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


def test_runs_give_a_mean_and_a_deviation() -> None:
    """A run without a value leaves both; unscored questions add up over runs."""
    breakdown = _down({"kinds": ["a", "b"], "verdicts": [[True, None], [False, None]]})
    assert breakdown["kinds"] == {
        "a": {"share": 50.0, "share_std": 50.0, "n_questions": 1, "n_unscored": 0},
        "b": {"share": None, "share_std": None, "n_questions": 1, "n_unscored": 2},
    }


def test_captions_are_joined_within_each_run() -> None:
    """The verdicts of a run are those of all captions, in their order."""
    items: list[Record] = [{"verdicts": [[1, 2], [3, 4]]}, {"verdicts": [[5], [6]]}]
    assert verdicts_by_run(items) == [[1, 2, 5], [3, 4, 6]]
    assert verdicts_by_run([]) == []


def test_a_record_that_does_not_fit_is_an_error() -> None:
    """Verdicts and groups of different length never pair up silently."""
    with pytest.raises(ValueError, match="zip"):
        _down({"kinds": ["a"], "verdicts": [[True, False]]})
    with pytest.raises(TypeError, match="a list of verdicts"):
        verdicts_by_run([{"verdicts": None}])


def test_the_table_shows_every_group() -> None:
    """A line a group; what has no value is a dash."""
    text = table_of(_down({"kinds": ["a", "b"], "verdicts": [[True, None]]}), ["share"])
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == ["all", "100.00", "2", "1"]
    assert lines[3:] == [["b", "-", "1", "1"], ["a", "100.00", "1", "0"]]
