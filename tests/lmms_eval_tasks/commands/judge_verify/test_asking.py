"""What is heard of the replies that a benchmark's protocol reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from impostors import honest
from judge_server import JudgeServer, Say
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.asking import (
    Answer,
    ask_all,
    engine_of,
)
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import Subject, subjects_of

STEPS: Final = {
    "vdc": ["vdc_answer", "vdc_match"],
    "vidcapbench": ["vidcapbench_answer", "vidcapbench_judge"],
    "vcapsbench": ["vcapsbench_answer"] * 3,
    "capquiz": ["capquiz_answer"],
    "msvd_eval": ["gveval"],
}
EACH: Final = pytest.mark.parametrize("benchmark", STEPS)


def _subject(benchmark: str) -> Subject:
    (subject,) = subjects_of(benchmark, read_judge_settings())
    return subject


def _answers(benchmark: str, n: int) -> list[Answer[Any]]:
    subject = _subject(benchmark)
    with engine_of(read_judge_settings(), max_cost_usd=None) as engine:
        return ask_all(engine, [subject.chain(fact, 5_000) for fact in subject.facts[:n]])


@pytest.fixture
def server(serve: ServerFactory, bench: pytest.MonkeyPatch) -> JudgeServer:
    """The honest judge."""
    started = serve()
    started.script = honest()
    started.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", started.url)
    return started


def test_verification_keeps_to_the_rate_of_a_run(bench: pytest.MonkeyPatch) -> None:
    """It asks the same judge."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_RATE", "7.5")
    with engine_of(read_judge_settings(), max_cost_usd=None) as engine:
        assert engine.config.max_rate == 7.5


@EACH
def test_every_step_is_heard_and_asked_at_temperature_0_with_the_nonce(
    benchmark: str, server: JudgeServer
) -> None:
    """Each first reply has attempt 0, also of requests that are sent together."""
    answers = _answers(benchmark, 12)
    for answer in answers:
        assert sorted(each.step for each in answer.heard.replies) == sorted(STEPS[benchmark])
        assert {each.attempt for each in answer.heard.replies} == {0}
        assert answer.has_reply
    seeds = {body["seed"] for body in server.bodies}
    assert seeds == ({15_000, 15_001, 15_002} if benchmark == "vcapsbench" else {5_000})
    assert {body["temperature"] for body in server.bodies} == {0.0}


@EACH
def test_unreadable_replies_are_heard_with_their_attempts(
    benchmark: str, server: JudgeServer
) -> None:
    """Four samples of the step that cannot be read; the judge did answer."""
    server.script = lambda _: Say("")
    (answer,) = _answers(benchmark, 1)
    step = STEPS[benchmark][0]
    attempts = [each.attempt for each in answer.heard.replies if each.step == step]
    assert sorted(set(attempts)) == [0, 1, 2, 3]
    assert not any(each.is_readable for each in answer.heard.replies)
    assert answer.has_reply
    assert answer.heard.failure == "unreadable"


@EACH
def test_a_refused_request_has_no_reply(benchmark: str, server: JudgeServer) -> None:
    """Nothing is known of the judge by it."""
    server.behaviour.status = 400
    (answer,) = _answers(benchmark, 1)
    assert not answer.has_reply


@EACH
def test_an_endpoint_that_lets_nobody_in_ends_it(benchmark: str, server: JudgeServer) -> None:
    """With its own words."""
    server.behaviour.status = 403
    with pytest.raises(JudgeStoppedError, match="403"):
        _answers(benchmark, 2)


def test_replies_lie_in_the_store_of_all_replies(server: JudgeServer, tmp_path: Path) -> None:
    """They are paid for once: the same nonce asks nothing again."""
    _answers("vdc", 3)
    n_asked = server.counts.n_requests
    _answers("vdc", 3)
    assert server.counts.n_requests == n_asked
    assert any((tmp_path / "cache" / "replies").rglob("*"))
