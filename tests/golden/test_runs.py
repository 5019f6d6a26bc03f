"""Golden outputs of whole runs: results, breakdowns, verdicts, the judging document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from golden import check, numbers
from planted_world import RUNS, World

every_run = pytest.mark.parametrize(
    ("captioner", "judge"), RUNS, ids=["-".join(run) for run in RUNS]
)


def _only(folder: Path, pattern: str) -> Path:
    (path,) = folder.rglob(pattern)
    return path


@every_run
def test_results(world: World, captioner: str, judge: str) -> None:
    """Every metric of every task and group, with its interval."""
    document = json.loads(_only(world.run(captioner, judge), "*_results.json").read_text())
    check(f"results-{captioner}-{judge}", numbers(document["results"]))


@every_run
def test_breakdowns(world: World, captioner: str, judge: str) -> None:
    """Every group of every task, with its interval."""
    paths = sorted(world.run(captioner, judge).rglob("*_breakdown_*.json"))
    documents = {
        path.stem.partition("_breakdown_")[2]: json.loads(path.read_text()) for path in paths
    }
    check(f"breakdowns-{captioner}-{judge}", {name: numbers(d) for name, d in documents.items()})


@every_run
def test_judging(world: World, captioner: str, judge: str) -> None:
    """Captions, questions, unscored, usage and cost of every task."""
    document = json.loads(_only(world.run(captioner, judge), "*_judging.json").read_text())
    tasks = {name: {**task, "breakdown": ""} for name, task in document["tasks"].items()}
    usage = {key: document["judging"][key] for key in ("calls", "tokens", "usd")}
    check(f"judging-{captioner}-{judge}", numbers({**tasks, "judging": usage}))


@every_run
def test_verdicts(world: World, captioner: str, judge: str) -> None:
    """Each verdict by task, video, metric, judge run and question."""
    verdicts: dict[str, dict[str, object]] = {}
    for path in sorted(world.run(captioner, judge).rglob("*_verdicts_*.parquet")):
        head = json.loads(pq.read_schema(path).metadata[b"lmms_eval_captions"])
        rows = pq.read_table(path).to_pylist()
        sources = {column: name for name, column in reversed(head["values"].items())}
        verdicts[head["task"]] = {
            row["video"]: {
                name: _values(rows, row["video"], column) for column, name in sources.items()
            }
            for row in rows
        }
    check(f"verdicts-{captioner}-{judge}", verdicts)


def _values(rows: list[dict[str, Any]], video: str, column: str) -> list[list[object]]:
    asked = [row for row in rows if row["video"] == video]
    runs = range(max((-1 if row["run"] is None else row["run"] for row in asked), default=-1) + 1)
    of_runs = [[row[column] for row in asked if row["run"] == run] for run in runs]
    return [
        [value for one in run for value in (one if column == "avg" else [one])] for run in of_runs
    ]
