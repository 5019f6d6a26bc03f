"""Files in VidCapBench's official form, of any size, for tests."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

N_VIDEOS = 643
N_PAIRS = {"AE": 9_494, "HE": 1_150}

CATEGORIES = {
    "AE": [
        ("video aesthetics", "cinematography"),
        ("video aesthetics", "lighting"),
        ("video aesthetics", "style"),
        ("video aesthetics", "color"),
        ("video aesthetics", "composition"),
        ("video content", "subjects"),
        ("video content", "background"),
        ("video content", "events"),
        ("video motion", "body movements"),
        ("physical laws", "common sense"),
    ],
    "HE": [
        ("video motion", "body movements"),
        ("video motion", "object motion"),
        ("video motion", "attribute changes"),
        ("video motion", "environmental motion"),
        ("video motion", "spatiotemporal transformations"),
        ("physical laws", "spatial relationships"),
        ("physical laws", "counter intuitive"),
    ],
}


def write_files(
    root: Path, *, n_videos: int = N_VIDEOS, n_pairs: dict[str, int] | None = None, n_empty: int = 9
) -> None:
    """Write both subsets below ``root``, the size of the real ones by default.

    Args:
        root: Value of ``LMMS_CAPTIONS_DATA``.
        n_videos: Rows of each file.
        n_pairs: Question-answer pairs of each subset.
        n_empty: Rows that have none.
    """
    folder = root / "vidcapbench"
    folder.mkdir(parents=True)
    for subset, total in (n_pairs or N_PAIRS).items():
        rng = random.Random(subset)
        # AE has plain names, HE a folder before them: both occur in copies of the data.
        prefix = "VidCapBench_videos/" if subset == "HE" else ""
        rows: list[dict[str, Any]] = [
            {"video_dir": f"{prefix}{name(number)}", "QA_pairs": []} for number in range(n_videos)
        ]
        for number in range(total):
            row = rows[n_empty + number % (n_videos - n_empty)]
            primary, sub = rng.choice(CATEGORIES[subset])
            row["QA_pairs"].append(
                {
                    "question": f"What about the {sub} in part {number} of {subset}?",
                    "answer": f"It is the {rng.choice(['first', 'second', 'third'])} of {number}.",
                    "sub_category": sub,
                    "primary_category": primary,
                }
            )
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"VidCapBench-{subset}_QA.jsonl").write_text(lines, encoding="utf-8")


def name(number: int) -> str:
    """File name of a video."""
    return f"Clip_{number}.mp4"


def caption(number: int) -> str:
    """A caption of some 60 words, different for each video."""
    return f"Video {number}. " + "A man walks along the beach while the sun sets behind him. " * 5
