"""Every task of every benchmark writes its breakdown, or says why there is none."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

TASKS = [(name, task) for name, record in all_benchmarks().items() for task in record.tasks]
CAPTIONS = ("A red circle moves to the right.", "A blue square.")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def offline(bench: pytest.MonkeyPatch, sample: Path) -> None:
    """The sample's data and the offline judge."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")


def _judged(name: str, task: str) -> list[dict[str, PendingRecord]]:
    benchmark = all_benchmarks()[name]
    docs = benchmark.read(data_settings(), benchmark.tasks[task])
    hooks = hooks_of(benchmark)
    return [
        hooks.process_results(doc, [caption]) for doc, caption in zip(docs, CAPTIONS, strict=False)
    ]


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("name", "task"), TASKS)
def test_every_task_writes_its_breakdown(name: str, task: str, tmp_path: Path) -> None:
    """The file has the task's name, the headline's number, and counts every question."""
    benchmark = all_benchmarks()[name]
    judged = _judged(name, task)
    items = [caption["breakdown"] for caption in judged]
    path = hooks_of(benchmark).aggregate_breakdown(items, Namespace(output_path=str(tmp_path)))
    written = json.loads(Path(path).read_text(encoding="utf-8"))
    assert (written["task"], Path(path).parent) == (task, tmp_path)
    records = [caption[benchmark.headline].wait() for caption in judged]
    runs = len(written["runs"])
    counts = [record["n_questions"] for record in records if isinstance(record["n_questions"], int)]
    assert written["overall"]["all"]["n_questions"] * runs == sum(counts) > 0
    score = hooks_of(benchmark).aggregate(benchmark.headline)(records)
    assert written["overall"]["all"][benchmark.headline] == pytest.approx(score)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("name", "task"), TASKS)
def test_a_breakdown_that_cannot_be_written_says_why(name: str, task: str, tmp_path: Path) -> None:
    """Where results go is no folder: the value names it and what to do; the scores stand."""
    (tmp_path / "taken").write_text("no folder")
    items = [caption["breakdown"] for caption in _judged(name, task)]
    place = Namespace(output_path=str(tmp_path / "taken"))
    value = hooks_of(all_benchmarks()[name]).aggregate_breakdown(items, place)
    assert value.startswith(f"none: {tmp_path / 'taken'} cannot be written to (")
    assert value.endswith("; mend that and run again")
