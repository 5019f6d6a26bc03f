"""VidCapBench's official files: the questions of a subset, and videos."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_numbered_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.sources import (
    ANY_ARCHIVE,
    Keep,
    QuestionFile,
    Row,
    Source,
    of_json_lines,
)

SOURCE: Final = Source(
    benchmark="vidcapbench",
    page="https://huggingface.co/datasets/VidCapBench/VidCapBench",
    license="see its page",
    video_folder="vidcapbench/videos",
    hub_repo="VidCapBench/VidCapBench",
    archives=ANY_ARCHIVE,
)
"""The repository's list of files is unseen."""

SUBSETS: Final = ("AE", "HE")

CATEGORIES: Final[Mapping[str, tuple[str, ...]]] = {
    "video aesthetics": ("cinematography", "lighting", "style", "color", "composition"),
    "video content": ("subjects", "background", "events"),
    "video motion": (
        "body movements",
        "object motion",
        "attribute changes",
        "environmental motion",
        "spatiotemporal transformations",
    ),
    "physical laws": ("spatial relationships", "counter intuitive", "common sense"),
}
"""The sub categories of each dimension (primary category), in the paper's order of dimensions."""

Pair = dict[str, str]
"""``question``, its gold ``answer``, ``sub_category`` and ``primary_category``."""


@dataclass(slots=True)
class Video:
    """One video of a subset."""

    video_id: str
    """Base name of the file; some copies of the data carry a folder before it."""
    video_dir: str
    """The name as the data spells it."""
    pairs: list[Pair] = field(default_factory=list)
    """None where the subset asks nothing about the video."""


def questions_file(subset: str) -> str:
    """The file that holds the questions of a subset."""
    return f"VidCapBench-{subset}_QA.jsonl"


def read_videos(settings: DataSettings, subset: str) -> list[Video]:
    """The videos of a subset: those that have questions, then the others, in the official order.

    Videos without a pair are asked nothing, and their captions' tokens count in ``con``: HE has
    questions about 543 of its 643 videos. They come last, so that a few documents have questions.

    Args:
        settings: Says where the data is.
        subset: One of ``SUBSETS``.

    Raises:
        DataError: If the file is missing, a row is not of the official shape, or none has a pair.
    """
    path = find_file(settings, SOURCE, questions_file(subset))
    videos: dict[str, Video] = {}
    rows = read_numbered_jsonl(path)
    for number, row in rows:
        where = f"{path}, line {number}"
        video_dir, pairs = row.get("video_dir"), read_pairs(row.get("QA_pairs"), where=where)
        name = _base_name(video_dir) if isinstance(video_dir, str) else ""
        if not isinstance(video_dir, str) or not name.strip():
            raise DataError(f"{where}: expected the video's name as 'video_dir', got {row!r:.80}")
        # The released script scores every row of a video, too.
        videos.setdefault(name, Video(name, video_dir)).pairs.extend(pairs)
    ordered = sorted(videos.values(), key=lambda video: not video.pairs)
    if not any(video.pairs for video in ordered):
        raise DataError(f"{path}: expected at least one video with questions, the file has none")
    _report(ordered, subset=subset, n_rows=len(rows))
    return ordered


def _base_name(video_dir: str) -> str:
    return re.split(r"[/\\]", video_dir)[-1]


def _select(rows: Sequence[Row], keep: Keep) -> Iterator[Row]:
    for row in rows:
        video_id = _base_name(row["video_dir"])
        kept = [pair for pair in row.get("QA_pairs") or () if keep(video_id, pair["question"])]
        if kept:
            yield {**row, "QA_pairs": kept}


QUESTION_FILE: Final = QuestionFile(
    lambda fields: questions_file(fields["subset"]), of_json_lines(_select)
)
"""One for each subset. Videos that it asks nothing about, whose captions' tokens count in ``con``,
are left out too."""


def _report(videos: list[Video], *, subset: str, n_rows: int) -> None:
    n_asked = sum(bool(video.pairs) for video in videos)
    pairs = [pair for video in videos for pair in video.pairs]
    logger.info(
        "VidCapBench-{}: {} pairs of {} videos; {} videos without a pair are asked nothing, their "
        "captions' tokens count in con; {} rows repeat a video",
        subset,
        len(pairs),
        n_asked,
        len(videos) - n_asked,
        n_rows - len(videos),
    )
    unknown = Counter(
        f"{pair['primary_category']} / {pair['sub_category']}"
        for pair in pairs
        if pair["sub_category"] not in CATEGORIES.get(pair["primary_category"], ())
    )
    if unknown:
        logger.warning(
            "VidCapBench-{}: {} pairs have categories that the paper does not: {}; they count, and "
            "have lines of their own in the breakdown",
            subset,
            unknown.total(),
            ", ".join(f"{n} x {name}" for name, n in unknown.most_common(5)),
        )


def read_pairs(value: object, *, where: str) -> list[Pair]:
    """The questions of one video, checked.

    Args:
        value: As a row has them.
        where: Where they stand, for messages.

    Raises:
        DataError: If they are not of the official form.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list under 'QA_pairs', got {value!r:.80}")
    return [_pair(pair, where=f"{where}, question {i}") for i, pair in enumerate(value, 1)]


def _pair(value: object, *, where: str) -> Pair:
    if not isinstance(value, dict) or not {"question", "answer"} <= set(value):
        raise DataError(f"{where}: expected 'question' and 'answer', got {value!r:.80}")
    pair = {
        "question": value["question"],
        "answer": value["answer"],
        "sub_category": value.get("sub_category", ""),
        "primary_category": value.get("primary_category", ""),
    }
    if not all(isinstance(text, str) for text in pair.values()):
        raise DataError(f"{where}: expected text, got {pair!r:.120}")
    for name in ("sub_category", "primary_category"):
        pair[name] = " ".join(pair[name].lower().replace("_", " ").split()) or "none"
    return pair
