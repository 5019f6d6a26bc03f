"""Files in VidCapBench's official form, of any size, for tests."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

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


def write_files(root: Path, *, n_videos: int, n_pairs: dict[str, int], n_empty: int) -> None:
    """Write subsets below ``root``.

    Args:
        root: Value of ``LMMS_CAPTIONS_DATA``.
        n_videos: Rows of each file.
        n_pairs: Question-answer pairs of each subset.
        n_empty: Rows that have none.
    """
    folder = root / "vidcapbench"
    folder.mkdir(parents=True)
    for subset, total in n_pairs.items():
        rng = random.Random(subset)
        # AE has plain names, HE a folder before them: both occur in copies of the data.
        prefix = "VidCapBench_videos/" if subset == "HE" else ""
        rows: list[dict[str, Any]] = [
            {"video_dir": f"{prefix}Clip_{number}.mp4", "QA_pairs": []}
            for number in range(n_videos)
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
