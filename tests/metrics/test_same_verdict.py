"""A question is stable where every judge run says the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.metrics.agreement import same_verdict

VERDICTS = st.one_of(st.none(), st.sampled_from(["yes", "no", "neutral"]))


@pytest.mark.parametrize(
    ("runs", "within", "expected"),
    [
        pytest.param(["yes", "yes"], 0.0, True, id="same"),
        pytest.param(["yes", "no", "yes"], 0.0, False, id="differs"),
        pytest.param(["yes", None], 0.0, None, id="unscored"),
        pytest.param([None, None], 0.0, None, id="never-scored"),
        pytest.param(["yes", None, "no"], 0.0, False, id="differs-beside-unscored"),
        pytest.param(["yes"], 0.0, None, id="one-run"),
        pytest.param([4.0, 4.0, 4.0], 0.25, True, id="equal-numbers"),
        pytest.param([4.0, 3.0, 4.0], 0.25, False, id="other-numbers"),
        pytest.param([79.4, 79.6, 84.4], 5.0, True, id="near-numbers"),
        pytest.param([79.4, 84.5], 5.0, False, id="far-numbers"),
        pytest.param([0.1, 0.15], 0.05, True, id="rounding"),
        pytest.param([[1, 2], [1, 2]], 0.0, True, id="equal-lists"),
        pytest.param([[1, 2], [1, 3]], 0.0, False, id="other-lists"),
    ],
)
def test_worked_examples(runs: list[object], within: float, *, expected: bool | None) -> None:
    """Labels must be equal, numbers near; a missing verdict hides no difference."""
    assert same_verdict(runs, within=within) is expected


@given(st.lists(VERDICTS, min_size=1, max_size=5), VERDICTS)
def test_a_further_run_makes_nothing_stable(runs: list[object], more: object) -> None:
    """A difference stays one, whatever else is said."""
    before, after = same_verdict(runs), same_verdict([*runs, more])
    if before is False:
        assert after is False
    if after is True and len(runs) > 1:
        assert before is True
