"""CapQuiz's arithmetic: by hand, by property, and against the paper's printed tables."""

from __future__ import annotations

import random
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.verdict import QuizOutcome
from lmms_eval_captions.metrics.capquiz import abstain, capf1, capp, capr

Verdicts = list[QuizOutcome | None]

TP: QuizOutcome | None = "true_positive"
FP: QuizOutcome | None = "false_positive"
FN: QuizOutcome | None = "false_negative"
verdicts = st.lists(st.sampled_from([TP, FP, FN, None]), max_size=30)
scores = (capp, capr, capf1, abstain)
BETTER = (capp, capr, capf1)


@pytest.mark.parametrize(
    ("values", "p", "r", "f1"),
    [
        pytest.param([TP, TP], 100.0, 100.0, 100.0, id="all-right"),
        pytest.param([FP, FP], 0.0, 0.0, 0.0, id="all-wrong"),
        pytest.param([FN, FN], nan, 0.0, 0.0, id="nothing-determined"),
        pytest.param([TP, FP, FN, FN], 50.0, 25.0, 100 / 3, id="some-of-each"),
        pytest.param([TP, TP, TP, FP, FN, FN], 75.0, 50.0, 60.0, id="more-of-each"),
        pytest.param([TP, FP, FN, FN, None], 50.0, 25.0, 100 / 3, id="unscored-leave"),
        pytest.param([None], nan, nan, nan, id="nothing-scored"),
        pytest.param([], nan, nan, nan, id="no-questions"),
    ],
)
def test_scores(values: Verdicts, p: float, r: float, f1: float) -> None:
    """The three scores of section 3.4, in percent."""
    assert [score(values) for score in BETTER] == pytest.approx([p, r, f1], nan_ok=True)
    n_scored = len(values) - values.count(None)
    share = 100 * values.count(FN) / n_scored if n_scored else nan
    assert abstain(values) == pytest.approx(share, nan_ok=True)


@given(verdicts)
def test_scores_are_percentages(values: Verdicts) -> None:
    """Every score is in [0, 100] or, where there is nothing to divide by, nan."""
    for score in scores:
        assert isnan(score(values)) or 0.0 <= score(values) <= 100.0


@given(verdicts, st.integers())
def test_order_moves_nothing(values: Verdicts, seed: int) -> None:
    """The order of the questions moves no score."""
    shuffled = random.Random(seed).sample(values, len(values))
    for score in scores:
        assert score(shuffled) == pytest.approx(score(values), nan_ok=True)


@given(verdicts)
def test_unscored_questions_move_nothing(values: Verdicts) -> None:
    """Scores are those of the scored questions alone."""
    scored = [value for value in values if value is not None]
    for score in scores:
        assert score(scored) == pytest.approx(score(values), nan_ok=True)


@given(verdicts)
def test_one_more_right_answer_never_lowers_a_score(values: Verdicts) -> None:
    """Every score of which higher is better is monotone in the number of right answers."""
    for score in BETTER:
        before, after = score(values), score([*values, TP])
        assert isnan(before) or after >= before - 1e-9


@given(verdicts)
def test_a_wrong_answer_costs_more_than_none(values: Verdicts) -> None:
    """A wrong answer in place of none lowers factuality and the overall score, not coverage."""
    wrong: Verdicts = [*values, FP]
    silent: Verdicts = [*values, FN]
    assert capr(wrong) == capr(silent)
    assert capf1(wrong) <= capf1(silent)
    assert isnan(capp(silent)) or capp(wrong) <= capp(silent)


@given(verdicts)
def test_the_overall_score_is_the_harmonic_mean(values: Verdicts) -> None:
    """CapF1 = 2 CapP CapR / (CapP + CapR), so that it lies between the two; CapR <= CapP."""
    p, r, f1 = (score(values) for score in BETTER)
    if not isnan(p) and p > 0:
        assert f1 == pytest.approx(2 * p * r / (p + r))
        assert r - 1e-9 <= f1 <= p + 1e-9


PRINTED = """
table-3-Gemini-2.5-flash 76.79 83.49 71.08 78.68 85.92 72.57 72.01 77.45 67.28
table-3-Gemini-2.5-pro 78.42 84.56 73.10 80.79 87.50 75.04 72.44 77.28 68.17
table-3-GPT-4o-2024-11-20 72.07 78.46 66.65 74.98 82.21 68.92 64.85 69.38 60.88
table-3-GPT-4.1-2025-04-14 76.54 81.53 72.12 79.34 84.95 74.42 69.53 73.13 66.28
table-3-GPT-5.2-2025-12-11 83.47 86.45 80.68 85.77 88.98 82.79 77.78 80.24 75.46
table-3-AuroraCap-7B 39.86 63.00 29.16 43.86 68.40 32.28 29.48 48.26 21.22
table-3-LLaVA-Video-7B 63.16 73.61 55.30 66.83 78.02 58.45 53.85 62.51 47.30
table-3-Tarsier2-7b 42.37 55.80 34.16 43.55 57.91 34.90 39.44 50.70 32.27
table-3-InternVL3.5-8B 45.69 67.57 34.51 47.67 72.46 35.52 40.89 56.75 31.95
table-3-InternVL3.5-30B-A3B 54.46 70.03 44.55 57.92 75.03 47.16 45.80 57.83 37.92
table-3-Qwen3-VL-2B 67.20 74.81 60.99 70.81 79.28 63.97 58.16 63.85 53.40
table-3-Qwen3-VL-4B 71.47 77.75 66.13 74.53 81.43 68.70 63.80 68.66 59.58
table-3-Qwen3-VL-8B 72.39 78.41 67.22 75.44 82.27 69.65 64.79 69.01 61.06
table-3-Qwen3-VL-32B 77.08 81.01 73.51 79.90 84.22 76.00 69.97 73.01 67.18
table-3-Qwen3-VL-30B-A3B 73.31 79.25 68.20 76.24 82.89 70.58 65.99 70.32 62.17
table-3-Qwen3-VL-235B-A22B 75.60 80.68 71.12 78.33 84.03 73.36 68.75 72.44 65.41
table-4-Gemini-2.5-flash 76.69 83.28 71.06 78.65 85.78 72.61 71.73 77.06 67.09
table-4-Gemini-2.5-pro 78.59 84.69 73.31 80.89 87.47 75.23 72.80 77.77 68.43
table-4-GPT-4o-2024-11-20 74.72 78.20 71.54 78.65 82.47 75.18 64.79 67.50 62.29
table-4-GPT-4.1-2025-04-14 79.16 80.96 77.43 83.23 85.13 81.40 68.82 70.37 67.34
table-4-GPT-5.2-2025-12-11 85.26 87.15 83.45 87.57 89.47 85.75 79.36 81.23 77.58
table-4-AuroraCap-7B 27.00 57.24 17.67 29.31 62.35 19.16 21.15 44.46 13.88
table-4-LLaVA-Video-7B 60.63 69.56 53.73 64.66 74.65 57.03 50.54 57.11 45.32
table-4-Tarsier2-7b 9.95 11.92 8.54 10.20 12.21 8.75 9.32 11.16 8.00
table-4-InternVL3.5-8B 64.03 71.89 57.72 67.53 76.05 60.73 55.20 61.51 50.06
table-4-InternVL3.5-30B-A3B 64.97 73.61 58.14 68.37 77.94 60.88 56.47 63.02 51.15
table-4-Qwen3-VL-2B 68.75 73.40 64.66 73.06 78.08 68.65 57.84 61.58 54.53
table-4-Qwen3-VL-4B 76.50 80.13 73.18 80.12 83.91 76.65 67.15 70.37 64.21
table-4-Qwen3-VL-8B 76.68 80.60 73.12 79.93 84.09 76.17 68.43 71.79 65.38
table-4-Qwen3-VL-32B 78.74 81.77 75.92 81.73 84.83 78.84 71.11 73.96 68.48
table-4-Qwen3-VL-30B-A3B 78.65 82.03 75.53 81.71 85.20 78.49 70.86 73.96 68.01
table-4-Qwen3-VL-235B-A22B 79.01 82.38 75.89 82.16 85.67 78.93 70.97 74.02 68.17
"""
"""Tables 3 and 4: F1, P and R of all questions, of the descriptive and of the inferential ones."""


@pytest.mark.parametrize("row", PRINTED.split("\n")[1:-1], ids=lambda row: row.split()[0])
def test_the_papers_rows_hold_together(row: str) -> None:
    """Verdicts that give a printed P and R give the printed F1, up to rounding."""
    printed = [float(number) for number in row.split()[1:]]
    assert len(printed) == 9
    for f1, p, r in (printed[:3], printed[3:6], printed[6:]):
        n_right = round(1_000 * r)
        n_wrong = round(n_right * (100 / p - 1))
        values: Verdicts = [TP] * n_right + [FP] * n_wrong + [FN] * (100_000 - n_right - n_wrong)
        assert capp(values) == pytest.approx(p, abs=0.002)
        assert capr(values) == pytest.approx(r, abs=0.002)
        assert capf1(values) == pytest.approx(f1, abs=0.012)
