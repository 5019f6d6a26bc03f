"""Which clips are kept where the best are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_DECIMALS: Final = 9
"""Scores that are the same to so many places are tied: the rest is rounding."""
_DIGEST_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClips:
    """The kept clips, and where the cut is."""

    mask: NDArray[np.bool_]
    """Shape (n_clips,): which are kept."""
    cutoff: float
    """The lowest score that is kept, to 9 decimals; ``nan`` where no clip is."""
    n_tied_kept: int
    """Kept clips with that score."""
    n_tied_dropped: int
    """Dropped clips with that score."""


def kept_clips(clip_ids: Sequence[str], scores: Floats, *, keep: float) -> KeptClips:
    """The best clips by their scores, ``round(keep * n)`` of the n that have one.

    Of clips tied at the cut those with the smallest hash of their id are kept: the same ones
    whatever order the clips come in and whatever else is kept, and which says nothing of a clip.

    Args:
        clip_ids: Shape (n_clips,), each clip's own; read where its score is tied at the cut alone.
        scores: Shape (n_clips,), higher is better; ``nan`` is none, and such clips are never kept.
        keep: Share of the clips with a score, in (0, 1].

    Returns:
        A mask of the clips as they came, the score at the cut, and the clips tied there.

    Raises:
        ValueError: If there are not as many ids as scores, a score is infinite, or ``keep`` is no
            such share.

    Source:
        Our own.

    >>> scores = np.array([0.8, 1.0, 0.6, 0.8, np.nan, 0.8])
    >>> found = kept_clips(["a", "b", "c", "d", "e", "f"], scores, keep=0.6)
    >>> found.mask.tolist(), found.cutoff, found.n_tied_kept, found.n_tied_dropped
    ([True, True, False, False, False, True], 0.8, 2, 1)
    """
    if scores.shape != (len(clip_ids),):
        raise ValueError(
            f"kept_clips: expected a score of each of {len(clip_ids)} clips, got {scores.shape}"
        )
    if np.isinf(scores).any():
        raise ValueError("kept_clips: expected scores that are finite or nan, got an infinite one")
    if not 0 < keep <= 1:
        raise ValueError(f"kept_clips: expected 0 < keep <= 1, got {keep!r}")
    rounded = np.round(scores, _DECIMALS)
    known = rounded[~np.isnan(rounded)]
    n_kept = round(keep * len(known))
    if not n_kept:
        none = np.zeros(len(scores), dtype=np.bool_)
        return KeptClips(mask=none, cutoff=float("nan"), n_tied_kept=0, n_tied_dropped=0)
    known.partition(len(known) - n_kept)
    cutoff = known[len(known) - n_kept]
    mask = rounded > cutoff
    tied = np.flatnonzero(rounded == cutoff)
    n_tied_kept = n_kept - int(mask.sum())
    mask[_first_by_hash(tied, clip_ids, n_tied_kept)] = True
    return KeptClips(
        mask=mask,
        cutoff=float(cutoff),
        n_tied_kept=n_tied_kept,
        n_tied_dropped=len(tied) - n_tied_kept,
    )


def _first_by_hash(
    places: NDArray[np.intp], clip_ids: Sequence[str], n_first: int
) -> NDArray[np.intp]:
    """The places of the clips with the smallest hashes of their ids, ``n_first`` >= 1 of them."""
    if n_first == len(places):
        return places
    digests = (
        blake2b(clip_ids[place].encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
        for place in places
    )
    hashes = np.fromiter(
        (int.from_bytes(digest.digest(), "big") for digest in digests),
        dtype=np.uint64,
        count=len(places),
    )
    first: NDArray[np.intp] = places[np.argpartition(hashes, n_first - 1)[:n_first]]
    return first
