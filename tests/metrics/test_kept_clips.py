"""Which clips are kept: the best, of those tied at the cut by a hash of their ids."""

from __future__ import annotations

import subprocess
import sys
from hashlib import blake2b
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.metrics.kept_clips import kept_clips


@pytest.mark.parametrize(
    ("scores", "keep", "kept", "cutoff", "tied"),
    [
        pytest.param([0.1, 0.9, 0.5, 0.7], 0.5, "bd", 0.7, (1, 0), id="no ties"),
        pytest.param([0.1, nan, 0.5, 0.7], 0.67, "cd", 0.5, (1, 0), id="one without a score"),
        pytest.param([0.5, 0.9, 0.5, 0.1], 0.75, "abc", 0.5, (2, 0), id="all tied ones are kept"),
        pytest.param([0.2, 0.9, 0.2, 0.1], 1.0, "abcd", 0.1, (1, 0), id="all"),
        pytest.param([0.2, nan, 0.2, 0.1], 1.0, "acd", 0.1, (1, 0), id="all that have a score"),
        pytest.param([0.2, 0.9, 0.2, 0.1], 0.1, "", nan, (0, 0), id="less than half a clip"),
        pytest.param([nan, nan, nan, nan], 0.5, "", nan, (0, 0), id="no scores"),
        pytest.param([0.5, 0.5, 0.5, 0.5], 0.5, "ac", 0.5, (2, 2), id="all tied: by hash"),
        pytest.param([0.3, 0.1 + 0.2, 0.3, 1.0], 0.5, "cd", 0.3, (1, 2), id="but for rounding"),
    ],
)  # fmt: skip
def test_worked_examples(
    scores: list[float], keep: float, kept: str, cutoff: float, tied: tuple[int, int]
) -> None:
    """Four clips a to d, whose hashes are in the order c, a, b, d."""
    found = kept_clips("abcd", np.array(scores), keep=keep)
    assert "".join(np.array(list("abcd"))[found.mask]) == kept
    assert found.cutoff == pytest.approx(cutoff, nan_ok=True)
    assert (found.n_tied_kept, found.n_tied_dropped) == tied


@pytest.mark.parametrize(
    ("scores", "keep", "message"),
    [
        pytest.param([0.5, 0.6, 0.7], 0.5, "a score of each of 2 clips", id="one score more"),
        pytest.param([[0.5, 0.6]], 0.5, "a score of each of 2 clips", id="a table"),
        pytest.param([0.5, np.inf], 0.5, "got an infinite one", id="infinite"),
        pytest.param([0.5, 0.6], 0.0, "0 < keep <= 1", id="nothing"),
        pytest.param([0.5, 0.6], 80, "0 < keep <= 1", id="percent"),
    ],
)
def test_what_makes_no_sense_is_refused(scores: list[float], keep: float, message: str) -> None:
    """Scores of other clips, and shares that are none."""
    with pytest.raises(ValueError, match=message):
        kept_clips(["a", "b"], np.array(scores), keep=keep)


_clips = st.dictionaries(
    st.text(max_size=4),
    st.one_of(st.integers(0, 5).map(lambda k: k / 5), st.just(nan)),
    max_size=40,
)


@given(_clips, st.floats(0.01, 1))
def test_the_same_clips_are_kept_in_any_order(clips: dict[str, float], keep: float) -> None:
    """Exactly ``round(keep * n)``, none worse than one that is dropped, none without a score."""
    ids = list(clips)
    scores = np.array([clips[clip_id] for clip_id in ids], dtype=float)
    found = kept_clips(ids, scores, keep=keep)
    kept = {ids[place] for place in np.flatnonzero(found.mask)}
    n_known = int((~np.isnan(scores)).sum())
    assert len(kept) == round(keep * n_known)
    assert not any(isnan(clips[clip_id]) for clip_id in kept)
    worst = min((clips[clip_id] for clip_id in kept), default=nan)
    assert found.cutoff == pytest.approx(worst, nan_ok=True)
    assert not (scores[~found.mask] > found.cutoff + 1e-6).any()
    backwards = kept_clips(ids[::-1], scores[::-1], keep=keep)
    assert {ids[::-1][place] for place in np.flatnonzero(backwards.mask)} == kept


@given(_clips, st.floats(0.01, 1))
def test_it_is_a_sort_by_score_and_hash(clips: dict[str, float], keep: float) -> None:
    """As a plain sort of all clips has it."""
    known = [clip_id for clip_id, score in clips.items() if not isnan(score)]

    def place(clip_id: str) -> tuple[float, bytes]:
        encoded = clip_id.encode("utf-8", "surrogatepass")
        return -clips[clip_id], blake2b(encoded, digest_size=8).digest()

    expected = sorted(known, key=place)[: round(keep * len(known))]
    found = kept_clips(list(clips), np.array(list(clips.values()), dtype=float), keep=keep)
    assert {list(clips)[at] for at in np.flatnonzero(found.mask)} == set(expected)


def test_what_else_is_judged_moves_no_tied_clip() -> None:
    """Ties are broken alike among more clips: those kept of half the clips are kept of all."""
    ids = [f"clip {number}" for number in range(1000)]
    all_ = kept_clips(ids, np.ones(1000), keep=0.3).mask
    assert all_[:500].sum() == pytest.approx(150, abs=40)
    some = kept_clips(ids[:500], np.ones(500), keep=all_[:500].sum() / 500).mask
    assert (some == all_[:500]).all()


def test_ids_say_nothing_of_who_is_kept() -> None:
    """Of ids in a row, every part keeps its share."""
    ids = [f"{number:07}" for number in range(40_000)]
    kept = kept_clips(ids, np.ones(40_000), keep=0.25).mask
    assert kept.reshape(8, -1).mean(axis=1) == pytest.approx(np.full(8, 0.25), abs=0.025)


def test_ids_that_are_no_unicode_are_hashed_too() -> None:
    """File names that cannot be decoded come with lone surrogates."""
    found = kept_clips(["\udcff", "\udcfe"], np.array([0.5, 0.5]), keep=0.5)
    assert found.mask.sum() == 1


_TWO_MILLION = """
import resource, time
import numpy as np
from lmms_eval_captions.metrics.kept_clips import kept_clips

scores = np.random.default_rng(0).binomial(5, 0.8, 2_000_000) / 5
ids = [f"{number:07}" for number in range(2_000_000)]
before, started_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
found = kept_clips(ids, scores, keep=0.8)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(int(found.mask.sum()), time.process_time() - started_s, grown / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in other units")
def test_two_million_clips_take_seconds_and_little_memory() -> None:
    """A third of them tied at the cut, in a process of their own."""
    done = subprocess.run(
        [sys.executable, "-c", _TWO_MILLION], capture_output=True, text=True, check=True
    )
    n_kept, seconds, megabytes = map(float, done.stdout.split())
    assert n_kept == 1_600_000
    assert seconds < 20
    assert megabytes < 300
