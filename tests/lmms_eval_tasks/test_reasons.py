"""Advice for each kind of unscored question: a rerun only if it helps."""

from __future__ import annotations

import asyncio

import pytest

from lmms_eval_captions.judges.endpoint.adapt import served_name
from lmms_eval_captions.judges.endpoint.client import no_reply
from lmms_eval_captions.judges.endpoint.cost import Budget, load_prices
from lmms_eval_captions.judges.endpoint.failures import FORBIDDEN, Role, Source, failure
from lmms_eval_captions.judges.endpoint.request import UNREADABLE, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.reasons import (
    Kind,
    help_against,
    kind_of,
    why_unscored,
)
from lmms_eval_captions.lmms_eval_tasks.records import NO_CAPTION, NOTHING_TO_JUDGE

URL = "http://127.0.0.1:8000/v1"


def _answered(status: int, words: str = "some words") -> str:
    return str(failure(status, words.encode(), Source(URL, None), headers={}))


def _flagged() -> str:
    raw = b'{"error": {"message": "Your input was flagged for violence"}}'
    return str(failure(403, raw, Source(URL), headers={})).removesuffix(f" ({FORBIDDEN})")


def _wrong_model() -> str:
    with pytest.raises(JudgeStoppedError) as stopped:
        served_name("other", "judge", None, (URL,), "judge")
    return str(stopped.value)


def _unnamed_judge() -> str:
    settings = read_settings({"LMMS_CAPTIONS_JUDGE_URL": URL})
    with pytest.raises(SettingsError) as refused:
        settings.require_named_judge("gpt-4o")
    return str(refused.value)


def _limit(max_tokens: int = 10_000, role: Role = "judge") -> str:
    request = Request("test:1", "gpt-4o", [], {"max_tokens": max_tokens}, 0, 1.0, str)
    budget = Budget(0.1, load_prices(), spent_usd=0.034, role=role)
    with pytest.raises(JudgeStoppedError) as stopped:
        asyncio.run(budget.reserve(request, 0))
    return str(stopped.value)


def _timed_out() -> str:
    return str(no_reply(asyncio.TimeoutError(), Source(URL), timeout_s=120.0))


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        pytest.param(f"{UNREADABLE}, asked 4 times", "unreadable", id="unreadable"),
        pytest.param(f"{NO_CAPTION}no row", "missing", id="no caption"),
        pytest.param(
            f"{NO_CAPTION}a.mp4: {_limit(role='captioner')}",
            "uncaptioned",
            id="limit of captioning",
        ),
        pytest.param(
            f"{NO_CAPTION}a.mp4: {_answered(401)}", "uncaptioned", id="key of the captioner"
        ),
        pytest.param(
            f"{NO_CAPTION}a.mp4: {_timed_out()}", "uncaptioned", id="time-out of the captioner"
        ),
        pytest.param(
            f"{NO_CAPTION}a.mp4: reading it took more than 300 s", "missing", id="slow clip"
        ),
        pytest.param(NOTHING_TO_JUDGE, "empty", id="empty caption"),
        pytest.param(_answered(400), "refused", id="400"),
        pytest.param(_answered(400, "no reply from the backend"), "refused", id="400, odd words"),
        pytest.param(_answered(403), "stopped", id="403"),
        pytest.param(_answered(401), "stopped", id="401"),
        pytest.param(_answered(401, "internal error"), "stopped", id="401, odd words"),
        pytest.param(_answered(404), "stopped", id="404"),
        pytest.param(_answered(302), "stopped", id="redirect"),
        pytest.param(f"gave up on this request: {_answered(503)}", "passing", id="503"),
        pytest.param(f"gave up on this request: {_timed_out()}", "passing", id="time-out"),
        pytest.param(
            f"the judge gave no reply to any request for 301 s, judging stopped: {_timed_out()}",
            "passing",
            id="outage",
        ),
        pytest.param(
            f"gave up after 9 attempts: {_answered(503)}", "passing", id="outage of batches"
        ),
        pytest.param(
            f"the judge gave no reply to any request for 9 s (it has given none yet), judging "
            f"stopped: {_timed_out()}",
            "never",
            id="never answered",
        ),
        pytest.param(_limit(), "limit", id="limit of cost"),
        pytest.param(
            f"no answer from the caption: {_limit()}", "limit", id="limit of cost, first step"
        ),
        pytest.param("judging was ended before this caption's turn", "passing", id="ended"),
        pytest.param(_wrong_model(), "stopped", id="wrong model"),
        pytest.param(_unnamed_judge(), "stopped", id="unnamed judge"),
        pytest.param(
            "the judge 'm' cannot be shown pictures: http://h answered 500: no; set LMMS_CAPTIONS",
            "stopped",
            id="blind",
        ),
        pytest.param(
            f"the judge 'm' cannot be shown pictures: {_answered(400)}; set LMMS_CAPTIONS_JUDGE",
            "stopped",
            id="blind, 400",
        ),
        pytest.param(f"gave up after 9 attempts: {_answered(503)}", "passing", id="Batch API, 503"),
        pytest.param(
            f"no answer from the caption: batch b1 ended (expired): {_answered(400)}",
            "passing",
            id="batch, first step",
        ),
        pytest.param(_flagged(), "refused", id="403, flagged"),
        pytest.param(
            "the batch has no reply to this request: content_filter: no",
            "refused",
            id="refused in a batch",
        ),
    ],
)
def test_a_rerun_is_advised_where_it_helps(reason: str, kind: Kind) -> None:
    """A judge that must be changed first is told from an outage that passes."""
    assert kind_of(reason) == kind
    says_rerun = "run the same command again to go on" in why_unscored({reason: 3})
    assert says_rerun == (kind == "passing")


def test_a_limit_of_cost_says_what_is_spent_and_names_the_limit_once() -> None:
    words = why_unscored({_limit(): 40, _limit(20_000): 6})
    assert words == (
        "Why: 46 x LMMS_CAPTIONS_MAX_COST: $0.0340 of this process's $0.1000 are spent. 46 not "
        "judged: run the same command again with a higher LMMS_CAPTIONS_MAX_COST; verdicts are "
        "kept, only what is missing is asked."
    )
    assert help_against({_limit(): 46}).startswith(
        "LMMS_CAPTIONS_MAX_COST: $0.0340 of this process's $0.1000 are spent; not judged: run the "
        "same command again with a higher LMMS_CAPTIONS_MAX_COST"
    )
