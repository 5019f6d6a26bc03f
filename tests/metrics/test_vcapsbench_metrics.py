"""VCapsBench's arithmetic: by hand, by property, and against the paper's printed tables."""

from __future__ import annotations

import random
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.verdict import Agreement
from lmms_eval_captions.metrics.vcapsbench_ar import vcapsbench_ar
from lmms_eval_captions.metrics.vcapsbench_cr import vcapsbench_cr
from lmms_eval_captions.metrics.vcapsbench_ir import vcapsbench_ir

Verdicts = list[Agreement | None]

P, N, U = "positive", "negative", "unanswerable"
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


# Column "ALL" of Table 3 (judge GPT-4.1), with the last model's CR from Table 4, and what section 4
# and Table 4 print for all questions with Gemini-2.5-Pro-Preview as the judge: AR, IR, CR.
_PRINTED = [
    pytest.param(47.74, 10.05, 53.08, id="LLaVA-Video-7B"),
    pytest.param(47.45, 9.65, 52.52, id="Qwen2VL-7B"),
    pytest.param(48.45, 10.50, 54.13, id="VideoLLaMA3-7B"),
    pytest.param(49.70, 13.12, 57.21, id="NVILA-8B"),
    pytest.param(54.85, 13.41, 63.34, id="InternVL2.5-8B"),
    pytest.param(63.08, 10.98, 70.86, id="Qwen2.5VL-72B"),
    pytest.param(66.49, 10.24, 74.07, id="GPT-4o"),
    pytest.param(75.56, 10.49, 84.42, id="Gemini2.5-Pro-Flash"),
    pytest.param(76.73, 10.28, 85.52, id="Gemini2.5-Pro-Preview"),
    pytest.param(73.88, 14.62, 86.52, id="judged-by-gemini-Gemini2.5-Pro-Preview"),
    pytest.param(63.08, 15.90, 75.01, id="judged-by-gemini-GPT-4o"),
    pytest.param(61.20, 16.02, 72.87, id="judged-by-gemini-Qwen2.5VL-72B"),
]


@pytest.mark.parametrize(("ar", "ir", "cr"), _PRINTED)
def test_the_papers_rows_hold_together(ar: float, ir: float, cr: float) -> None:
    """Verdicts that give a row's printed IR and CR give its printed AR, up to rounding."""
    n_spoken = round(1_000 * cr)
    n_negative = round(n_spoken * ir / 100)
    values: Verdicts = [N] * n_negative + [P] * (n_spoken - n_negative) + [U] * (100_000 - n_spoken)
    assert vcapsbench_cr(values) == pytest.approx(cr, abs=0.001)
    assert vcapsbench_ir(values) == pytest.approx(ir, abs=0.001)
    assert vcapsbench_ar(values) == pytest.approx(ar, abs=0.016)


def test_a_row_of_the_paper_that_does_not_hold_together() -> None:
    """Table 3 prints 58.74 for Qwen2.5VL-7B, where its IR and CR give 58.77."""
    assert pytest.approx(58.77, abs=0.005) == 65.75 * (1 - 10.62 / 100)
