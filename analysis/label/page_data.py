"""What a page of either kind holds beside what it asks: texts, frames, where it may be opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.web_page.documents import Documents
from lmms_eval_captions.analysis.web_page.frames import NO_VIDEOS, frames_of
from lmms_eval_captions.lmms_eval_tasks.grading import Grading
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

if TYPE_CHECKING:
    from lmms_eval_captions.judges.settings import DataSettings

_MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What the user says of a page."""

    n: int
    tasks: tuple[str, ...] | None
    """``None`` for all."""
    by: tuple[str, ...] = ()
    """What the sample is stratified by."""
    seed: int = 0
    n_frames: int = 4
    reveal: str = "after"
    """When the judge's verdict is shown: ``after`` the answer, on ``demand`` after it, ``never``.
    """
    max_mb: float = 50.0
    annotator: str = ""
    """The name that the page has filled in."""

    def bytes_left(self, n_texts: int) -> int:
        """What frames may take beside so many bytes of texts; below 0 where these are too much."""
        return int(self.max_mb * _MEGABYTE) - n_texts


@dataclass(frozen=True, slots=True)
class Page:
    """What the page's script reads, and what is said of it."""

    data: Mapping[str, object]
    notes: tuple[str, ...]


def finish_page(
    kind: str,
    items: list[dict[str, Any]],
    captions: list[str],
    gradings: Mapping[str, object],
    documents: Mapping[str, Documents],
    options: PageOptions,
    settings: DataSettings,
) -> Page:
    """A page with the frames of its videos.

    Args:
        kind: ``verdict`` or ``pair``.
        items: What is asked, each with ``task`` and ``video_id``.
        captions: Texts that items name by their places.
        gradings: Name to how it is asked.
        documents: Task to its documents, none where they are not at hand.
        options: What the user says.
        settings: Says where videos are.
    """
    left = options.bytes_left(sum(len(text.encode("utf-8")) for text in captions))
    videos = {}
    for item in items:
        benchmark = benchmark_of_task(item["task"])
        doc = documents[item["task"]].get(item["video_id"])
        item["frames"] = f"{benchmark.name} {item['video_id']}"
        if doc is not None:
            videos[item["frames"]] = (item["frames"], benchmark, doc)
    frames, reasons = frames_of(
        settings, videos.values(), n_frames=options.n_frames, most_bytes=max(left, 0)
    )
    for item in items:
        if item["frames"] not in videos:
            reasons[item["frames"]] = f"No frames: {NO_VIDEOS}"
    return put_together(kind, items, captions, gradings, (frames, reasons), options, left)


def put_together(
    kind: str,
    items: list[dict[str, Any]],
    captions: list[str],
    gradings: Mapping[str, object],
    framed: tuple[Mapping[str, Sequence[str]], Mapping[str, str]],
    options: PageOptions,
    bytes_left: int,
) -> Page:
    """A page whose frames are there.

    Args:
        kind: ``verdict``, ``pair``, or that of questions that were built.
        items: What is asked, each with ``frames``, the key of its video.
        captions: Texts that items name by their places.
        gradings: Name to how it is asked.
        framed: Key of a video to its frames, and to why it has none.
        options: What the user says.
        bytes_left: What the texts left for frames.
    """
    frames, reasons = framed
    for item in items:
        item["no_frames"] = reasons.get(item["frames"], "")
    what = repr([(item["row"], item["id"]) for item in items]).encode("utf-8", "replace")
    data = {
        "kind": kind, "page": blake2b(what, digest_size=6).hexdigest(), "reveal": options.reveal,
        "about": {"made_by": "lmms-eval-captions label", "seed": options.seed},
        "annotator": options.annotator,
        "captions": captions, "frames": frames, "gradings": gradings, "items": items,
    }  # fmt: skip
    n_shown = len({item["frames"] for item in items} & frames.keys())
    n_videos = len({item["frames"] for item in items})
    return Page(data, tuple(_notes(n_shown, n_videos, reasons, bytes_left)))


def grading_to_row(grading: Grading | None) -> dict[str, object]:
    """What the page's script reads of how it is asked."""
    if grading is None:
        return {}
    return {
        "asks": grading.asks,
        "choices": [asdict(choice) for choice in grading.choices],
        "ratings": [asdict(rating) for rating in grading.ratings],
        "shows_answer": grading.shows_answer,
    }


def _notes(
    n_shown: int, n_videos: int, reasons: Mapping[str, str], bytes_left: int
) -> Iterator[str]:
    yield f"frames of {n_shown} of {n_videos} videos are in the page"
    for reason, count in Counter(reasons.values()).most_common(2):
        yield f"{count} videos: {reason}"
    if bytes_left < 0:
        yield "the texts alone are more than --max-mb: browsers may be slow; ask about fewer"
