"""Advice for each kind of unscored question: a rerun only if it helps."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError

import pytest

from conftest import EngineFactory, ServerFactory
from judge_server import Refuse
from lmms_eval_captions.judges.endpoint.adapt import served_name
from lmms_eval_captions.judges.endpoint.cost import Budget, load_prices
from lmms_eval_captions.judges.endpoint.failures import Role, Source, failure
from lmms_eval_captions.judges.endpoint.request import Request
from lmms_eval_captions.judges.errors import (
    CaptionsError,
    Failure,
    JudgeStoppedError,
    SettingsError,
)
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.judging.judged_caption import Judged
from lmms_eval_captions.lmms_eval_tasks.judging.reasons import help_against, why_unscored
from lmms_eval_captions.lmms_eval_tasks.judging.session import unjudged_because
from lmms_eval_captions.lmms_eval_tasks.records import KINDS, Kind

URL = "http://127.0.0.1:8000/v1"
RERUN = "run the same command again to go on"


def _answered(status: int, words: str = "some words") -> CaptionsError:
    return failure(status, words.encode(), Source(URL, None), headers={})


def _wrong_model() -> CaptionsError:
    with pytest.raises(JudgeStoppedError) as stopped:
        served_name("other", "judge", None, (URL,), "judge")
    return stopped.value


def _unnamed_judge() -> CaptionsError:
    settings = read_settings({"LMMS_CAPTIONS_JUDGE_URL": URL})
    with pytest.raises(SettingsError) as refused:
        settings.require_named_judge("gpt-4o")
    return refused.value


def _limit(max_tokens: int = 10_000, role: Role = "judge") -> CaptionsError:
    request = Request("test:1", "gpt-4o", [], {"max_tokens": max_tokens}, 0, 1.0, str)
    budget = Budget(0.1, load_prices(), spent_usd=0.034, role=role)
    with pytest.raises(JudgeStoppedError) as stopped:
        asyncio.run(budget.reserve(request, 0))
    return stopped.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(_answered(400), "refused", id="400"),
        pytest.param(_answered(400, "no reply from the backend"), "refused", id="400, odd words"),
        pytest.param(_answered(403), "stopped", id="403"),
        pytest.param(_answered(401), "stopped", id="401"),
        pytest.param(_answered(401, "internal error"), "stopped", id="401, odd words"),
        pytest.param(_answered(404), "stopped", id="404"),
        pytest.param(_answered(302), "stopped", id="redirect"),
        pytest.param(_answered(503), "unavailable", id="503"),
        pytest.param(_limit(), "limit", id="limit of cost"),
        pytest.param(_wrong_model(), "stopped", id="wrong model"),
        pytest.param(_unnamed_judge(), "stopped", id="unnamed judge"),
        pytest.param(CancelledError(), "unavailable", id="cancelled"),
    ],
)
def test_an_error_has_a_kind(error: CaptionsError | CancelledError, kind: Kind) -> None:
    nothing: Judged[Judgement] = Judged((), None, None)
    unjudged = unjudged_because(nothing, error)
    assert unjudged.kind == kind
    assert unjudged.reason


@pytest.mark.parametrize("status", [400, 401, 503])
def test_a_judgement_has_the_kind_of_its_failure(
    status: int, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A judge that must be changed first is told from an outage that passes."""
    kinds: dict[int, Failure] = {400: "refused", 401: "stopped", 503: "unavailable"}
    server = serve()
    server.script = lambda _: Refuse(status, "no")
    request = Request("test:1", "judge", [{"role": "user", "content": "?"}], {}, 0, 1.0, str)
    engine = make_engine(server.url)
    (asked,) = engine.submit([lambda ask: ask(request, lambda _: "a")]).result(60)
    assert asked.outcome()["failure"] == kinds[status]


def test_a_rerun_is_advised_where_it_helps() -> None:
    """Every kind has advice of its own."""
    advice = {kind: why_unscored({"some words": 3}, {kind: 3}) for kind in KINDS}
    assert {kind for kind in KINDS if RERUN in advice[kind]} == {"unavailable", "silent"}
    assert len(set(advice.values())) == len(KINDS) - 1


def test_a_limit_of_cost_says_what_is_spent_and_names_the_limit_once() -> None:
    small, large = str(_limit()), str(_limit(20_000))
    words = why_unscored({small: 40, large: 6}, {"limit": 46})
    assert words == (
        "Why: 46 x LMMS_CAPTIONS_MAX_COST: $0.0340 of this process's $0.1000 are spent. 46 not "
        "judged: run the same command again with a higher LMMS_CAPTIONS_MAX_COST; verdicts are "
        "kept, only what is missing is asked."
    )
    assert help_against({small: 46}, {"limit": 46}).startswith(
        "LMMS_CAPTIONS_MAX_COST: $0.0340 of this process's $0.1000 are spent; not judged: run the "
        "same command again with a higher LMMS_CAPTIONS_MAX_COST"
    )
