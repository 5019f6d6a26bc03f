"""For how many captioners a question is judged the same every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

KNOWN_SAME = 1
KNOWN_DIFFERENT = 0
UNKNOWN = -1


def consistent_times(same: NDArray[np.int8]) -> list[int]:
    """The questions whose verdicts are the same in all judge runs for so many captioners.

    Args:
        same: Shape (n_captioners, n_questions), n_captioners >= 1: ``KNOWN_SAME``,
            ``KNOWN_DIFFERENT`` or ``UNKNOWN``.

    Returns:
        Shape (n_captioners + 1,): the questions that are the same for all captioners, for all but
        one, and so on down to none; those that are unknown for a captioner are in no count.

    Source:
        VidCapBench, Table 8 ("Consistent Times", "# Samples").

    >>> consistent_times(np.array([[1, 1, 0, -1], [1, 0, 0, 1]], dtype=np.int8))
    [1, 1, 1]
    """
    known = (same != UNKNOWN).all(axis=0)
    times = (same[:, known] == KNOWN_SAME).sum(axis=0)
    counts: list[int] = np.bincount(times, minlength=len(same) + 1)[::-1].tolist()
    return counts
