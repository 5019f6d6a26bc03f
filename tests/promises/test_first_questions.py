"""Every benchmark of several questions: whatever becomes of the first one, the others are asked.

See ``test_every_failure.py`` for what is asked, and for the kinds of failures. Every caption's
first question goes out before the others, which are held until it has got through.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from lmms_eval_captions.judges.endpoint import engine as engines
from lmms_eval_captions.judges.endpoint.head_start import HeadStart
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from test_every_failure import (
    BENCHMARKS,
    REASONS,
    STOPS,
    Benchmark,
    Judge,
    _change_engine,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)
from told_judge import FREE_TEXT, Key

SEVERAL: Final = [benchmark for benchmark in BENCHMARKS if benchmark.n_questions > 1]
KINDS: Final = [*(kind for kind in REASONS if kind not in STOPS), "outage that passes", "stored"]
ENDS: Final = ["wrong key", "outage"]
SOON_S: Final = 20.0


class Always(HeadStart):
    """A head start for every caption."""

    def __init__(self, n_slots: int, *, is_possible: bool = True) -> None:
        super().__init__(n_slots, is_possible=is_possible)
        self.state = "on"


def _first(benchmark: Benchmark, step: int = 0) -> Key:
    return Key(0, 0, 0, benchmark.steps[step])


def _cells(kinds: Sequence[str]) -> list[Any]:
    return [
        pytest.param(benchmark, kind, id=f"{benchmark.name}-{kind}")
        for benchmark in SEVERAL
        for kind in kinds
    ]


@pytest.fixture
def ahead(bench: pytest.MonkeyPatch) -> pytest.MonkeyPatch:  # noqa: F811 - a fixture
    """Every caption's first question goes ahead; three requests may be in flight."""
    bench.setattr(engines, "HeadStart", Always)
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "3")
    return bench


@pytest.mark.parametrize(("benchmark", "kind"), _cells(KINDS))
def test_however_the_first_question_ends_the_others_are_scored(
    benchmark: Benchmark, kind: str, ahead: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Lost is what the failure concerns, and what was in the store is not asked again."""
    server = serve(logprobs="whole")
    ahead.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    _set(benchmark, ahead)
    target = _first(benchmark)
    server.script = judge = Judge(target, kind)
    lost = {target}
    if kind in ("outage that passes", "stored") or (kind == "cut" and target.step in FREE_TEXT):
        lost = set()
    if kind == "outage that passes":
        _change_engine(ahead, outage_patience_s=30.0)
    began_s = time.monotonic()
    _check(benchmark, _judge(benchmark), benchmark.lost(lost))
    assert time.monotonic() - began_s < SOON_S
    # Without an answer nothing is matched.
    unasked = {key for key in benchmark.order() if lost and key[:3] == target[:3]} - {target}
    assert set(judge.sent) == set(benchmark.order()) - unasked
    if kind == "stored":
        JUDGE_RUN.close()
        server.script = again = Judge()
        _check(benchmark, _judge(benchmark), set())
        assert again.sent == []


@pytest.mark.parametrize(("benchmark", "kind"), _cells(ENDS))
def test_where_the_first_question_ends_judging_none_is_held_for_ever(
    benchmark: Benchmark, kind: str, ahead: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """All have the reason, and a later run asks what is missing."""
    server = serve(logprobs="whole")
    ahead.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    _set(benchmark, ahead)
    server.script = judge = Judge(_first(benchmark), kind)
    items = _judge(benchmark)
    for name, aggregate in benchmark.aggregations.items():
        aggregate(items[name])
    n_unscored = benchmark.hooks.aggregate_unscored(items["unscored"])
    assert 0 < n_unscored <= len(benchmark.units())
    records: list[dict[str, Any]] = [*items[next(iter(benchmark.aggregations))]]
    reasons = [each["reason"] for record in records for each in record["judgements"]]
    step = r"(no answer from the caption: |[123] of 3 asks failed and no two agree: )?"
    assert all(re.fullmatch(step + REASONS[kind], reason) for reason in reasons if reason)
    JUDGE_RUN.close()
    answered = set(judge.answered)
    server.script = again = Judge()
    _check(benchmark, _judge(benchmark), set())
    assert set(again.sent) == set(benchmark.order()) - answered


@pytest.mark.parametrize("benchmark", SEVERAL, ids=lambda benchmark: benchmark.name)
def test_a_first_question_that_nobody_answers_holds_no_other(
    benchmark: Benchmark, ahead: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """It hangs until judging is ended; all others about all captions are answered meanwhile."""
    server = serve(logprobs="whole")
    ahead.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    _set(benchmark, ahead)
    server.script = judge = Judge(_first(benchmark), "kill")
    _judge(benchmark)
    of_the_first = {key for key in benchmark.order() if (key.video, key.question) == (0, 0)}
    deadline_s = time.monotonic() + SOON_S
    while not set(benchmark.order()) - of_the_first <= judge.answered:
        assert time.monotonic() < deadline_s, "questions are held"
        time.sleep(0.02)
    JUDGE_RUN.close()


def test_ctrl_c_while_questions_are_held_ends_the_run_and_loses_nothing(
    ahead: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """A child judges more captions than slots, all first questions hang, and it is interrupted."""
    server = serve(logprobs="whole")
    ahead.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    came = threading.Event()

    def hang(_: dict[str, Any]) -> str:
        came.set()
        return "hang"

    server.script = hang
    child = os.fork()
    if not child:
        code = 3
        try:
            items = _judge(SEVERAL[0])
            SEVERAL[0].hooks.aggregate_unscored(items["unscored"])
        except KeyboardInterrupt:
            JUDGE_RUN.close()
            code = 0
        finally:
            (tmp_path / "code").write_text(str(code))
            os._exit(code)
    assert came.wait(SOON_S)
    time.sleep(0.2)
    os.kill(child, signal.SIGINT)
    deadline_s = time.monotonic() + SOON_S
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline_s:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(ended[1]) == 0
    server.script = judge = Judge()
    _check(SEVERAL[0], _judge(SEVERAL[0]), set())
    assert set(judge.sent) == set(SEVERAL[0].order())
