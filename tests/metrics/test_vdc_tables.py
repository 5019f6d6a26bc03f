"""AuroraCap's printed averages (Tables 6 and C3) from what they average (Tables 7, 8 and C3)."""

from __future__ import annotations

import pytest

from lmms_eval_captions.metrics.vdc import mean_over_videos

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

# Section N: question-answer pairs in all. Table M13: the same by aspect, all types together.

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
