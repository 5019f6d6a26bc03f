"""A real small model as the judge: read or unscored, never silent, and no other model than named.

``make test-real`` runs it and installs the model first; no other target does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import isnan
from pathlib import Path

import pytest

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from real_judge import headline_of, judge_captions, judged, options_of, says, verdict_of
from small_model import NAME
from stamped_runs import StampedRun
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
MOST_SILENT_S = 60.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the runs, with the cache that they share."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def first(real_server: VllmServer, folder: Path) -> StampedRun:
    """The run that asks, with as many requests in flight as a run has that says nothing of it."""
    return _run(real_server, folder, "first")


def test_a_small_model_is_read_or_unscored(first: StampedRun, folder: Path) -> None:
    """Every task has its results, and every judgement is what its reply says or is unscored."""
    run = first.run
    assert run.returncode == 0, run.log[-3000:]
    assert "Traceback" not in run.log
    assert "internal error" not in run.log
    options = options_of(sample_root(folder / "cache"))
    for task in TASKS:
        judgements = judged(run, task)
        unscored = [judgement for judgement in judgements if judgement["reason"] is not None]
        assert judgements
        assert run.results[task]["unscored,none"] == len(unscored)
        assert f"|judge:{NAME}|" in run.signatures[task]
        for judgement in judgements:
            says_itself = says(task, judgement, options)
            if judgement["reason"] is None:
                assert says_itself == verdict_of(task, judgement), (task, judgement)
            else:
                assert "unreadable reply, asked 4 times" in judgement["reason"], (task, judgement)
                assert not verdict_of(task, judgement), (task, judgement)
                assert says_itself is None, (task, judgement)


def test_structured_output_is_read_more_often(
    real_server: VllmServer, first: StampedRun, folder: Path
) -> None:
    tasks = ["vdc_camera", "vidcapbench_he"]
    run = _run(real_server, folder, "formed", tasks=tasks, LMMS_CAPTIONS_JUDGE_STRUCTURED="1").run
    for task in tasks:
        assert "|structured:1|" in run.signatures[task]
    formed, free = (sum(r.results[t]["unscored,none"] for t in tasks) for r in (run, first.run))
    assert formed < free or formed == free == 0


def test_no_minute_is_silent(first: StampedRun) -> None:
    """From its first line to its end, a run that waits for a slow judge says so or shows it."""
    assert first.run.returncode == 0
    assert first.longest_silence_s < MOST_SILENT_S, f"of {first.wall_s:.0f} s"


def test_a_rerun_sends_nothing_to_the_server(
    real_server: VllmServer, first: StampedRun, folder: Path
) -> None:
    """A second run finds every reply in the store, the unreadable ones too, and scores alike."""
    n_requests = real_server.n_requests()
    assert n_requests > 0
    again = _run(real_server, folder, "again").run
    assert again.returncode == 0, again.log[-3000:]
    assert real_server.n_requests() == n_requests
    for task in TASKS:
        told, told_again = (judged(run, task) for run in (first.run, again))
        for judgement in (*told, *told_again):
            del judgement["cached"]
        assert told_again == told


def test_a_run_without_a_judge_is_refused(real_server: VllmServer, folder: Path) -> None:
    """The judges of the papers are not taken to be what a server on this machine serves."""
    n_requests = real_server.n_requests()
    run = _run(real_server, folder, "unnamed", judge=None).run
    assert real_server.n_requests() == n_requests
    assert "LMMS_CAPTIONS_JUDGE is not set" in run.log
    assert "lmms-eval-captions doctor" in run.log
    # Before anything is captioned.
    assert not list(run.output.rglob("*_results.json"))


def test_a_server_that_answers_as_another_model_is_not_believed(
    real_server: VllmServer, folder: Path
) -> None:
    """Judging stops with both names, keeps nothing, and goes on where an alias says it is right."""
    run = _run(real_server, folder, "misnamed", judge=SECOND_NAME).run
    for task in TASKS:
        judgements = judged(run, task)
        assert run.results[task]["unscored,none"] == len(judgements) > 0
        assert isnan(headline_of(run, task)), task
        for judgement in judgements:
            assert f"{NAME!r}" in judgement["reason"], (task, judgement)
            assert f"{SECOND_NAME!r}" in judgement["reason"], (task, judgement)
    n_requests = real_server.n_requests()
    named = _run(
        real_server,
        folder,
        "named",
        judge=SECOND_NAME,
        tasks=["capquiz"],
        LMMS_CAPTIONS_JUDGE_ALIAS=NAME,
    ).run
    judgements = judged(named, "capquiz")
    assert real_server.n_requests() - n_requests >= len(judgements) > 0
    assert not [judgement for judgement in judgements if judgement["cached"]]
    signature = named.signatures["capquiz"]
    assert f"|judge:{SECOND_NAME}|" in signature
    assert f"|alias:{NAME}|" in signature


def test_a_judge_that_does_not_see_judges_texts(real_server: VllmServer, folder: Path) -> None:
    run = _run(
        real_server,
        folder,
        "blind",
        tasks=["msvd_eval_ref_free", "capquiz", "msvd_eval_combined"],
        # Nothing of it is in the store.
        LMMS_CAPTIONS_JUDGE_TEMPERATURE="0.4",
    ).run
    assert run.returncode == 0, run.log[-3000:]
    assert "no reply to any request" not in run.log
    for task in ("msvd_eval_ref_free", "msvd_eval_combined"):
        judgements = judged(run, task)
        assert judgements
        for judgement in judgements:
            assert "is not a multimodal model" in judgement["reason"], judgement
            assert "vision-language model" in judgement["reason"], judgement
    judgements = judged(run, "capquiz")
    assert [judgement for judgement in judgements if judgement["reason"] is None]
    assert not [j for j in judgements if "multimodal" in (j["reason"] or "")]


def _run(
    real_server: VllmServer,
    folder: Path,
    name: str,
    *,
    judge: str | None = NAME,
    tasks: Sequence[str] = TASKS,
    **variables: str,
) -> StampedRun:
    captions = sample_root(folder / "cache") / "vdc" / "captions.jsonl"
    return judge_captions(
        real_server,
        folder / name,
        captions=captions,
        tasks=tasks,
        n_videos=N_VIDEOS,
        judge=judge,
        **variables,
    )
