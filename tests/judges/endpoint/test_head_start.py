"""When the first question of a caption goes ahead: where that pays, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from lmms_eval_captions.judges.endpoint.head_start import HeadStart, Observed

N_QUESTIONS = 10
Measured = Callable[[bool, int], tuple[int, float]]
"""From whether a caption has a head start and the number of its question: tokens of 100 that the
cache had, and seconds."""


def _ask_about(
    head_start: HeadStart, measured: Measured, *, n_captions: int, n_answered: int = N_QUESTIONS
) -> list[bool]:
    """Which of so many captions had a head start, told what was measured of each reply."""
    had: list[bool] = []
    for _ in range(n_captions):
        begun = head_start.begin(N_QUESTIONS)
        observed = begun if isinstance(begun, Observed) else None
        had.append(bool(begun) if observed is None else observed.has_head_start)
        for number in range(n_answered):
            n_cached, seconds = measured(had[-1], number)
            head_start.on_reply(observed, input_tokens=100, cached_tokens=n_cached, seconds=seconds)
        for _ in range(N_QUESTIONS):
            if observed is not None:
                head_start.on_end(observed)
    return had


def _pays(has_head_start: bool, number: int) -> tuple[int, float]:
    return (60 if has_head_start and number else 20), 1.0


def test_every_other_caption_has_one_until_it_is_clear_that_it_pays() -> None:
    """Then all have one."""
    head_start = HeadStart(64)
    had = _ask_about(head_start, _pays, n_captions=40)
    assert had[:12] == [False, True] * 6
    assert head_start.state == "on"
    assert all(had[12:])
    # 20 + 9/10 of 40 against 20, of 100.
    assert head_start.why == "36.0% more of the prompts are found in the endpoint's cache"


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        pytest.param(lambda *_: (0, 1.0), "the endpoint says nothing", id="nothing is said"),
        pytest.param(lambda *_: (50, 1.0), "no more is found", id="found all the same"),
        pytest.param(lambda has, _: (50 - 30 * has, 1.0), "no more is found", id="less is found"),
        pytest.param(lambda has, _: (20 + 40 * has, 1.0 + has), "take longer", id="slower"),
    ],
)
def test_where_it_does_not_pay_nobody_has_one_from_then_on(measured: Measured, why: str) -> None:
    """It is off for good, and says why; what comes later changes nothing."""
    head_start = HeadStart(64)
    had = _ask_about(head_start, measured, n_captions=30)
    assert head_start.state == "off"
    assert why in head_start.why
    assert not any(had[12:])
    assert not any(_ask_about(head_start, _pays, n_captions=30))


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_taken_for_a_gain(seed: int) -> None:
    """What the cache has differs from caption to caption, with a head start and without."""
    drawn = random.Random(seed)
    head_start = HeadStart(64)
    _ask_about(head_start, lambda *_: (drawn.randint(0, 60), drawn.uniform(0.5, 2)), n_captions=100)
    assert head_start.state == "off"


@pytest.mark.parametrize("seed", range(20))
def test_a_gain_is_found_in_noise(seed: int) -> None:
    """A tenth of the prompts, where captions differ by more than that."""
    drawn = random.Random(seed)

    def measured(has_head_start: bool, _: int) -> tuple[int, float]:
        return drawn.randint(0, 60) + 10 * has_head_start, drawn.uniform(0.5, 2.0)

    head_start = HeadStart(64)
    _ask_about(head_start, measured, n_captions=100)
    assert head_start.state == "on"


def test_captions_that_were_hardly_asked_about_tell_nothing() -> None:
    """Most of their replies were in the store."""
    head_start = HeadStart(64)
    _ask_about(head_start, lambda *_: (0, 1.0), n_captions=100, n_answered=3)
    assert head_start.state == "tried"


@pytest.mark.parametrize(
    "head_start",
    [HeadStart(1), HeadStart(2), HeadStart(350_000, is_possible=False)],
    ids=["one slot", "two slots", "batches"],
)
def test_it_is_not_tried_where_it_cannot_pay(head_start: HeadStart) -> None:
    """Questions follow one another there, or go out all at once."""
    assert head_start.state == "off"
    assert not any(_ask_about(head_start, _pays, n_captions=30))


def test_a_single_question_has_nothing_to_be_ahead_of() -> None:
    """Whatever the endpoint."""
    head_start = HeadStart(64)
    _ask_about(head_start, _pays, n_captions=40)
    assert head_start.begin(1) is False
    assert head_start.begin(2) is True


def test_questions_are_held_for_some_latencies_within_bounds() -> None:
    """A quarter of a second at least, half a minute at most."""
    head_start = HeadStart(64)
    assert head_start.hold_s == 5.0
    for seconds, held_s in ((0.001, 0.25), (2.0, 6.0), (1e6, 30.0)):
        head_start = HeadStart(64)
        head_start.on_reply(None, input_tokens=1, cached_tokens=0, seconds=seconds)
        assert head_start.hold_s == pytest.approx(held_s)
