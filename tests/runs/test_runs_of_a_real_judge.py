"""A real small model as the judge: read or unscored, never silent, and no other model than named.

``make test-real`` runs it and installs the model first; no other target does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import UNKNOWN
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR, read_scores
from lmms_eval_captions.judges.protocols.letters import LETTERS, read_choice
from lmms_eval_captions.judges.protocols.vcapsbench_reading import read_answer
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.protocols.vidcapbench_reading import read_correctness
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from runs import Run, environment
from small_model import NAME, install
from stamped_runs import StampedRun, run_stamped
from vllm_server import SECOND_NAME, VllmServer

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
TIMEOUT_S = os.environ.get("SMALL_MODEL_TIMEOUT")
"""Time-out of the judge, in seconds, for a machine that the benchmarks' own is too short on."""
RUN_S = 5400.0
MOST_SILENT_S = 60.0


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
def first(server: VllmServer, folder: Path) -> StampedRun:
    """The run that asks, with as many requests in flight as a run has that says nothing of it."""
    return _run(server, folder, "first")


def test_a_small_model_is_read_or_unscored(first: StampedRun, folder: Path) -> None:
    """Every task has its results, and every judgement is what its reply says or is unscored."""
    run = first.run
    assert run.returncode == 0, run.log[-3000:]
    assert "Traceback" not in run.log
    assert "internal error" not in run.log
    options = _options(sample_root(folder / "cache"))
    for task in TASKS:
        judgements = _judgements(run, task)
        unscored = [judgement for judgement in judgements if judgement["reason"] is not None]
        assert judgements
        assert run.results[task]["unscored,none"] == len(unscored)
        assert f"|judge:{NAME}|" in run.signatures[task]
        for judgement in judgements:
            says = _says(task, judgement, options)
            if judgement["reason"] is None:
                assert says == _verdict(task, judgement), (task, judgement)
            else:
                assert "unreadable reply, asked 4 times" in judgement["reason"], (task, judgement)
                assert not _verdict(task, judgement), (task, judgement)
                assert says is None, (task, judgement)


def test_no_minute_is_silent(first: StampedRun) -> None:
    """From its first line to its end, a run that waits for a slow judge says so or shows it."""
    assert first.run.returncode == 0
    assert first.longest_silence_s < MOST_SILENT_S, f"of {first.wall_s:.0f} s"


def test_a_rerun_sends_nothing_to_the_server(
    server: VllmServer, first: StampedRun, folder: Path
) -> None:
    """A second run finds every reply in the store, the unreadable ones too, and scores alike."""
    n_requests = server.n_requests()
    assert n_requests > 0
    again = _run(server, folder, "again").run
    assert again.returncode == 0, again.log[-3000:]
    assert server.n_requests() == n_requests
    for task in TASKS:
        told, told_again = (_judgements(run, task) for run in (first.run, again))
        for judgement in (*told, *told_again):
            del judgement["cached"]
        assert told_again == told


def test_a_run_without_a_judge_is_refused(server: VllmServer, folder: Path) -> None:
    """The judges of the papers are not taken to be what a server on this machine serves."""
    n_requests = server.n_requests()
    run = _run(server, folder, "unnamed", judge=None).run
    assert server.n_requests() == n_requests
    assert "LMMS_CAPTIONS_JUDGE is not set" in run.log
    assert "lmms-eval-captions doctor" in run.log
    # Before anything is captioned.
    assert not list(run.output.rglob("*_results.json"))


def test_a_server_that_answers_as_another_model_is_not_believed(
    server: VllmServer, folder: Path
) -> None:
    """Judging stops with both names, keeps nothing, and goes on where an alias says it is right."""
    run = _run(server, folder, "misnamed", judge=SECOND_NAME).run
    for task in TASKS:
        judgements = _judgements(run, task)
        assert run.results[task]["unscored,none"] == len(judgements) > 0
        assert isnan(_headline(run, task)), task
        for judgement in judgements:
            assert f"{NAME!r}" in judgement["reason"], (task, judgement)
            assert f"{SECOND_NAME!r}" in judgement["reason"], (task, judgement)
    n_requests = server.n_requests()
    named = _run(
        server,
        folder,
        "named",
        judge=SECOND_NAME,
        tasks=["capquiz"],
        LMMS_CAPTIONS_JUDGE_ALIAS=NAME,
    ).run
    judgements = _judgements(named, "capquiz")
    assert server.n_requests() - n_requests >= len(judgements) > 0
    assert not [judgement for judgement in judgements if judgement["cached"]]
    signature = named.signatures["capquiz"]
    assert f"|judge:{SECOND_NAME}|" in signature
    assert f"|alias:{NAME}|" in signature


def test_a_judge_that_does_not_see_judges_texts(server: VllmServer, folder: Path) -> None:
    """Its settings with pictures end at once and say why; questions about texts are asked."""
    run = _run(
        server,
        folder,
        "blind",
        tasks=["msvd_eval_ref_free", "capquiz", "msvd_eval_combined"],
        # Nothing of it is in the store.
        LMMS_CAPTIONS_JUDGE_TEMPERATURE="0.4",
    ).run
    assert run.returncode == 0, run.log[-3000:]
    assert "no reply to any request" not in run.log
    for task in ("msvd_eval_ref_free", "msvd_eval_combined"):
        judgements = _judgements(run, task)
        assert judgements
        for judgement in judgements:
            assert "is not a multimodal model" in judgement["reason"], judgement
            assert "vision-language model" in judgement["reason"], judgement
    judgements = _judgements(run, "capquiz")
    assert [judgement for judgement in judgements if judgement["reason"] is None]
    assert not [j for j in judgements if "multimodal" in (j["reason"] or "")]


def _run(
    server: VllmServer,
    folder: Path,
    name: str,
    *,
    judge: str | None = NAME,
    tasks: Sequence[str] = TASKS,
    **variables: str,
) -> StampedRun:
    captions = sample_root(folder / "cache") / "vdc" / "captions.jsonl"
    env = environment(folder / "cache", LMMS_CAPTIONS_JUDGE_URL=server.url, **variables)
    if judge is not None:
        env["LMMS_CAPTIONS_JUDGE"] = judge
    if TIMEOUT_S is not None:
        env["LMMS_CAPTIONS_JUDGE_TIMEOUT"] = TIMEOUT_S
    return run_stamped(
        folder / name,
        "--model", "caption_file", "--model_args", f"path={captions}",
        "--tasks", ",".join(tasks), "--limit", N_VIDEOS,
        env=env,
        timeout_s=RUN_S,
    )  # fmt: skip


def _headline(run: Run, task: str) -> float:
    """A task's first score."""
    names = {"vcapsbench": "ar", "capquiz": "capf1", "msvd_eval_ref_only": "avg"}
    prefix = "vdc_acc" if task.startswith("vdc") else names.get(task, "acc")
    return float(run.results[task][f"{prefix},none"])


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
