"""VCapsBench's AR, IR and CR, and the paper's tables."""

from __future__ import annotations

import random
from collections.abc import Collection
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from lmms_eval_captions.judges.verdict import Agreement
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.benchmark import GROUP_OF
from lmms_eval_captions.metrics.vcapsbench import vcapsbench_ar, vcapsbench_cr, vcapsbench_ir
from vcapsbench_paper import HALF, MODELS, TABLE_1, TABLE_3, TABLE_4, Rates, Table, cells

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


Cell = tuple[str, str, Rates]
"""Column, or judge, and model, with what is printed."""

# Column and model, to the printed AR and the one that the printed IR and CR give.
DO_NOT_FOLLOW_1 = {
    ("proper noun", "Qwen2VL-7B"): (51.98, 51.90),
    ("action", "VideoLLaMA3-7B"): (66.29, 62.11),
    ("count", "Qwen2VL-7B"): (60.27, 60.30),
    ("entity size", "InternVL2.5-8B"): (36.49, 36.46),
    ("entity shape", "Qwen2VL-7B"): (22.62, 22.71),
    ("entity shape", "InternVL2.5-8B"): (23.04, 23.03),
    ("color grading", "VideoLLaMA3-7B"): (35.67, 16.94),
    ("color", "VideoLLaMA3-7B"): (56.48, 52.81),
}
DO_NOT_FOLLOW_3 = {("ALL", "Qwen2.5VL-7B"): (58.74, 58.77)}
DO_NOT_FOLLOW_4 = {
    ("Manual", "Gemini-2.5-Pro-Preview"): (76.87, 79.26),
    ("Manual", "GPT-4o"): (65.47, 64.33),
    ("Manual", "Qwen2.5VL-72B"): (62.76, 62.31),
}


def _ar(ir: float, cr: float) -> float:
    """AR of verdicts that have this IR (to 0.001) and CR (exactly)."""
    n_spoken = round(1_000 * cr)
    n_negative = round(n_spoken * ir / 100)
    values: list[Agreement | None] = ["negative"] * n_negative
    values += ["positive"] * (n_spoken - n_negative)
    values += ["unanswerable"] * (100_000 - n_spoken)
    assert vcapsbench_cr(values) == pytest.approx(cr, abs=1e-9)
    assert vcapsbench_ir(values) == pytest.approx(ir, abs=0.004)
    return vcapsbench_ar(values)


def _follows(rates: Rates, ar: float) -> bool:
    assert rates.ar is not None
    assert rates.ir is not None
    assert rates.cr is not None
    allowed = HALF * (1 + (1 - rates.ir / 100) + rates.cr / 100) + 0.0005
    return abs(rates.ar - ar) <= allowed


@pytest.mark.parametrize(
    ("table", "n_complete", "expected"),
    [
        pytest.param(list(cells(TABLE_1)), 110, DO_NOT_FOLLOW_1, id="table-1"),
        pytest.param(list(cells(TABLE_3)), 210, DO_NOT_FOLLOW_3, id="table-3"),
        pytest.param(
            [(judge, model, rates) for (judge, model), rates in TABLE_4.items()],
            9,
            DO_NOT_FOLLOW_4,
            id="table-4",
        ),
    ],
)
def test_every_complete_cell_but_those_listed_holds_together(
    table: list[Cell], n_complete: int, expected: dict[tuple[str, str], tuple[float, float]]
) -> None:
    """Verdicts with a cell's IR and CR have its AR, up to rounding; the rest is listed above."""
    n_found, do_not_follow = 0, {}
    for column, model, rates in table:
        if rates.ar is None or rates.ir is None or rates.cr is None:
            continue
        n_found += 1
        ar = _ar(rates.ir, rates.cr)
        if not _follows(rates, ar):
            do_not_follow[column, model] = (rates.ar, round(ar, 2))
    assert n_found == n_complete
    assert do_not_follow == expected


def _printed_ar(table: Table, column: str) -> list[float]:
    return [float(number) for number in table[column][0].split()]


def test_entity_and_entity_size_are_swapped() -> None:
    """In all rows of Table 3 and the last four of Table 1, where section 4.1 has them right.

    Of the first six models the two tables differ by 24 points and more as they are headed, and by
    less than 2 once Table 3 is put right; of the others they agree, both swapped. The prose calls
    90.12 the CR of "Entity" of Gemini-2.5-Pro-Preview, which Table 1 has under "Entity Size".
    """
    entity_1, size_1 = (_printed_ar(TABLE_1, name) for name in ("entity", "entity size"))
    entity_3, size_3 = (_printed_ar(TABLE_3, name) for name in ("entity", "entity size"))
    for model in range(6):
        assert abs(entity_1[model] - entity_3[model]) > 24
        assert abs(size_1[model] - size_3[model]) > 24
        assert abs(entity_1[model] - size_3[model]) < 2
        assert abs(size_1[model] - entity_3[model]) < 2
    for model in range(6, 10):
        assert abs(entity_1[model] - entity_3[model]) < 6
        assert abs(size_1[model] - size_3[model]) < 6
        assert entity_1[model] < size_1[model]
    whole = {(column, model): rates for column, model, rates in cells(TABLE_1)}
    assert whole["entity size", "Gemini-2.5-Pro-Preview"].cr == 90.12


# Section 3.3: questions, and the least and most of a category.
N_QUESTIONS, LEAST, MOST = 109_796, 2_431, 6_513
SWAP = {"entity": "entity size", "entity size": "entity"}
MISPRINTED = [(column, "VideoLLaMA3-7B") for column in ("action", "color grading", "color")]

Row = tuple[list[float], float]
"""A rate of a model in each of the 21 categories, and in ALL."""


def _rows(
    table: Table, rate: str, *, swap: bool, misprinted: Collection[tuple[str, str]] = ()
) -> list[Row]:
    """The models of which the rate is known in all categories and in ALL.

    Args:
        table: One of the paper's.
        rate: ``ar`` or ``cr``; where it is illegible, it is what the two others give.
        swap: Whether Entity and Entity Size change places.
        misprinted: Cells whose AR is taken for illegible.
    """
    by_cell = {(column, model): rates for column, model, rates in cells(table)}
    for cell in misprinted:
        by_cell[cell] = by_cell[cell]._replace(ar=None)
    rows: list[Row] = []
    for model in MODELS:
        columns = [SWAP.get(column, column) if swap else column for column in GROUP_OF]
        rates = [_rate(by_cell[column, model], rate) for column in columns]
        parts = [value for value in rates if value is not None]
        whole: float | None = getattr(by_cell["ALL", model], rate)
        if whole is not None and len(parts) == len(columns):
            rows.append((parts, whole))
    return rows


def _rate(rates: Rates, rate: str) -> float | None:
    printed: float | None = getattr(rates, rate)
    if rates.ir is None or printed is not None:
        return printed
    if rate == "cr":
        return None if rates.ar is None else rates.ar / (1 - rates.ir / 100)
    return None if rates.cr is None else _ar(rates.ir, rates.cr)


def _misfit(rows: list[tuple[list[float], float]]) -> float:
    above = [[*parts, -1.0] for parts, _ in rows]
    below = [[*(-part for part in parts), -1.0] for parts, _ in rows]
    solution = linprog(
        [0.0] * 21 + [1.0],
        A_ub=above + below,
        b_ub=[whole for _, whole in rows] + [-whole for _, whole in rows],
        A_eq=[[1.0] * 21 + [0.0]],
        b_eq=[1.0],
        bounds=[(LEAST / N_QUESTIONS, MOST / N_QUESTIONS)] * 21 + [(0.0, inf)],
    )
    assert solution.success
    return float(solution.fun)


ROUNDING = 2 * HALF


@pytest.mark.parametrize(
    ("swap", "misprinted", "least", "most"),
    [
        pytest.param(True, MISPRINTED, 0.0, ROUNDING, id="put-right"),
        pytest.param(False, MISPRINTED, 1.2 * ROUNDING, inf, id="entity-as-headed"),
        pytest.param(True, (), 20 * ROUNDING, inf, id="videollama3-as-printed"),
    ],
)
def test_all_is_micro_over_questions(
    swap: bool, misprinted: Collection[tuple[str, str]], least: float, most: float
) -> None:
    """One set of category sizes gives ALL of the 26 rows that are known whole, up to rounding.

    None does as long as Table 3's Entity and Entity Size, or VideoLLaMA3-7B's three cells of
    Table 1, count as they are printed.
    """
    first = _rows(TABLE_1, "ar", swap=False, misprinted=misprinted)
    third = _rows(TABLE_3, "ar", swap=swap) + _rows(TABLE_3, "cr", swap=swap)
    assert (len(first), len(third)) == (6, 20)
    assert least <= _misfit(first + third) <= most


def test_all_is_no_mean_of_the_categories() -> None:
    """Averaging the 21 categories would be up to 1.2 points away: the test above can tell."""
    rows = _rows(TABLE_3, "ar", swap=True) + _rows(TABLE_3, "cr", swap=True)
    assert max(abs(sum(parts) / 21 - whole) for parts, whole in rows) > 1.2
