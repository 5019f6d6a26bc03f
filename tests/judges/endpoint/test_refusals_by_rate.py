"""What is refused at which rate: noise beneath the likeliest limit."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.refusals_by_rate import RefusalsByRate


def _counted(*counts: tuple[float, float, float]) -> RefusalsByRate:
    by_rate = RefusalsByRate()
    for rate, n_sent, n_refused in counts:
        by_rate.add(rate, n_sent=n_sent, n_refused=n_refused)
    return by_rate


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param([], (0, 0), id="nothing sent"),
        pytest.param([(5, 100, 10), (9, 100, 11)], (200, 21), id="noise alone"),
        pytest.param([(5, 100, 10), (9, 100, 55)], (100, 10), id="noise and a limit"),
        pytest.param([(5, 100, 0), (9, 100, 50)], (100, 0), id="a limit alone"),
        pytest.param(
            [(5, 100, 0), (10, 400, 0), (11, 400, 36)], (100, 0), id="a smooth limit at 10"
        ),
        pytest.param([(5, 100, 30), (9, 100, 5)], (200, 35), id="less at a higher rate"),
        pytest.param([(5, 2, 0), (9, 10, 1)], (12, 1), id="too few to tell"),
    ],
)
def test_noise_is_what_is_refused_beneath_the_limit(
    counts: list[tuple[float, float, float]], expected: tuple[float, float]
) -> None:
    """A share that does not depend on the rate is noise; what goes beyond a limit is not."""
    assert _counted(*counts).beneath_limit() == expected


def test_what_is_long_ago_counts_less() -> None:
    """Of 1,000 requests half are kept, and nothing is kept after all is forgotten."""
    by_rate = _counted((5, 1000, 100))
    by_rate.forget(600)
    assert by_rate.beneath_limit() == (500, 50)
    by_rate.forget(600)
    assert by_rate.beneath_limit() == (500, 50)
    by_rate.clear()
    assert by_rate.beneath_limit() == (0, 0)
