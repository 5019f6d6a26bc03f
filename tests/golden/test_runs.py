"""Golden outputs of whole runs: results, breakdowns, verdicts, the judging document."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

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
    for path in sorted(world.run(captioner, judge).rglob("*_verdicts_*.jsonl.gz")):
        _, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        task = path.name.partition("_verdicts_")[2].removesuffix(".jsonl.gz")
        captions = [json.loads(line) for line in lines]
        verdicts[task] = {caption["video_id"]: caption["values"] for caption in captions}
    check(f"verdicts-{captioner}-{judge}", verdicts)
