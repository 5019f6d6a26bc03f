"""Whether a judge says the same of a question every time that it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_ROUNDING: Final = 1e-9
"""Two numbers that are so much further apart than allowed differ by rounding alone."""


def same_verdict(runs: Sequence[object], *, within: float = 0.0) -> bool | None:
    """Whether a question got the same verdict in every judge run.

    Args:
        runs: Shape (n_runs,): a label or a number of each run; ``None`` is unscored.
        within: Numbers that are at most so far apart are the same, >= 0, in their own unit.

    Returns:
        ``False`` where two runs differ; ``None`` where that is not known: no two do, but a run is
        unscored or there are fewer than two.

    Source:
        VidCapBench, section 3.2 ("consistent across all three trials"). It says nothing of
        numbers, whose rule is ours, or of unscored questions.

    >>> same_verdict(["yes", "yes", "yes"]), same_verdict(["yes", None, "no"])
    (True, False)
    >>> same_verdict(["yes", None, "yes"]) is None, same_verdict([61.0, 64.0], within=5.0)
    (True, True)
    """
    said = [verdict for verdict in runs if verdict is not None]
    numbers = [verdict for verdict in said if isinstance(verdict, int | float)]
    if numbers and len(numbers) == len(said):
        differ = max(numbers) - min(numbers) > within + _ROUNDING
    else:
        differ = any(verdict != said[0] for verdict in said)
    if differ:
        return False
    return True if len(said) == len(runs) > 1 else None
