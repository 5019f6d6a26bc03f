"""Files that the stages of a build leave, written by hand, and pages of their questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import write_rows
from lmms_eval_captions.lmms_eval_tasks.commands.label.built_page import built_page
from lmms_eval_captions.lmms_eval_tasks.commands.label.built_questions import questions_to_check
from lmms_eval_captions.lmms_eval_tasks.commands.label.page_data import Page, PageOptions

Row = dict[str, Any]


def question_rows(kind: str, videos: Sequence[str], n_each: int = 2) -> list[Row]:
    """Questions about clips, of the form of a benchmark, each with a text of its own."""
    rows = []
    for video in videos:
        for place in range(n_each):
            row: Row = {
                "video": video,
                "id": f"{video}/frames/a-model/{place}",
                "question": f"What is number {place} of {video}?",
                "answer": "a circle",
                "category": "action",
            }
            if kind == "capquiz":
                row["options"] = ["a circle", "a square", "a disc", "a ball", "a line"]
            rows.append(row)
    return rows


def write_stages(
    folder: Path,
    rows: Sequence[Row],
    clips: Mapping[str, Path],
    *,
    then: Sequence[str] = ("sighted", "chosen"),
) -> Path:
    """The files of a build that is over.

    Args:
        folder: The benchmark's.
        rows: What the stage before the check left.
        clips: Name to file.
        then: Names of the stages behind it.
    """
    of_clips = [
        {"video": name, "file": path.name, "path": str(path)} for name, path in clips.items()
    ]
    stages: dict[str, Sequence[Mapping[str, Any]]] = {"clips": of_clips, "similar": rows}
    stages |= dict.fromkeys(then, ())
    for number, (name, of_stage) in enumerate(stages.items(), 1):
        path = folder / "build" / f"{number:02d}-{name}.jsonl"
        write_rows(path, [{"stage": name, "fingerprint": "0"}, *of_stage])
    return folder


def page_of_build(folder: Path, *, n: int = 1000, n_frames: int = 0, **options: Any) -> Page:
    """The page that ``label --build`` makes."""
    known = PageOptions(n=n, tasks=None, n_frames=n_frames, reveal="never", **options)
    return built_page(questions_to_check(folder), known)


def said(choice: str | None) -> dict[str, object] | None:
    """The label of a person who says yes, no, or cannot tell."""
    return None if choice is None else {"choice": choice, "ratings": {}}
