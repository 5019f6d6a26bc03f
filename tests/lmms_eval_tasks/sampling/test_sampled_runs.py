"""Runs with ``LMMS_CAPTIONS_PRECISION``, through the hooks and the files that they leave."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from breakdowns import kept_breakdown
from conftest import ServerFactory
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.results.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import VDC
from planted_runs import write_run

TASKS = ("vdc_camera", "vdc_short")
N_VIDEOS, N_EACH = 80, 8


def _items(caption: str, videos: range = range(N_VIDEOS)) -> dict[str, list[Any]]:
    """Submit captions to both tasks, as lmms-eval does; each task's items of the headline."""
    questions = [
        {"question": f"Q{at}?", "answer": f"A{at}", "category": ""} for at in range(N_EACH)
    ]
    return {
        task: [
            hooks.process_results(
                {"video_id": f"v{v}", "aspect": task[4:], "questions": questions},
                [f"{caption}, {task} of {v}."],
            )["vdc_acc"]
            for v in videos
        ]
        for task in TASKS
    }


def _scores(items: dict[str, list[Any]]) -> dict[str, float]:
    return {task: hooks.aggregate("vdc_acc")(of) for task, of in items.items()}


def _run(caption: str) -> dict[str, float]:
    SESSION.close()
    return _scores(_items(caption))


def _asked(bodies: Sequence[object]) -> set[tuple[str, ...]]:
    """Task, video and question of the requests that hold a caption."""
    found = [re.search(r"caption, (\w+) of (\d+)\..*(Q\d)\?", str(body)) for body in bodies]
    return {pair.groups() for pair in found if pair}


def test_a_sample_is_asked_again_and_completed_for_nothing(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """A rerun sends nothing, another captioner is asked the same, and the rest completes it."""
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_PRECISION", "3.2")
    scores = _run("One caption")
    breakdown = kept_breakdown("vdc_camera")
    n_asked = breakdown["overall"]["all"]["n_questions"]
    assert n_asked < 600
    assert f"|precision:3.2|asked:{n_asked}/640|unscored:0/" in breakdown["signature"]
    asked, n_requests = _asked(server.bodies), server.counts.n_requests
    assert len(asked) == n_requests / 2
    assert _run("One caption") == scores
    assert server.counts.n_requests == n_requests
    _run("Another caption")
    fewer, more = sorted((asked, _asked(server.bodies[n_requests:])), key=len)
    assert fewer <= more
    bench.delenv("LMMS_CAPTIONS_PRECISION")
    before = server.counts.n_requests
    full = _run("One caption")
    assert server.counts.n_requests - before == 4 * N_VIDEOS * N_EACH - n_requests
    assert "asked:" not in kept_breakdown("vdc_camera")["signature"]
    assert fmean(full.values()) == pytest.approx(fmean(scores.values()), abs=2 * 3.2)


def test_a_cheap_judge_answers_all_questions(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_PRECISION", "3.2")
    bench.setenv("LMMS_CAPTIONS_CHEAP_JUDGE", "small")
    scores = _run("One caption")
    signature = kept_breakdown("vdc_camera")["signature"]
    assert "|cheap:small|" in signature
    assert "|asked:200/640|" in signature
    # The scripted judge says the same under any name.
    bench.delenv("LMMS_CAPTIONS_CHEAP_JUDGE")
    bench.delenv("LMMS_CAPTIONS_PRECISION")
    assert scores["vdc_camera"] == pytest.approx(_run("One caption")["vdc_camera"])


def test_processes_sample_their_own_captions(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Together they are as close as was asked for."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_PRECISION", "2.6")
    bench.setenv("WORLD_SIZE", "2")
    gathered: dict[str, list[Any]] = {task: [] for task in TASKS}
    for rank in (0, 1):
        SESSION.close()
        bench.setenv("RANK", str(rank))
        for task, of in _items("One caption", range(rank, N_VIDEOS, 2)).items():
            gathered[task] += pickle.loads(pickle.dumps(of))  # noqa: S301
    scores = _scores(gathered)
    assert 0 < server.counts.n_requests < 4 * N_VIDEOS * N_EACH
    for name in ("LMMS_CAPTIONS_PRECISION", "WORLD_SIZE", "RANK"):
        bench.delenv(name)
    full = _run("One caption")
    assert fmean(full.values()) == pytest.approx(fmean(scores.values()), abs=2 * 2.6)


def test_samples_of_two_captioners_are_compared(
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By their scores, also in groups of which a task has no question."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_PRECISION", "3.2")
    records: dict[str, list[CaptionRecord]] = {}
    for name in ("One", "Another"):
        SESSION.close()
        items = _items(f"{name} caption")
        _scores(items)
        tasks = {task: [item.record for item in of] for task, of in items.items()}
        write_run(tmp_path / name, tasks, groups={"vdc_score": TASKS}, model=name)
        records[name] = tasks["vdc_camera"]
    main(["compare", *(str(tmp_path / name) for name in records), "--format", "json"])
    (compared,) = json.loads(capsys.readouterr().out)["compared"]
    overall = {
        row["captioner"]: row["value"]
        for row in compared["rows"]
        if (row["group"], row["metric"]) in (("vdc_camera", "vdc_acc"), ("camera", "vdc_acc"))
    }
    assert overall == pytest.approx(
        {name: score_of(VDC, "vdc_acc", of) for name, of in records.items()}
    )
