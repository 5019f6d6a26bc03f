"""VCapsBench's arithmetic: by hand and by property; the paper's tables are in their own file."""

from __future__ import annotations

import random
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.verdict import Agreement
from lmms_eval_captions.metrics.vcapsbench import vcapsbench_ar, vcapsbench_cr, vcapsbench_ir

Verdicts = list[Agreement | None]

P: Agreement | None = "positive"
N: Agreement | None = "negative"
U: Agreement | None = "unanswerable"
verdicts = st.lists(st.sampled_from([P, N, U, None]), max_size=30)
rates = (vcapsbench_ar, vcapsbench_ir, vcapsbench_cr)


@pytest.mark.parametrize(
    ("values", "ar", "ir", "cr"),
    [
        pytest.param([P, P, P, P], 100.0, 0.0, 100.0, id="all-right"),
        pytest.param([N, N], 0.0, 100.0, 100.0, id="all-wrong"),
        pytest.param([U, U], 0.0, nan, 0.0, id="speaks-of-nothing"),
        pytest.param([P, P, P, N, U], 60.0, 25.0, 80.0, id="some-of-each"),
        pytest.param([P, N, U, U, U, U, U, U, U, U], 10.0, 50.0, 20.0, id="mostly-silent"),
        pytest.param([P, P, P, N, U, None, None], 60.0, 25.0, 80.0, id="unscored-leave"),
        pytest.param([None], nan, nan, nan, id="nothing-scored"),
        pytest.param([], nan, nan, nan, id="no-questions"),
    ],
)
def test_rates(values: Verdicts, ar: float, ir: float, cr: float) -> None:
    """Equations 1 to 3, in percent."""
    assert [rate(values) for rate in rates] == pytest.approx([ar, ir, cr], nan_ok=True)


@given(verdicts)
def test_rates_are_percentages(values: Verdicts) -> None:
    """Every rate is in [0, 100] or, where there is nothing to divide by, nan."""
    for rate in rates:
        assert isnan(rate(values)) or 0.0 <= rate(values) <= 100.0


@given(verdicts, st.integers())
def test_order_moves_nothing(values: Verdicts, seed: int) -> None:
    """The order of the questions moves no rate."""
    shuffled = random.Random(seed).sample(values, len(values))
    for rate in rates:
        assert rate(shuffled) == pytest.approx(rate(values), nan_ok=True)


@given(verdicts)
def test_unscored_questions_move_nothing(values: Verdicts) -> None:
    """Rates are those of the scored questions alone."""
    scored = [value for value in values if value is not None]
    for rate in rates:
        assert rate(scored) == pytest.approx(rate(values), nan_ok=True)


@given(verdicts)
def test_one_more_right_answer(values: Verdicts) -> None:
    """One more positive never lowers accuracy or coverage and never raises inconsistency."""
    more: Verdicts = [*values, P]
    for rate, sign in ((vcapsbench_ar, 1), (vcapsbench_cr, 1), (vcapsbench_ir, -1)):
        before, after = rate(values), rate(more)
        assert isnan(before) or sign * (after - before) >= -1e-9


@given(verdicts)
def test_one_more_wrong_answer(values: Verdicts) -> None:
    """One more negative never raises accuracy, and never lowers coverage or inconsistency."""
    more: Verdicts = [*values, N]
    for rate, sign in ((vcapsbench_ar, -1), (vcapsbench_cr, 1), (vcapsbench_ir, 1)):
        before, after = rate(values), rate(more)
        assert isnan(before) or sign * (after - before) >= -1e-9


@given(verdicts)
def test_accuracy_is_covered_and_consistent(values: Verdicts) -> None:
    """AR = CR x (1 - IR), which follows from equations 1 to 3 wherever IR is defined."""
    ar, ir, cr = (rate(values) for rate in rates)
    if not isnan(ir):
        assert ar == pytest.approx(cr * (1.0 - ir / 100.0))
