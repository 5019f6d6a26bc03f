"""A real small model as the judge: whatever it says is read or unscored, and nothing is sent twice.

``make test-real`` runs it and installs the model first; no other target does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.protocols.capquiz import UNKNOWN
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR, read_scores
from lmms_eval_captions.judges.protocols.letters import LETTERS, read_choice
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.judges.protocols.vdc import read_match
from lmms_eval_captions.judges.protocols.vidcapbench import read_correctness
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from runs import ASPECTS, Run, environment, run_lmms_eval
from small_model import NAME, install
from vllm_server import VllmServer

pytestmark = pytest.mark.real

TASKS = (
    *(f"vdc_{aspect}" for aspect in ASPECTS),
    "vidcapbench_ae",
    "vidcapbench_he",
    "vcapsbench",
    "capquiz",
    "msvd_eval_ref_only",  # the other settings show pictures, and the model does not see
)
N_VIDEOS = os.environ.get("SMALL_MODEL_VIDEOS", "1")
"""Videos of each task, of the sample's 12; one makes 75 questions, with which two busy cores have
work for up to half an hour."""
RUN_S = 5400.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """The model behind a server of its own."""
    with VllmServer(install(), tmp_path_factory.mktemp("server") / "vllm.log") as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the runs, with the cache that they share."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def first(server: VllmServer, folder: Path) -> Run:
    """The run that asks."""
    return _run(server, folder, "first")


def test_a_small_model_is_read_or_unscored(first: Run, folder: Path) -> None:
    """Every task has its results, and every judgement is what its reply says or is unscored."""
    assert first.returncode == 0, first.log[-3000:]
    assert "Traceback" not in first.log
    assert "internal error" not in first.log
    options = _options(sample_root(folder / "cache"))
    for task in TASKS:
        judgements = _judgements(first, task)
        unscored = [judgement for judgement in judgements if judgement["reason"] is not None]
        assert judgements
        assert first.results[task]["unscored,none"] == len(unscored)
        for judgement in judgements:
            says = _says(task, judgement, options)
            if judgement["reason"] is None:
                assert says == _verdict(task, judgement), (task, judgement)
            else:
                assert "unreadable reply, asked 4 times" in judgement["reason"], (task, judgement)
                assert not _verdict(task, judgement), (task, judgement)
                assert says is None, (task, judgement)


def test_a_rerun_sends_nothing_to_the_server(server: VllmServer, first: Run, folder: Path) -> None:
    """A second run finds every reply in the store, the unreadable ones too, and scores alike."""
    n_requests = server.n_requests()
    assert n_requests > 0
    again = _run(server, folder, "again")
    assert again.returncode == 0, again.log[-3000:]
    assert server.n_requests() == n_requests
    for task in TASKS:
        told, told_again = (_judgements(run, task) for run in (first, again))
        for judgement in (*told, *told_again):
            del judgement["cached"]
        assert told_again == told


def _run(server: VllmServer, folder: Path, name: str) -> Run:
    captions = sample_root(folder / "cache") / "vdc" / "captions.jsonl"
    env = environment(
        folder / "cache",
        LMMS_CAPTIONS_JUDGE=NAME,
        LMMS_CAPTIONS_JUDGE_URL=server.url,
        LMMS_CAPTIONS_JUDGE_CONCURRENCY="4",
        LMMS_CAPTIONS_JUDGE_TIMEOUT="900",
    )
    return run_lmms_eval(
        folder / name,
        "--model", "caption_file", "--model_args", f"path={captions}",
        "--tasks", ",".join(TASKS), "--limit", N_VIDEOS,
        env=env,
        timeout_s=RUN_S,
    )  # fmt: skip


def _judgements(run: Run, task: str) -> list[dict[str, Any]]:
    """Every judgement of a task with its video, from the samples."""
    items = (
        next(v for v in sample.values() if isinstance(v, dict) and "judgements" in v)
        for sample in run.samples(task)
    )
    return [
        {**judgement, "video_id": item["video_id"]}
        for item in items
        for judgement in item["judgements"]
    ]


def _verdict(task: str, judgement: Mapping[str, Any]) -> object:
    """What a judgement counts as, empty where it does not count."""
    if task.startswith("vdc"):
        return judgement["verdict"] and (judgement["verdict"], judgement["score"])
    names = {"vcapsbench": "predicted_answer", "capquiz": "choice", "msvd_eval_ref_only": "numbers"}
    return judgement[names.get(task, "verdict")]


def _says(
    task: str, judgement: Mapping[str, Any], options: Mapping[tuple[str, str], tuple[str, ...]]
) -> object:
    """What the reply of a judgement says, read once more; ``None`` is nothing."""
    if "no answer from the caption" in (judgement["reason"] or ""):
        return None
    # Samples do not say how a reply ended: one that was unreadable may have been cut.
    reply = Reply(judgement["reply"], "stop" if judgement["reason"] is None else "length")
    if task.startswith("vdc"):
        return read_match(reply)
    if task == "vcapsbench":
        return read_answer(reply)
    if task == "capquiz":
        menu = options[judgement["video_id"], judgement["question"]]
        letter = read_choice(reply, menu)
        return letter and menu[LETTERS.index(letter)]
    if task == "msvd_eval_ref_only":
        scores = read_scores(reply, ACCR, lowest=0, highest=100)
        return scores and {name: float(written.text) for name, written in scores.items()}
    return read_correctness(reply)


def _options(root: Path) -> dict[tuple[str, str], tuple[str, ...]]:
    """The options of each of CapQuiz's questions, by video and question."""
    rows = map(json.loads, (root / "capquiz" / "capquiz.jsonl").read_text("utf-8").splitlines())
    return {
        (row["video"], question["question"]): (*question["options"], UNKNOWN)
        for row in rows
        for question in row["questions"]
    }
