"""VidCapBench's official files: the questions of a subset, and videos."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.question_file import (
    Keep,
    QuestionFile,
    Row,
    of_json_lines,
    read_pair,
)
from lmms_eval_captions.lmms_eval_tasks.data.sources import ANY_ARCHIVE, Source

SOURCE: Final = Source(
    benchmark="vidcapbench",
    page="https://huggingface.co/datasets/VidCapBench/VidCapBench",
    license="see its page",
    video_folder="vidcapbench/videos",
    hub_repo="VidCapBench/VidCapBench",
    archives=ANY_ARCHIVE,
)
SUBSETS: Final = ("AE", "HE")
CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "video aesthetics": ("cinematography", "lighting", "style", "color", "composition"),
    "video content": ("subjects", "background", "events"),
    "video motion": (
        "body movements", "object motion", "attribute changes", "environmental motion",
        "spatiotemporal transformations",
    ),
    "physical laws": ("spatial relationships", "counter intuitive", "common sense"),
}  # fmt: skip
"""Subcategories of each dimension (primary category), in the paper's order of dimensions."""
Pair = dict[str, str]
"""``question``, its gold ``answer``, ``sub_category`` and ``primary_category``."""


def questions_file(subset: str) -> str:
    """Return the file that holds the questions of a subset."""
    return f"VidCapBench-{subset}_QA.jsonl"


def read_videos(settings: DataSettings, subset: str) -> list[dict[str, Any]]:
    """Return the videos of a subset, those with questions first, in the official order.

    Videos without a pair are asked nothing, and their captions' tokens count in ``con``: HE has
    questions about 543 of its 643 videos. They come last, so that with ``--limit`` documents have
    questions.

    Returns:
        ``video_id``, the base name of the file, as some copies of the data have a folder in front
        of it, ``video_dir``, the name as the data spells it, and ``questions``, the pairs.

    Raises:
        DataError: If the file is missing, a row is not of the official shape, or none has a pair.
    """
    path = find_file(settings, SOURCE, questions_file(subset))
    videos: dict[str, dict[str, Any]] = {}
    rows = read_numbered_jsonl(path)
    for number, row in rows:
        where = f"{path}, line {number}"
        video_dir, pairs = row.get("video_dir"), read_pairs(row.get("QA_pairs"), where=where)
        name = _base_name(video_dir) if isinstance(video_dir, str) else ""
        if not name.strip():
            raise DataError(f"{where}: expected the video's name as 'video_dir', got {row!r:.80}")
        video = {"video_id": name, "video_dir": video_dir, "questions": []}
        # The released script scores every row of a video, too.
        videos.setdefault(name, video)["questions"].extend(pairs)
    all_pairs = [pair for video in videos.values() for pair in video["questions"]]
    if not all_pairs:
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    n_asked = sum(bool(video["questions"]) for video in videos.values())
    logger.info(
        f"VidCapBench-{subset}: {len(all_pairs)} pairs of {n_asked} videos; "
        f"{len(videos) - n_asked} videos without a pair are asked nothing, their captions' tokens "
        f"count in con; {len(rows) - len(videos)} rows repeat a video"
    )
    unknown = Counter(
        f"{pair['primary_category']} / {pair['sub_category']}"
        for pair in all_pairs
        if pair["sub_category"] not in CATEGORIES.get(pair["primary_category"], ())
    )
    if unknown:
        names = ", ".join(f"{n} x {name}" for name, n in unknown.most_common(5))
        logger.warning(
            f"VidCapBench-{subset}: {unknown.total()} pairs have categories that the paper does "
            f"not: {names}; they count, and have lines of their own in the breakdown"
        )
    return sorted(videos.values(), key=lambda video: not video["questions"])


def _base_name(video_dir: str) -> str:
    return re.split(r"[/\\]", video_dir)[-1]


def read_pairs(value: object, *, where: str) -> list[Pair]:
    """Return the questions of one video, checked.

    Raises:
        DataError: If they are not of the official form; the message begins with ``where``.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list under 'QA_pairs', got {value!r:.80}")
    return [_pair(pair, where=f"{where}, question {i}") for i, pair in enumerate(value, 1)]


def _pair(value: object, *, where: str) -> Pair:
    categories = ("sub_category", "primary_category")
    pair = read_pair(value, *categories, where=where)
    for name in categories:
        pair[name] = " ".join(pair[name].lower().replace("_", " ").split()) or "none"
    return pair


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    for row in rows:
        video_id = _base_name(row["video_dir"])
        kept = [pair for pair in row.get("QA_pairs") or () if keep(video_id, pair["question"])]
        if kept:
            yield {**row, "QA_pairs": kept}


QUESTION_FILE: Final = QuestionFile(
    lambda fields: questions_file(fields["subset"]), of_json_lines(_select)
)
"""One for each subset. Videos without questions, whose captions' tokens count in ``con``, are left
out too."""
