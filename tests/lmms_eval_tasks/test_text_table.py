"""Tables as text."""

from __future__ import annotations

import pytest

from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

ROWS = [("task", "judge", "calls"), ("vdc_camera", "", "19,112"), ("all", "j", "")]


@pytest.mark.parametrize(
    ("n_left", "lines"),
    [
        pytest.param(
            None,
            ["task        judge  calls", "vdc_camera         19,112", "all         j"],
            id="all",
        ),
        pytest.param(
            2,
            ["task        judge   calls", "vdc_camera         19,112", "all         j"],
            id="two",
        ),
        pytest.param(
            0,
            ["      task  judge   calls", "vdc_camera         19,112", "       all      j"],
            id="none",
        ),
    ],
)
def test_columns_are_as_wide_as_their_longest_cell(n_left: int | None, lines: list[str]) -> None:
    """Words are aligned left, numbers right, and no line ends in blanks."""
    assert text_table(ROWS, n_left=n_left) == lines


def test_given_widths_are_kept_and_longer_cells_are_not_cut() -> None:
    """A table in several parts, each printed by itself, has the same columns throughout."""
    lines = text_table([("a", "1.00"), ("abcdef", "10.00")], n_left=1, gap="", widths=(4, 6))
    assert lines == ["a     1.00", "abcdef 10.00"]


def test_a_row_with_another_number_of_cells_is_an_error() -> None:
    """No cell is lost unseen."""
    with pytest.raises(ValueError, match="zip"):
        text_table([("a", "b"), ("c",)])
