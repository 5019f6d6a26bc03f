"""Headers of limits are read in every form that providers write, and odd ones are left aside."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from lmms_eval_captions.judges.endpoint.quotas import Quota, quotas_in, retry_after_s

FORMS = {
    "openai-requests": ("requests", "x-ratelimit-{}-requests"),
    "openai-tokens": ("tokens", "x-ratelimit-{}-tokens"),
    "anthropic-requests": ("requests", "anthropic-ratelimit-requests-{}"),
    "anthropic-tokens": ("tokens", "anthropic-ratelimit-tokens-{}"),
    "anthropic-input-tokens": ("input-tokens", "anthropic-ratelimit-input-tokens-{}"),
    "anthropic-output-tokens": ("output-tokens", "anthropic-ratelimit-output-tokens-{}"),
    "draft": ("requests", "ratelimit-{}"),
    "draft-x": ("requests", "x-ratelimit-{}"),
}
ODD = (
    "", " ", "-1", "-0.5", "nan", "NaN", "inf", "-inf", "1e99", "1e3", "1_000", "0x10", "9" * 40,
    "9" * 5000, "many", "100, 100", "100, 100;w=60", "[1]", "{}", "null", "None", "½", "１０",
    "\udcff", "1 2", "+5", "5.", ".5", "1,5",
)  # fmt: skip
ODD_RESETS = (
    *ODD, "6m0", "0m-6s", "-1s", "1e9s", "1w", "ms", "s", "1s1", "999999999d", "32d",
    "2015-10-21T07:28:00Z", "9999-10-21T07:28:00Z", "0001-01-01T00:00:00+23:00",
    "2026-13-01T00:00Z", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 9999 07:28:00 GMT",
    "1400000000", "99999999999999",
)  # fmt: skip


def _headers(form: str, **values: str) -> dict[str, str]:
    name = FORMS[form][1]
    return {name.format(what): value for what, value in values.items()}


@pytest.mark.parametrize("form", FORMS)
def test_every_provider_says_what_is_left_and_until_when(form: str) -> None:
    """As much as there can be, what remains, and the seconds until the reset, whoever says it."""
    headers = CIMultiDict(_headers(form, limit="500", remaining="499", reset="12"))
    assert quotas_in(headers) == (Quota(FORMS[form][0], 500.0, 499.0, 12.0),)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("7.66s", 7.66),
        ("2m59.56s", 179.56),
        ("1h30m12.5s", 5412.5),
        ("1d2h", 93600.0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("900ns", 9e-7),
        ("0s", 0.0),
        ("30", 30.0),
        ("0.5", 0.5),
        (" 30 ", 30.0),
    ],
)
def test_a_duration_is_read(reset: str, seconds: float) -> None:
    """OpenAI's durations, and plain seconds."""
    [quota] = quotas_in(_headers("openai-requests", remaining="1", reset=reset))
    assert quota.reset_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("2026-11-24T05:44:19Z", 60.0),
        ("2026-11-24T05:43:19.500Z", 0.5),
        ("2026-11-24T07:43:29+02:00", 10.0),
        ("2026-11-24t05:43:19z", 0.0),
        ("2026-11-24T05:43:17Z", 0.0),
        ("Tue, 24 Nov 2026 05:44:19 GMT", 60.0),
    ],
)
def test_a_moment_counts_by_the_clock_that_wrote_it(reset: str, seconds: float) -> None:
    """The answer's own date is what it is compared with; one just over is one of now."""
    headers = _headers("anthropic-requests", limit="50", remaining="1", reset=reset)
    [quota] = quotas_in({**headers, "Date": "Tue, 24 Nov 2026 05:43:19 GMT"})
    assert quota.reset_s == pytest.approx(seconds)


@pytest.mark.parametrize("date", ["", "soon", "9" * 100])
def test_a_moment_without_a_date_counts_by_our_clock(date: str) -> None:
    """Not every server says when it answered."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=30)
    headers = _headers("anthropic-tokens", remaining="1", reset=moment.isoformat())
    [quota] = quotas_in({**headers, "Date": date} if date else headers)
    assert quota.reset_s == pytest.approx(30.0, abs=2.0)


def test_a_number_of_seconds_since_1970_is_a_moment() -> None:
    """Some gateways write seconds, some milliseconds."""
    for scale in (1, 1000):
        reset = str(round((time.time() + 60.0) * scale))
        [quota] = quotas_in(_headers("draft-x", remaining="0", reset=reset))
        assert quota.reset_s == pytest.approx(60.0, abs=2.0)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_count_is_as_if_it_were_not_there(odd: str) -> None:
    """What remains is needed; the limit and the reset are not."""
    assert quotas_in(_headers("draft", limit="9", remaining=odd, reset="1")) == ()
    [quota] = quotas_in(_headers("draft", limit=odd, remaining="3", reset="1"))
    assert quota == Quota("requests", None, 3.0, 1.0)


@pytest.mark.parametrize("odd", ODD_RESETS)
def test_an_odd_reset_is_as_if_it_were_not_there(odd: str) -> None:
    """Negative ones, words, lists, and dates of another age among them."""
    [quota] = quotas_in(_headers("draft", limit="9", remaining="3", reset=odd))
    assert quota == Quota("requests", 9.0, 3.0, None)


def test_more_left_than_there_can_be_is_no_count() -> None:
    """A quota that contradicts itself is left aside, the others are read."""
    headers = {
        **_headers("openai-requests", limit="10", remaining="11", reset="1s"),
        **_headers("openai-tokens", limit="10", remaining="9", reset="1s"),
    }
    assert [quota.resource for quota in quotas_in(headers)] == ["tokens"]


def test_a_limit_of_nothing_is_no_limit() -> None:
    """A gateway that writes 0 into every field says nothing of what there can be."""
    [quota] = quotas_in(_headers("openai-requests", limit="0", remaining="0", reset="0s"))
    assert quota == Quota("requests", None, 0.0, 0.0)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "1500", "Retry-After": "60"}, 1.5),
        ({"retry-after-ms": "0"}, 0.0),
        ({"retry-after-ms": "-5", "Retry-After": "60"}, 60.0),
        ({"retry-after-ms": "1e9", "Retry-After": "60"}, 60.0),
        ({"retry-after-ms": "soon"}, None),
        ({"retry-after-ms": "99999999999"}, None),
        ({"Retry-After": "2"}, 2.0),
        ({}, None),
    ],
)
def test_the_finer_wait_is_believed_first(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds before seconds; an odd one leaves the other."""
    assert retry_after_s(CIMultiDict(headers)) == seconds


@given(
    st.dictionaries(
        st.sampled_from(
            [
                name.format(what)
                for _, name in FORMS.values()
                for what in ("limit", "remaining", "reset")
            ]
            + ["ratelimit", "ratelimit-policy", "Date", "retry-after-ms", "Retry-After"]
        ),
        st.text(max_size=80)
        | st.from_regex(r"[0-9.]{1,20}(ms|s|m|h|d)?[0-9.]{0,9}(s|ms)?", fullmatch=True)
        | st.from_regex(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{5,8}(Z|[+-][0-9:]{4,6})", fullmatch=True
        )
        | st.sampled_from([*ODD_RESETS, "10", "0", "60", "1s", '"a";r=1;t=2']),
    )
)
def test_no_header_is_an_error_of_ours(headers: dict[str, str]) -> None:
    """Whatever stands in them, what is read is finite and not negative."""
    for quota in quotas_in(headers):
        numbers = [quota.remaining, quota.limit or 1.0, quota.reset_s or 0.0]
        assert all(isfinite(number) and number >= 0.0 for number in numbers)
    wait_s = retry_after_s(headers)
    assert wait_s is None or 0.0 <= wait_s <= 24 * 3600.0
