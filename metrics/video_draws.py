"""Videos drawn with replacement: how often a bootstrap takes each of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_DRAWS: Final = 1999
"""One less than a multiple of 40, so that the ends of a 95 % interval are draws themselves."""

_AT_ONCE: Final = 100_000
"""Videos that are drawn at once, so few that a processor's cache holds them."""


@lru_cache(maxsize=4)
def video_draws(n_videos: int, *, n_draws: int = N_DRAWS, seed: int = 0) -> NDArray[np.float64]:
    """How often each video is taken in each draw of as many videos, with replacement.

    A video is taken with all its questions and judge runs: they are right or wrong together.

    Args:
        n_videos: >= 1.
        n_draws: >= 1.
        seed: The same seed gives the same draws, whatever was drawn before.

    Returns:
        Shape (n_draws, n_videos), whole numbers >= 0 whose rows sum to n_videos; not to be written
        to.

    Source:
        Efron (1979); of clusters: Field and Welsh, Bootstrapping clustered data (2007).

    >>> video_draws(3, n_draws=2).sum(axis=1).tolist()
    [3.0, 3.0]
    """
    rng = np.random.default_rng(seed)
    draws = np.empty((n_draws, n_videos))
    n_rows = max(1, _AT_ONCE // n_videos)
    for row in range(0, n_draws, n_rows):
        some = draws[row : row + n_rows]
        taken = rng.integers(0, n_videos, size=some.shape, dtype=np.int64)
        taken += n_videos * np.arange(len(some))[:, None]
        some[:] = np.bincount(taken.ravel(), minlength=some.size).reshape(some.shape)
    draws.flags.writeable = False
    return draws
