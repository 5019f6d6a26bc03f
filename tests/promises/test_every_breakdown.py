"""Every task of every benchmark writes its breakdown, or says why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from loguru import logger

from ended_runs import STAMP, Tracker, results_of, shown
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.run_end import complete
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
    """It lies with the results, says what was run, and counts every question of the headline."""
    benchmark = all_benchmarks()[name]
    judged = _judged(name, task)
    hooks_of(benchmark).aggregate_breakdown([caption["breakdown"] for caption in judged])
    tracker = Tracker(tmp_path)
    saved = tracker.save(results_of({task: shown(task, {"signature": "", "breakdown": ""})}))
    words = saved["lmms_eval_captions"]["tasks"][task]
    assert words["breakdown"] == f"{STAMP}_breakdown_{task}.json"
    written = tracker.read(f"breakdown_{task}")
    assert (written["task"], written["model"]) == (task, "a-model")
    assert written["started"].startswith("20")
    assert Path(written["captions"]).is_file()
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
    (tmp_path / "m").write_text("no folder")
    items = [caption["breakdown"] for caption in _judged(name, task)]
    hooks_of(all_benchmarks()[name]).aggregate_breakdown(items)
    results = results_of({task: shown(task, {"acc": 1.5, "signature": "", "breakdown": ""})})
    complete(results, folder=tmp_path / "m", stamp=STAMP)
    value = results["lmms_eval_captions"]["tasks"][task]["breakdown"]
    assert value.startswith(f"none: {tmp_path / 'm'} cannot be written to (")
    assert value.endswith("; mend that and run again")
    assert results["results"][task]["acc,none"] == 1.5


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("name", "task"), TASKS)
def test_verdicts_that_cannot_be_written_are_said_with_what_to_do(
    name: str, task: str, tmp_path: Path
) -> None:
    """The scores stand, and the log names the task and what mends it."""
    (tmp_path / "m").write_text("no folder")
    items = [caption["breakdown"] for caption in _judged(name, task)]
    hooks_of(all_benchmarks()[name]).aggregate_breakdown(items)
    results = results_of({task: shown(task, {"acc": 1.5, "signature": "", "breakdown": ""})})
    lines: list[str] = []
    sink = logger.add(lines.append, level="ERROR", format="{message}")
    complete(results, folder=tmp_path / "m", stamp=STAMP)
    logger.remove(sink)
    (line,) = (line for line in lines if line.startswith(f"verdicts of {task} cannot be written"))
    assert line.endswith("mend that and run again, nothing is asked twice\n")
    assert results["results"][task]["acc,none"] == 1.5
