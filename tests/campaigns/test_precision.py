"""A short share of the replayed samples of VDC's real questions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import precision


@pytest.fixture
def questions(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> precision.Questions:
    """The real ones, in the folders that the task reads."""
    (tmp_path / "vdc").mkdir()
    (tmp_path / "vdc/VDCScore_qa").symlink_to(shared_data / "vdc_qa")
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    return precision.real_questions()


@pytest.mark.parametrize("case", precision.CASES, ids=lambda case: case.name)
def test_a_replayed_run_keeps_what_it_promises(
    case: precision.Case, questions: precision.Questions
) -> None:
    """Two runs over all 96,825 questions ask no more than they may, and are as near as they say."""
    assert len(questions.aspects) == 96_825
    verdicts = precision.drawn_verdicts(case, questions, np.random.default_rng(7))
    truth = precision.score_of_all(questions, verdicts.judge)
    for run in range(2):
        found = precision.replay(case, questions, verdicts, np.random.default_rng(run))
        assert found.half_width <= precision.HALF_WIDTH
        assert abs(found.score - truth) <= 2 * found.half_width
        # One run may ask somewhat more than all do on average.
        assert found.asked <= 1.35 * (case.most_asked or 0.3)


def test_verdicts_are_as_the_case_says(questions: precision.Questions) -> None:
    """Accuracies are the paper's, the judges correlate as wanted, and grades follow verdicts."""
    case = precision.CASES[3]
    verdicts = precision.drawn_verdicts(case, questions, np.random.default_rng(7))
    assert np.corrcoef(verdicts.judge, verdicts.cheap)[0, 1] == pytest.approx(0.9, abs=0.005)
    for number, share in enumerate(precision.ACCURACIES.values()):
        found = verdicts.judge[questions.aspects == number].mean()
        assert found == pytest.approx(share, abs=0.02)
    assert ((verdicts.grades >= 3) == (verdicts.cheap == 1)).all()
