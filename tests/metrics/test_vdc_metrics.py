"""VDC's arithmetic: worked by hand and by property; the paper's tables are in their own file."""

from __future__ import annotations

import random
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.verdict import Match
from lmms_eval_captions.metrics.captioning import rouge_l
from lmms_eval_captions.metrics.vdc import vdc_acc, vdc_score

Verdicts = list[list[Match | None]]

verdicts = st.lists(
    st.lists(st.sampled_from(["yes", "no", None]), min_size=1, max_size=6), min_size=1, max_size=6
)


@pytest.mark.parametrize(
    ("videos", "expected"),
    [
        pytest.param([["yes", "yes"]], 100.0, id="all-right"),
        pytest.param([["no"], ["no", "no"]], 0.0, id="a-video-that-scores-0-counts"),
        pytest.param([["yes", "no", "no", "no"], ["yes"]], 62.5, id="videos-weigh-the-same"),
        pytest.param([["yes", None], ["no", None]], 50.0, id="unscored-leave-the-denominator"),
        pytest.param([["yes"], [None, None]], 100.0, id="a-video-without-verdicts-leaves-it"),
        pytest.param([[None]], nan, id="nothing-scored"),
        pytest.param([], nan, id="no-videos"),
    ],
)
def test_accuracy(videos: Verdicts, expected: float) -> None:
    """Mean over a video's questions, then over videos, in percent."""
    assert vdc_acc(videos) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("videos", "expected"),
    [
        pytest.param([[5.0, 0.0], [4.0]], 3.25, id="videos-weigh-the-same"),
        pytest.param([[4.8, None]], 4.8, id="unscored-leave-the-denominator"),
        pytest.param([[0.0]], 0.0, id="zero-counts"),
        pytest.param([[None], []], nan, id="nothing-scored"),
    ],
)
def test_score(videos: list[list[float | None]], expected: float) -> None:
    """Mean quality over a video's questions, then over videos, from 0 to 5."""
    assert vdc_score(videos) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("score", [-0.1, 5.1, nan])
def test_a_score_off_the_scale_is_an_error(score: float) -> None:
    """A score outside [0, 5] never moves a mean."""
    with pytest.raises(ValueError, match="between 0 and 5"):
        vdc_score([[score]])


@given(verdicts)
def test_accuracy_is_bounded_and_nan_only_without_verdicts(videos: Verdicts) -> None:
    """A percentage, or nan exactly where nothing was scored."""
    value = vdc_acc(videos)
    if isnan(value):
        assert all(verdict is None for video in videos for verdict in video)
    else:
        assert 0.0 <= value <= 100.0


@given(verdicts, st.randoms(use_true_random=False))
def test_accuracy_does_not_depend_on_order(videos: Verdicts, rng: random.Random) -> None:
    """Shuffling videos and their questions changes nothing, to the last bit."""
    shuffled = [rng.sample(video, len(video)) for video in videos]
    rng.shuffle(shuffled)
    assert vdc_acc(shuffled) == pytest.approx(vdc_acc(videos), nan_ok=True, abs=0, rel=1e-15)


@given(verdicts, st.data())
def test_one_more_right_answer_never_lowers_accuracy(videos: Verdicts, data: st.DataObject) -> None:
    """Turning a no into a yes is never worse."""
    wrong = [(i, j) for i, video in enumerate(videos) for j, v in enumerate(video) if v == "no"]
    if wrong:
        i, j = data.draw(st.sampled_from(wrong))
        better = [list(video) for video in videos]
        better[i][j] = "yes"
        assert vdc_acc(better) > vdc_acc(videos)


@given(verdicts)
def test_unscored_questions_change_nothing(videos: Verdicts) -> None:
    """Adding a question that nobody could score leaves the number where it was."""
    assert vdc_acc([[*video, None] for video in videos]) == pytest.approx(
        vdc_acc(videos), nan_ok=True
    )


@pytest.mark.parametrize(
    ("reference", "candidate", "expected"),
    [
        pytest.param("a red ball", "A red ball.", 1.0, id="case-and-punctuation"),
        pytest.param("red ball", "green cube", 0.0, id="nothing-shared"),
        pytest.param(
            "the dog runs fast", "the dog runs", 2.44 * 0.75 / (0.75 + 1.44), id="by-hand"
        ),
        pytest.param("", "x", 0.0, id="empty-reference"),
        pytest.param("x", "...", 0.0, id="no-word"),
    ],
)
def test_rouge_l(reference: str, candidate: str, expected: float) -> None:
    """Longest common subsequence, F-measure with beta 1.2."""
    assert rouge_l(reference, candidate) == pytest.approx(expected)
