"""Mean ratings from 1 to 5."""

from __future__ import annotations

from math import nan
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.metrics.gveval import mean_rating


@pytest.mark.parametrize(
    ("videos", "expected"),
    [
        pytest.param([[5.0], [2.0]], 3.5, id="two"),
        pytest.param([[5.0], [None]], 5.0, id="unscored-leaves-the-denominator"),
        pytest.param([[1.0], [1.0]], 1.0, id="the-lowest-counts"),
        pytest.param([[None]], nan, id="nothing-scored"),
        pytest.param([], nan, id="no-captions"),
    ],
)
def test_hand_worked_ratings(videos: list[list[float | None]], expected: float) -> None:
    """The number is the mean over captions, unscored ones left out."""
    assert mean_rating(videos) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("rating", [0.0, 5.5, -1.0])
def test_a_rating_off_the_scale_is_an_error(rating: float) -> None:
    """A reader that lets one through is found out."""
    with pytest.raises(ValueError, match="between 1 and 5"):
        mean_rating([[rating]])


@given(st.lists(st.integers(1, 5), min_size=1))
def test_it_is_the_mean_and_stays_on_the_scale(ratings: list[int]) -> None:
    """As another function has it."""
    assert mean_rating([[float(rating)] for rating in ratings]) == pytest.approx(fmean(ratings))
