"""The campaign of damaged stores: no reply comes back other than it was stored."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from loguru import logger

from lmms_eval_captions.judges.endpoint.store import segment, store
from store_damage import Count, check_damage, flip, make_store
from told_questions import N_CALLS


def test_the_campaign_passes() -> None:
    """Flipped, cut, exchanged, removed: what is served is right, what stands whole is served."""
    script = Path(__file__).parents[2] / "benchmarks" / "store_damage.py"
    line = [sys.executable, str(script), "--flips", "2000", "--others", "500", "--runs", "9"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout


@pytest.mark.parametrize("benchmark", N_CALLS)
def test_the_campaign_can_fail(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that trusts the lines it reads is found out."""

    def trusting(line: bytes) -> tuple[bytes, bytes] | None:
        try:
            return bytes.fromhex(line[:32].decode()), line[41:-1]
        except ValueError:
            return None

    logger.disable("lmms_eval_captions.judges")
    data, rng, count = make_store(benchmark, tmp_path), random.Random(0), Count()
    for _ in range(100):
        check_damage("flip", data, flip(data, rng, 1), is_open=True, count=count)
    assert not count.failures
    for module in (segment, store):
        monkeypatch.setattr(module, "read_line", trusting)
    for _ in range(100):
        check_damage("flip", data, flip(data, rng, 1), is_open=True, count=count)
    logger.enable("lmms_eval_captions.judges")
    assert count.failures
