"""Pages that ask people, each one file of HTML that loads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from lmms_eval_captions.analysis.gradings import Grading
from lmms_eval_captions.analysis.web_page import frames_of, json_in_html, render_page
from lmms_eval_captions.judges.files import whole

_HERE: Final = Path(__file__).parent
_MOST_BYTES: Final = 50_000_000
"""Bytes of texts and frames; frames beyond them are left out."""

Item = dict[str, Any]
"""A question as the page's script reads it; ``row`` is what its label carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """Options of a page, from the command line."""

    n: int
    tasks: Sequence[str] = ()
    """Empty for all."""
    seed: int = 0
    n_frames: int = 4
    reveal: str = "after"
    """When the judge's verdict is shown: ``after`` the answer, then on ``demand``, ``never``."""


class Page(NamedTuple):
    """Data of the page's script, and notes for the person who makes the page."""

    data: Mapping[str, object]
    notes: list[str]


def render(title: str, data: Mapping[str, object]) -> str:
    """Return the page as HTML; title and texts of the data may hold anything."""
    # The template includes style, script and JSON as they are and escapes everything else.
    style, script = (_HERE.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    return render_page(_HERE, title=title, style=style, script=script, data=json_in_html(data))


def draw(n_population: int, n: int, seed: int) -> list[int]:
    """Return the indices of a random sample of at most n, in random order.

    A person who stops early has labelled a random sample, too.
    """
    return list(map(int, np.random.default_rng(seed).permutation(n_population)[:n]))


def item_of(
    benchmark: str, task: str, video: str, row: Mapping[str, object], **fields: object
) -> Item:
    """Return a question; fields that are not given are empty."""
    exported = {"benchmark": benchmark, "task": task, "video_id": video, **row}
    empty: Item = {
        "frames": f"{benchmark} {video}", "grading": task, "question": "", "answer": "",
        "captions": [], "references": [], "choices": None, "judge": [],
    }  # fmt: skip
    return {"task": task, "video_id": whole(video), "row": exported, **empty, **fields}


def page_of(
    kind: str,
    items: Sequence[Item],
    gradings: Mapping[str, Grading],
    options: PageOptions,
    find: Callable[[str, str], Path],
) -> Page:
    """Return a page.

    Args:
        kind: ``verdict``, ``pair``, or that of built questions.
        items: Questions.
        gradings: What is asked, by the name that items have it by.
        options: See :class:`PageOptions`.
        find: Returns the file of a video by task and name, or raises :class:`DataError`.
    """
    texts: dict[str, int] = {}
    for number, item in enumerate(items):
        item["id"] = str(number)
        item["captions"] = [texts.setdefault(text, len(texts)) for text in item["captions"]]
    shown = [*texts, *(item["question"] + item["answer"] for item in items)]
    bytes_left = _MOST_BYTES - sum(len(text.encode()) for text in shown)
    videos = {item["frames"]: partial(find, item["task"], item["video_id"]) for item in items}
    frames, reasons = frames_of(videos, n_frames=options.n_frames, most_bytes=max(bytes_left, 0))
    for item in items:
        item["no_frames"] = reasons.get(item["frames"], "")
    content = repr([item["row"] for item in items]).encode("utf-8", "replace")
    data = {
        "kind": kind,
        "page": blake2b(content, digest_size=6).hexdigest(),
        "reveal": options.reveal,
        "about": {"made_by": "lmms-eval-captions label", "seed": options.seed},
        "captions": list(texts),
        "frames": frames,
        "gradings": {
            name: {
                "asks": grading.asks,
                "choices": list(map(asdict, grading.choices)),
                "ratings": list(map(asdict, grading.ratings)),
                "shows_answer": grading.shows_answer,
            }
            for name, grading in gradings.items()
        },
        "items": items,
    }
    notes = [f"frames of {len(frames)} of {len(videos)} videos are in the page"]
    notes += [
        f"{n} videos without frames: {reason}"
        for reason, n in Counter(reasons.values()).most_common(2)
    ]
    if bytes_left < 0:
        notes.append("the texts alone exceed 50 MB: browsers may be slow; ask about fewer")
    return Page(data, notes)
