"""Which of three captioners or more is best, and whether that is beyond chance."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from planted_pairs import TASKS, drawn, plant


def _compared(
    capsys: pytest.CaptureFixture[str], folders: list[Path], *more: str
) -> tuple[Any, str]:
    """The first task as JSON, and its sentences in one line."""
    capsys.readouterr()
    assert main(["compare", *map(str, folders), "--format", "json", *more]) == 0
    one = json.loads(capsys.readouterr().out)["compared"][0]
    return one, " ".join(one["summary"])


@pytest.mark.parametrize("task", TASKS)
def test_the_best_is_named_wherever_its_folder_stands(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its lead is the same whichever captioner the others are compared with."""
    goods = {"poor": 0.3, "best": 0.95, "fair": 0.5}
    folders = [
        plant(tmp_path / name, task, drawn(task, seed, n_videos=40, good=good))
        for seed, (name, good) in enumerate(goods.items())
    ]
    leads = []
    for order in (folders, folders[::-1], [folders[1], folders[0], folders[2]]):
        one, told = _compared(capsys, order)
        assert "Best of the 3 is best on " in told
        leads.append(one["lead"])
    assert leads[0]["is_real"]
    assert [ahead["captioner"] for ahead in leads[0]["over"]] == ["fair", "poor"]
    for lead in leads:
        assert [{**ahead, "other": 0} for ahead in lead["over"]] == [
            {**ahead, "other": 0} for ahead in leads[0]["over"]
        ]


def test_its_p_values_are_corrected_over_all_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each pair by itself has an uncorrected p-value; Holm's of all of them is the lead's."""
    task = "vcapsbench"
    folders = [
        plant(tmp_path / str(seed), task, drawn(task, seed, n_videos=40, good=0.5 + 0.05 * seed))
        for seed in range(4)
    ]
    lead = _compared(capsys, folders)[0]["lead"]
    p_values: dict[frozenset[str], float] = {}
    for a, b in combinations(folders, 2):
        one, _ = _compared(capsys, [a, b])
        assert one["lead"] is None
        row = next(row for row in one["rows"] if row["difference"] is not None)
        p_values[frozenset((a.name, b.name))] = row["p"]
    ordered = sorted(p_values, key=lambda pair: p_values[pair])
    largest, expected = 0.0, {}
    for rank, pair in enumerate(ordered):
        largest = max(largest, min(1.0, (6 - rank) * p_values[pair]))
        expected[pair] = largest
    for ahead in lead["over"]:
        pair = frozenset((lead["captioner"], ahead["captioner"]))
        assert ahead["p_value"] == pytest.approx(expected[pair])
        assert ahead["is_real"] == (expected[pair] < 0.05)


def test_none_is_called_best_where_another_cannot_be_told_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that cannot be told from the one with the best number are named, others are not."""
    task = "vcapsbench"
    goods = {"a": 0.6, "b": 0.6, "poor": 0.1}
    folders = [
        plant(tmp_path / name, task, drawn(task, seed, n_videos=40, good=good))
        for seed, (name, good) in enumerate(goods.items())
    ]
    one, told = _compared(capsys, folders)
    first = one["lead"]["captioner"]
    other = "b" if first == "a" else "a"
    assert "Which of the 3 is best on ar of vcapsbench is not certain" in told
    assert f"{first} leads, and {other} may be as good: {first} less" in told
    assert not one["lead"]["is_real"]
    same = [plant(tmp_path / f"same{n}", task, drawn(task, 7)) for n in range(3)]
    assert "Which of the 3 is best" in _compared(capsys, same)[1]
