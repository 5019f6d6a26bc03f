"""Tables 3, 4, 5, 10 and 11 of VidCapBench's paper, typed from its text."""

from __future__ import annotations

from typing import Final, NamedTuple

HALF: Final = 0.05
"""Half a unit of the last printed digit."""

DIMENSIONS: Final = ("video aesthetics", "video content", "video motion", "physical laws")
N_PAIRS_AE: Final = (2_668, 6_203, 225, 398)
"""Pairs of each dimension among the 9,494 of the published AE file."""
N_PAIRS_HE: Final = 1_150
"""Pairs of HE, on video motion and physical laws."""


class Cell(NamedTuple):
    """One printed ``Acc / Pre / Cov / Con``."""

    acc: float
    pre: float
    cov: float
    con: float

    def tokens(self) -> tuple[float, float]:
        """Least and largest mean number of tokens that give this ``con``."""
        return (
            100 * (self.acc - HALF) / (self.con + HALF),
            100 * (self.acc + HALF) / (self.con - HALF),
        )


def _row(text: str) -> tuple[Cell, ...]:
    return tuple(Cell(*map(float, cell.split())) for cell in text.split("/"))


TABLE_3: Final = {
    "GPT-4o-20240806": _row(
        "16.8 57.4 86.0 5.9 / 14.1 47.6 83.4 4.9 / 17.5 61.7 87.2 6.1"
        " / 10.2 41.3 84.0 3.6 / 27.9 62.1 85.4 9.7"
    ),
    "Gemini-1.5-Pro-002": _row(
        "17.1 54.8 87.4 9.2 / 16.4 47.6 85.4 8.8 / 16.9 57.8 88.5 9.1"
        " / 9.8 45.1 80.9 5.3 / 28.4 59.3 88.2 15.3"
    ),
    "LLaVA-NeXT-Video-7B": _row(
        "10.6 42.3 79.4 3.9 / 11.3 39.9 82.2 4.2 / 9.6 43.2 78.1 3.5"
        " / 4.4 23.7 75.1 1.7 / 24.4 54.5 82.9 9.0"
    ),
    "LongVA-7B": _row(
        "10.8 43.0 79.3 6.1 / 12.8 42.1 83.8 7.3 / 9.2 43.4 77.2 5.2"
        " / 4.9 25.1 79.6 2.8 / 24.9 52.9 83.2 14.1"
    ),
    "mPLUG-Owl3-7B": _row(
        "14.5 49.6 84.4 6.9 / 12.9 40.7 83.7 6.1 / 14.8 53.5 85.1 7.0"
        " / 5.3 33.3 80.0 2.5 / 26.9 55.7 81.7 12.8"
    ),
    "InternVL2-8B": _row(
        "10.2 43.0 84.9 2.5 / 9.1 36.3 84.4 2.2 / 10.0 46.1 85.2 2.4"
        " / 4.4 18.0 81.3 1.1 / 23.6 52.8 85.7 5.8"
    ),
    "Qwen2-VL-7B": _row(
        "11.1 47.1 77.0 6.4 / 12.4 44.3 78.7 7.2 / 9.9 48.3 75.9 5.7"
        " / 4.0 22.7 78.2 2.3 / 26.1 59.4 81.2 15.1"
    ),
    "Pixtral-12B": _row(
        "11.0 39.5 79.6 5.2 / 14.5 42.7 82.8 6.8 / 8.6 37.9 78.4 4.0"
        " / 3.6 18.6 69.3 1.7 / 28.6 52.4 82.4 13.5"
    ),
    "CogVLM2-Caption": _row(
        "13.1 49.2 85.1 8.4 / 12.5 45.2 83.1 8.0 / 12.7 50.8 86.3 8.1"
        " / 5.7 33.9 82.7 3.7 / 27.9 59.9 82.7 17.8"
    ),
    "Aria": _row(
        "14.1 51.5 84.4 4.5 / 13.0 44.0 82.7 4.2 / 13.9 54.9 85.3 4.4"
        " / 7.1 34.2 81.8 2.3 / 27.9 56.8 83.7 8.9"
    ),
    "Tarsier-34B": _row(
        "13.5 50.8 82.1 15.1 / 14.7 43.9 85.5 16.4 / 12.4 53.7 80.4 13.8"
        " / 7.1 38.1 84.0 7.9 / 28.1 61.7 83.9 31.4"
    ),
    "Qwen2-VL-72B": _row(
        "12.2 46.8 79.0 7.7 / 12.0 42.5 79.2 7.6 / 11.5 48.4 78.8 7.3"
        " / 5.8 28.6 77.8 3.7 / 27.1 59.6 80.9 17.2"
    ),
    "InternVL2-76B": _row(
        "7.4 35.6 78.9 0.7 / 5.8 27.6 76.2 0.6 / 7.2 38.1 80.1 0.7"
        " / 4.4 24.4 80.0 0.4 / 23.1 55.0 78.1 2.3"
    ),
    "Pixtral-124B": _row(
        "13.0 48.3 80.5 3.0 / 13.9 44.6 80.2 3.2 / 11.9 50.0 80.5 2.7"
        " / 6.2 28.3 81.8 1.4 / 27.9 55.9 83.2 6.4"
    ),
}
"""Captioner to its AE results, judged by GPT-4o."""

TABLE_10: Final = {
    ("Gemini-1.5-Pro-002", "GPT-4o"): _row(
        "17.1 54.8 87.4 9.2 / 16.4 47.6 85.4 8.8 / 16.9 57.8 88.5 9.1"
        " / 9.8 45.1 80.9 5.3 / 28.4 59.3 88.2 15.3"
    ),
    ("Gemini-1.5-Pro-002", "Llama-3.3-70B"): _row(
        "16.7 60.2 85.2 9.0 / 18.3 53.2 91.7 9.8 / 15.1 71.3 82.5 8.1"
        " / 11.3 63.1 73.2 6.1 / 26.8 70.3 76.2 14.4"
    ),
    ("Gemini-1.5-Pro-002", "Qwen2-72B"): _row(
        "21.9 93.4 53.2 11.7 / 11.6 87.4 29.7 6.2 / 24.5 95.3 62.1 13.1"
        " / 12.4 83.6 48.9 6.6 / 35.2 91.7 54.5 18.8"
    ),
    ("Qwen2-VL-72B", "GPT-4o"): _row(
        "12.2 46.8 79.0 7.7 / 12.0 42.5 79.2 7.6 / 11.5 48.4 78.8 7.3"
        " / 5.8 28.6 77.8 3.7 / 27.1 59.6 80.9 17.2"
    ),
    ("Qwen2-VL-72B", "Llama-3.3-70B"): _row(
        "12.7 50.9 77.1 8.0 / 14.8 49.3 84.1 9.4 / 9.7 62.1 72.9 6.2"
        " / 7.2 45.3 71.7 4.6 / 25.4 70.1 67.6 16.1"
    ),
    ("Qwen2-VL-72B", "Qwen2-72B"): _row(
        "15.5 89.7 40.2 9.9 / 8.8 88.1 24.0 5.6 / 16.1 90.5 45.4 10.3"
        " / 8.9 76.2 37.3 5.7 / 31.4 92.6 47.7 20.0"
    ),
}
"""Captioner and judge to AE results."""

TABLE_11: Final = {
    ("GPT-4o", "auto"): _row("11.3 47.7 88.8 3.9 / 26.0 63.4 96.3 9.1"),
    ("GPT-4o", "human"): _row("13.4 55.1 90.3 4.6 / 28.3 70.3 95.0 9.9"),
    ("Gemini 1.5 Pro", "auto"): _row("10.4 41.7 91.5 5.6 / 27.9 62.8 97.2 15.0"),
    ("Gemini 1.5 Pro", "human"): _row("12.1 48.4 92.7 6.5 / 28.7 68.5 96.2 15.4"),
    ("Qwen2-VL-72B", "auto"): _row("7.3 31.7 84.8 4.7 / 26.9 62.9 92.1 17.2"),
    ("Qwen2-VL-72B", "human"): _row("9.7 42.1 86.2 6.2 / 28.3 68.5 94.3 18.1"),
    ("CogVLM2-Caption", "auto"): _row("6.0 34.2 85.8 3.9 / 25.7 62.7 94.9 16.5"),
    ("CogVLM2-Caption", "human"): _row("6.8 39.7 87.2 4.4 / 26.8 65.5 96.2 17.2"),
    ("Tarsier-34B", "auto"): _row("7.7 45.8 91.9 8.6 / 25.4 65.1 95.1 28.4"),
    ("Tarsier-34B", "human"): _row("8.7 51.3 90.2 9.7 / 27.8 69.9 93.7 31.1"),
}
"""Captioner and who judges to HE results: video motion, physical laws."""

TABLE_5: Final = {
    ("Gemini 1.5 Pro", "MiraData"): (Cell(17.3, 57.8, 87.4, 4.6), 377.7),
    ("Gemini 1.5 Pro", "DREAM-1K"): (Cell(15.3, 56.7, 83.1, 9.6), 159.2),
    ("Gemini 1.5 Pro", "Vript"): (Cell(17.3, 57.4, 88.2, 6.4), 270.0),
    ("Gemini 1.5 Pro", "Hunyuan"): (Cell(17.0, 56.9, 86.4, 5.6), 305.4),
    ("Qwen2-VL-72B", "MiraData"): (Cell(12.6, 51.4, 80.5, 4.7), 267.6),
    ("Qwen2-VL-72B", "DREAM-1K"): (Cell(11.4, 51.4, 76.0, 7.9), 144.2),
    ("Qwen2-VL-72B", "Vript"): (Cell(13.5, 51.5, 82.2, 6.9), 194.7),
    ("Qwen2-VL-72B", "Hunyuan"): (Cell(13.9, 52.0, 81.6, 5.3), 262.7),
}
"""Captioner and format of captions to overall AE results and mean tokens."""

TABLE_4_AE: Final = {
    "GPT-4o": (56.3, 55.2, 1.1),
    "Gemini 1.5 Pro": (53.4, 52.6, 0.8),
    "Qwen2-VL-72B": (46.7, 47.4, 0.7),
    "CogVLM2-Caption": (47.7, 48.9, 1.2),
    "Tarsier-34B": (52.3, 51.9, 0.4),
}
"""Captioner to overall Pre on AE (a sample of 1,150 pairs): auto, human, and their difference."""

TABLE_4_HE: Final = {
    "GPT-4o": (45.2, 52.4, 7.2),
    "Gemini 1.5 Pro": (55.3, 49.2, 6.1),
    "Qwen2-VL-72B": (48.5, 56.8, 8.3),
    "CogVLM2-Caption": (51.5, 56.2, 4.7),
    "Tarsier-34B": (57.2, 51.3, 5.9),
}
"""Captioner to overall Pre on HE: auto, human, and their difference."""
