"""A short share of the simulated clips of which the best are kept."""

from __future__ import annotations

import numpy as np
import pytest

import keep_error
from lmms_eval_captions.metrics.keep_error import model_error


@pytest.mark.parametrize("case", keep_error.CASES[::3], ids=lambda case: case.name)
def test_what_is_stated_is_near_what_is_so(case: keep_error.Case) -> None:
    """20,000 clips: within what is allowed for, and half a point for chance."""
    drawn = case.draw(np.random.default_rng(5), 20_000)
    for keep in keep_error.KEEPS[1:]:
        said = keep_error.stated(case, drawn, keep)
        off = case.most_off.get(keep, model_error(keep)) + 0.005
        assert said.share == pytest.approx(keep_error.actual(drawn, keep), abs=off)
        assert said.low <= said.share <= said.high


@pytest.mark.parametrize("case", keep_error.CASES, ids=lambda case: case.name)
def test_halves_tell_how_scores_go_with_the_truth(case: keep_error.Case) -> None:
    """But where each question of a clip asks for another aspect: then it is too low."""
    drawn = case.draw(np.random.default_rng(6), 20_000)
    off = keep_error.true_reliability(drawn) - keep_error.reliability_of(case, drawn).value
    low, high = (0.1, 0.2) if "another aspect" in case.name else (-0.03, 0.03)
    assert low < off < high


def test_it_prints_both_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row for each case, then one for each number of few clips; 0 where all is as promised."""
    monkeypatch.setattr(keep_error, "CASES", keep_error.CASES[:1])
    assert keep_error.main(["--clips", "20000", "--runs", "20"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| U, 5")]
    assert len(rows) == 1 + len(keep_error.FEW)
    assert all(row.endswith("| yes |") for row in rows)
