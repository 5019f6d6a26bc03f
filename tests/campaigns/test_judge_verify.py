"""A short share of what ``benchmarks/judge_verify.py`` measures."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from judge_verify import Rounds, end_to_end, exact, simulated


def test_the_sequential_test_keeps_its_promises() -> None:
    """Exactly, and with 2,000 judges that are drawn."""
    promises = [*exact(), *simulated(2_000, random.Random(0))]
    assert [promise.words for promise in promises if not promise.holds] == []
    assert len(promises) == 12


def test_honest_judges_pass_and_impostors_do_not(tmp_path: Path, bench: pytest.MonkeyPatch) -> None:
    """Three honest runs of each kind and one of each impostor, with all benchmarks."""
    for name in ("LMMS_CAPTIONS_CACHE", "LMMS_CAPTIONS_JUDGE", "LMMS_CAPTIONS_JUDGE_URL"):
        bench.setenv(name, "")  # put back afterwards
    promises = list(end_to_end(Rounds(tmp_path), n_honest=3, n_each=1))
    assert [promise.words for promise in promises if not promise.holds] == []
    assert len(promises) == 8
