"""What an address says of its limits is kept to, shared, and left where it cannot be true."""

from __future__ import annotations

from math import inf

import pytest

from lmms_eval_captions.judges.endpoint.address_limits import AddressLimits


def _told(limit: object, remaining: object, reset: object) -> dict[str, str]:
    values = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"x-ratelimit-{what}-requests": str(value) for what, value in values.items()}


def _answered(
    limits: AddressLimits, headers: dict[str, str], *, at_s: float, n: int = 1, every_s: float = 0.0
) -> None:
    """Send and answer so many requests, one after the other."""
    for k in range(n):
        number = limits.send(at_s + k * every_s)
        limits.hear_answer(headers, number, at_s + k * every_s)


def _refused(
    limits: AddressLimits, headers: dict[str, str], *, at_s: float, retry_after_s: float | None
) -> bool:
    number = limits.send(at_s)
    return limits.hear_refusal(
        headers, number, at_s, now_s=at_s + 0.01, retry_after_s=retry_after_s
    )


def test_without_a_word_there_is_no_limit() -> None:
    """Servers of one's own send no such headers."""
    limits = AddressLimits()
    _answered(limits, {"Content-Type": "application/json"}, at_s=0.0)
    assert limits.rate(0.1) == inf
    assert limits.due(0.1) == 1.0


def test_a_window_is_spread_until_its_end_and_begins_anew() -> None:
    """60 left for 30 s are 2 a second; none left are none; a new window may be used again."""
    limits = AddressLimits()
    _answered(limits, _told(500, 60, "30s"), at_s=0.0)
    assert limits.rate(0.0) == pytest.approx(2.0)
    _answered(limits, _told(500, 0, "20s"), at_s=10.0)
    assert limits.rate(10.0) == 0.0
    assert limits.rate(29.9) == 0.0
    assert 0.0 < limits.rate(30.1) < inf


def test_a_bucket_is_used_at_the_rate_at_which_it_fills() -> None:
    """A quarter of 600 left, the rest back in 45 s: 10 a second, more where more is left."""
    limits = AddressLimits()
    _answered(limits, _told(600, 150, "45s"), at_s=0.0)
    assert limits.rate(0.0) == pytest.approx(10.0)
    full = AddressLimits()
    _answered(full, _told(600, 599, "100ms"), at_s=0.0)
    assert full.rate(0.0) > 50.0


def test_what_others_use_is_the_price_of_ones_own() -> None:
    """Where what is left falls by three with each request, two other processes ask as well."""
    alone, shared = AddressLimits(), AddressLimits()
    for limits, cost in ((alone, 1), (shared, 3)):
        for k in range(60):
            left = 6000 - 100 - cost * k
            _answered(limits, _told(6000, left, f"{(6000 - left) / 100:g}s"), at_s=k * 0.001)
    ratio = alone.rate(0.06) / shared.rate(0.06)
    assert ratio == pytest.approx(3.0, rel=0.15)


def test_tokens_hold_where_they_are_used_up_first() -> None:
    """The least of the limits is the one that counts."""
    limits = AddressLimits()
    tokens = {"x-ratelimit-limit-tokens": "60000", "x-ratelimit-remaining-tokens": "15000"}
    headers = {**_told(600, 599, "100ms"), **tokens, "x-ratelimit-reset-tokens": "45s"}
    number = limits.send(0.0)
    limits.hear_answer(headers, number, 0.0, n_tokens=500)
    assert limits.rate(0.0) == pytest.approx(2.0)


def test_headers_that_no_longer_come_are_forgotten() -> None:
    """A minute of answers without a word on limits: there are none any more."""
    limits = AddressLimits()
    _answered(limits, _told(100, 0, "3600s"), at_s=0.0)
    _answered(limits, {}, at_s=30.0)
    assert limits.rate(30.0) < inf
    _answered(limits, {}, at_s=61.0)
    assert limits.rate(61.0) == inf


def test_a_wait_for_one_refusal_among_answers_is_that_requests_alone() -> None:
    """Refused by chance, it says nothing of the others, however long it asks to wait."""
    limits = AddressLimits()
    for k in range(50):
        _answered(limits, {}, at_s=k * 0.1, n=3)
        assert not _refused(limits, {}, at_s=k * 0.1, retry_after_s=600.0)
        assert limits.rate(k * 0.1 + 0.05) == inf


def test_a_wait_is_everyones_where_nothing_is_left() -> None:
    """The refusal's own headers say so: nothing goes out before it is over."""
    limits = AddressLimits()
    assert _refused(limits, _told(100, 0, "7s"), at_s=0.0, retry_after_s=7.0)
    assert limits.rate(6.9) == 0.0
    assert limits.rate(7.1) > 0.0


def test_a_wait_is_everyones_where_all_are_refused() -> None:
    """Eight refusals and no answer are no chance, also without a word on what is left."""
    limits = AddressLimits()
    for k in range(7):
        _refused(limits, {}, at_s=k * 0.01, retry_after_s=20.0)
    assert limits.rate(0.1) == inf
    assert not _refused(limits, {}, at_s=0.1, retry_after_s=20.0)
    assert limits.rate(20.0) == 0.0
    assert limits.rate(20.2) == inf


def test_where_plenty_is_left_the_refusal_is_not_of_what_is_told() -> None:
    """It is noise, or of a limit that the headers do not tell of: pacing tries that out."""
    limits = AddressLimits()
    assert not _refused(limits, _told(500, 400, "12s"), at_s=0.0, retry_after_s=30.0)
    assert limits.rate(1.0) > 0.0


def test_refusals_that_go_on_though_headers_are_kept_to_are_tried_out() -> None:
    """Headers that do not tell how fast the endpoint takes requests are not all that counts."""
    limits = AddressLimits()
    is_told = [
        _refused(limits, _told(10, 0, "10ms"), at_s=k * 1.0, retry_after_s=None) for k in range(20)
    ]
    assert is_told[0]
    assert not is_told[-1]


@pytest.mark.parametrize("retry_after_s", [None, 24 * 3600.0])
def test_nothing_that_is_said_holds_longer_than_patience(retry_after_s: float | None) -> None:
    """A day without a request would be the end of a run."""
    limits = AddressLimits(patience_s=50.0)
    _refused(limits, _told(100, 0, "86399s"), at_s=0.0, retry_after_s=retry_after_s)
    assert limits.rate(49.9) < 0.01
    assert limits.rate(50.1) == inf


def test_a_server_that_always_says_that_nothing_is_left_is_not_believed() -> None:
    """What is answered was left."""
    for headers in (_told(100, 0, "86399s"), _told("", 0, "86399s"), _told(0, 0, "3600s")):
        limits = AddressLimits()
        _answered(limits, headers, at_s=0.0, n=4, every_s=0.001)
        assert limits.rate(1.0) == inf


def test_a_reset_that_was_named_far_too_late_once_does_not_count_for_long() -> None:
    """Each answer that says otherwise takes half of it back."""
    limits = AddressLimits()
    _answered(limits, _told(500, 400, "80000s"), at_s=0.0)
    for k in range(30):
        _answered(limits, _told(500, 399 - k, f"{59.9 - k / 10:g}s"), at_s=k / 10)
    _answered(limits, _told(500, 0, "50s"), at_s=10.0)
    assert limits.rate(59.0) == 0.0
    assert limits.rate(62.0) > 0.0


def test_of_several_addresses_the_one_that_is_due_is_asked() -> None:
    """Each has its own limit: to one that allows two a second, the next is due half a second on."""
    limits = AddressLimits()
    _answered(limits, _told(500, 60, "30s"), at_s=0.0)
    limits.send(1.0)
    assert limits.due(1.1) == pytest.approx(0.2, abs=0.02)
    assert limits.due(1.6) == 1.0
