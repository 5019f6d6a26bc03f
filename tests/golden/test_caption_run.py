"""``score FILE --tasks`` gives what ``lmms-eval --model caption_file`` gives, without lmms-eval."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden import check, numbers
from planted_world import TASKS, World

WITHOUT = ("lmms_eval", "torch", "datasets", "accelerate", "transformers")


@pytest.fixture(scope="module")
def output(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a captioner with an empty and a missing caption."""
    root = tmp_path_factory.mktemp("light")
    line = ["score", str(world.root / "beta.jsonl"), "--tasks", TASKS, "-o", str(root / "results")]
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({WITHOUT}))\n"
        "from lmms_eval_captions.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    env = {**world.env, "LMMS_CAPTIONS_CACHE": str(root / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program, *line, "--missing", "skip"],
        env={**os.environ, **env}, cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return root / "results"


def _only(folder: Path, pattern: str) -> Any:
    (path,) = folder.rglob(pattern)
    return json.loads(path.read_text())


def test_results_are_those_of_lmms_eval(output: Path) -> None:
    """Every metric of every task and group, with its standard error and interval."""
    check("results-beta-judge-a", numbers(_only(output, "*_results.json")["results"]))


def test_files_are_those_of_lmms_eval(output: Path, world: World) -> None:
    """Breakdowns, the judging document and verdicts, in a folder of the same name."""
    documents = {
        path.stem.partition("_breakdown_")[2]: json.loads(path.read_text())
        for path in sorted(output.rglob("*_breakdown_*.json"))
    }
    check("breakdowns-beta-judge-a", {name: numbers(doc) for name, doc in documents.items()})
    document = _only(output, "*_judging.json")
    tasks = {name: {**task, "breakdown": ""} for name, task in document["tasks"].items()}
    usage = {key: document["judging"][key] for key in ("calls", "tokens", "usd")}
    check("judging-beta-judge-a", numbers({**tasks, "judging": usage}))
    theirs = world.run("beta")
    for path in output.rglob("*_verdicts_*.parquet"):
        (same,) = theirs.rglob(f"*_verdicts_{path.stem.partition('_verdicts_')[2]}.parquet")
        assert _verdicts(path).equals(_verdicts(same))
        assert path.parent.name == same.parent.name


def test_sample_logs_are_those_of_lmms_eval(output: Path, world: World) -> None:
    """Captions, replies and verdicts, from which a report is made."""
    ours, theirs = _logs(output), _logs(world.run("beta"))
    assert ours.keys() == theirs.keys() != set()
    for task, path in ours.items():
        assert _samples(path) == _samples(theirs[task])


def _logs(folder: Path) -> dict[str, Path]:
    logs = folder.rglob("*_samples_*.jsonl")
    return {path.stem.partition("_samples_")[2]: path for path in logs}


def _samples(path: Path) -> list[dict[str, Any]]:
    """Samples by lmms-eval's number, without what it adds and whether a reply was stored."""
    samples = [json.loads(line) for line in path.read_text().splitlines()]
    for sample in samples:
        for item in sample.values():
            for judgement in item.get("judgements", ()) if isinstance(item, dict) else ():
                del judgement["cached"]
    theirs = ("token_counts", "doc_hash", "doc", "input", "resps", "arguments", "schema_version")
    ours = [{key: of[key] for key in of if key not in theirs} for of in samples]
    return sorted(ours, key=lambda sample: sample["doc_id"])


def _verdicts(path: Path) -> pa.Table:
    """Verdicts without tokens: of equal requests of two tasks, the first one has them."""
    table = pq.read_table(path)
    tokens = {"input_tokens", "output_tokens"} & set(table.column_names)
    return table.drop_columns(sorted(tokens)).replace_schema_metadata(None)
