"""VDC: accuracy and score against the paper's arithmetic, and its tables."""

from __future__ import annotations

import random
from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.judges.verdict import Match
from lmms_eval_captions.metrics.captioning import rouge_l
from lmms_eval_captions.metrics.vdc import mean_over_videos, vdc_acc, vdc_score

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


TABLE_6 = {
    "Gemini-1.5 Pro": (41.73, 2.15, 49.68, 3.07),
    "LLaMA-VID": (30.86, 1.62, 4.63, 1.63),
    "Video-ChatGPT-7B": (31.12, 1.62, 8.57, 1.84),
    "MovieChat-7B": (31.92, 1.64, 10.24, 1.86),
    "VILA-7B": (32.61, 1.70, 16.27, 2.02),
    "Video-LLaVA-7B": (32.80, 1.72, 14.14, 2.00),
    "LLaVA-1.5-7B": (33.98, 1.76, 26.71, 2.33),
    "LongVA-7B": (34.50, 1.79, 32.65, 2.69),
    "LLaVA-1.5-13B": (34.78, 1.80, 28.26, 2.36),
    "LLaVA-NeXT-V7B": (35.46, 1.85, 25.62, 2.34),
    "LLaVA-1.6-7B": (35.70, 1.85, 40.16, 2.69),
    "LLaVA-1.6-13B": (35.85, 1.85, 34.55, 2.51),
    "ShareGPT4Video-8B": (36.17, 1.85, 36.44, 1.85),
    "LLaVA-OV-7B": (37.45, 1.94, 41.83, 2.70),
    "InternVL-2-8B": (37.72, 1.96, 48.99, 3.03),
    "AuroraCap-7B": (38.21, 1.98, 48.33, 2.90),
}
"""VDCscore accuracy and score, VDD accuracy and score."""

TABLE_7 = {
    "Gemini-1.5 Pro": ((38.68, 35.71, 43.84, 47.32, 43.11), (2.05, 1.85, 2.23, 2.41, 2.22)),
    "LLaMA-VID": ((39.47, 29.92, 28.01, 31.24, 25.67), (2.10, 1.56, 1.45, 1.59, 1.38)),
    "Video-ChatGPT-7B": ((37.46, 29.36, 33.68, 30.47, 24.61), (2.00, 1.56, 1.70, 1.60, 1.26)),
    "MovieChat-7B": ((37.25, 32.55, 28.99, 31.97, 28.82), (1.98, 1.59, 1.54, 1.64, 1.46)),
    "VILA-7B": ((34.33, 30.40, 35.15, 33.38, 29.78), (1.83, 1.55, 1.80, 1.72, 1.58)),
    "Video-LLaVA-7B": ((37.48, 30.67, 32.50, 36.01, 27.36), (1.97, 1.63, 1.70, 1.85, 1.43)),
    "LLaVA-1.5-7B": ((38.38, 28.61, 34.86, 34.62, 33.43), (2.04, 1.51, 1.79, 1.76, 1.73)),
    "LongVA-7B": ((35.32, 31.94, 36.39, 40.95, 27.91), (1.90, 1.63, 1.85, 2.11, 1.48)),
    "LLaVA-1.5-13B": ((38.97, 30.89, 34.79, 36.27, 33.00), (2.07, 1.60, 1.78, 1.84, 1.74)),
    "LLaVA-NeXT-V7B": ((39.73, 30.63, 36.54, 36.54, 33.84), (2.10, 1.60, 1.88, 1.88, 1.77)),
    "LLaVA-1.6-7B": ((36.50, 31.91, 37.58, 36.03, 36.47), (1.93, 1.65, 1.92, 1.85, 1.89)),
    "LLaVA-1.6-13B": ((35.61, 31.90, 38.90, 36.65, 36.18), (1.86, 1.66, 1.99, 1.87, 1.89)),
    "ShareGPT4Video-8B": ((33.28, 39.08, 35.77, 37.12, 35.62), (1.76, 1.94, 1.81, 1.89, 1.84)),
    "LLaVA-OV-7B": ((37.82, 32.58, 37.43, 38.21, 41.20), (2.02, 1.70, 1.92, 1.96, 2.13)),
    "InternVL-2-8B": ((39.08, 33.02, 37.47, 44.16, 34.89), (2.11, 1.74, 1.89, 2.22, 1.82)),
    "AuroraCap-7B": ((43.50, 32.07, 35.92, 39.02, 41.30), (2.27, 1.68, 1.84, 1.97, 2.15)),
}
"""VDCscore accuracies and scores: camera, short, background, main object, detailed."""

TABLE_8 = {
    "Gemini-1.5 Pro": ((18.89, 16.91, 57.73, 41.64, 2.581), (2.115, 1.572, 3.263, 2.886, 0.330)),
    "LLaMA-VID": ((28.28, 1.034, 6.198, 3.063, 2.046), (2.513, 1.042, 1.895, 1.366, 0.304)),
    "Video-ChatGPT-7B": ((16, 4.173, 14.14, 3.001, 1.038), (2.175, 1.032, 2.273, 1.423, 0.192)),
    "VILA-7B": ((4.005, 2.087, 22.45, 10.1, 1.015), (1.751, 0.233, 2.385, 1.672, 0.262)),
    "Video-LLaVA-7B": ((20, 3.193, 17.17, 11.11, 3.13), (2.336, 1.064, 2.253, 1.765, 0.316)),
    "LLaVA-1.5-7B": ((26.88, 1.222, 36.5, 16.92, 0.694), (2.515, 0.793, 2.725, 1.937, 0.276)),
    "LongVA-7B": ((17, 1.016, 50, 15.31, 0.002), (2.204, 0.794, 3.203, 2.196, 0.247)),
    "LLaVA-1.5-13B": ((32.65, 2.836, 37.55, 18.98, 0.688), (2.662, 0.922, 2.749, 1.978, 0.275)),
    "LLaVA-NeXT-V7B": ((29.81, 1.913, 33.23, 18.02, 0.887), (2.645, 0.957, 2.692, 1.999, 0.279)),
    "LLaVA-1.6-7B": ((21.11, 8.696, 53.31, 27.01, 1.282), (2.229, 1.146, 3.105, 2.286, 0.279)),
    "LLaVA-1.6-13B": ((21.56, 9.798, 39.37, 29.73, 1.287), (2.199, 1.206, 2.692, 2.329, 0.271)),
    "ShareGPT4Video-8B": ((33.28, 4.908, 35.77, 37.12, 3.213), (1.768, 0.986, 1.813, 1.899, 0.752)),
    "LLaVA-OV-7B": ((17.11, 11.15, 55.82, 27.84, 1.372), (2.086, 1.277, 3.149, 2.258, 0.249)),
    "InternVL-2-8B": ((29, 4.041, 63.64, 34.34, 3.032), (2.545, 1.079, 3.446, 2.627, 0.394)),
    "AuroraCap-7B": ((49.4, 3.313, 59.52, 37.14, 1.275), (3.141, 0.886, 3.261, 2.533, 0.295)),
}
"""VDD accuracies and scores, of the same aspects."""

TABLE_C3 = {
    "LLaMA-VID": (6.66, (9.53, 5.12, 5.30, 6.07, 7.29)),
    "Video-ChatGPT-7B": (6.85, (9.20, 5.37, 6.40, 6.29, 6.97)),
    "ViLA-7B": (6.68, (7.88, 5.16, 6.29, 6.35, 7.74)),
    "Video-LLAVA-7B": (6.79, (8.67, 5.25, 6.09, 6.64, 7.28)),
    "LLAVA-1.5-7B": (6.34, (8.31, 5.40, 5.80, 5.52, 6.65)),
    "LongVA-7B": (6.70, (8.37, 4.99, 6.11, 6.79, 7.23)),
    "LLAVA-1.5-13B": (6.34, (8.64, 5.55, 5.57, 5.15, 6.79)),
    "LLAVA-NeXT-V7B": (6.69, (8.61, 5.30, 6.35, 6.27, 6.93)),
    "LLAVA-1.6-7B": (6.45, (8.08, 5.38, 5.79, 5.82, 7.20)),
    "LLAVA-1.6-13B": (6.18, (7.31, 5.28, 6.00, 5.29, 7.01)),
    "ShareGPT4Video-8B": (6.78, (8.46, 5.73, 5.82, 6.54, 7.36)),
    "LLAVA-OV-7B": (6.59, (8.09, 5.66, 5.86, 5.58, 7.75)),
    "InternVL-2-8B": (6.82, (8.14, 5.63, 5.95, 6.53, 7.86)),
    "AuroraCap-7B": (7.60, (9.55, 5.66, 6.79, 7.42, 8.58)),
    "Gemini-1.5 Pro": (7.59, (8.78, 6.25, 7.29, 7.70, 7.94)),
}
"""ROUGE of the answers: average, then the same aspects."""

ROUNDING = 0.01 + 1e-9
"""Half a unit of the mean's last digit, and of its parts'."""
BACKGROUND, MAIN_OBJECT = 2, 3

Found = dict[tuple[str, str], tuple[float, float]]
"""Model and metric, to the printed number and the one that follows."""


def test_table_6_is_the_mean_of_table_7() -> None:
    """VDCscore is the plain mean of five aspects: all 32 numbers but AuroraCap's own accuracy."""
    found: Found = {}
    for model, (accuracy, score, _, _) in TABLE_6.items():
        for name, printed, aspects in zip(
            ("accuracy", "score"), (accuracy, score), TABLE_7[model], strict=True
        ):
            mean = mean_over_videos([aspects])
            if abs(mean - printed) > ROUNDING:
                found[model, name] = (printed, round(mean, 2))
    assert found == {("AuroraCap-7B", "accuracy"): (38.21, 38.36)}


def test_table_6_has_the_mean_of_two_aspects_of_table_8() -> None:
    """VDD is the mean of background and main object, of all 15 models that Table 8 has."""
    assert set(TABLE_6) - set(TABLE_8) == {"MovieChat-7B"}
    for model, (accuracies, _) in TABLE_8.items():
        mean = mean_over_videos([[accuracies[BACKGROUND], accuracies[MAIN_OBJECT]]])
        assert mean == pytest.approx(TABLE_6[model][2], abs=ROUNDING), model


@pytest.mark.parametrize("model", TABLE_C3)
def test_the_averages_of_table_c3(model: str) -> None:
    """ROUGE's average is the plain mean of the five aspects, for every model."""
    average, aspects = TABLE_C3[model]
    assert mean_over_videos([aspects]) == pytest.approx(average, abs=ROUNDING)
