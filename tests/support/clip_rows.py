"""Rows of tables for ``score``: captions with what each protocol asks about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from five_tasks import write_clip

PROTOCOLS: Final = (
    "vdc", "vidcapbench", "vcapsbench", "capquiz",
    "gveval_ref_free", "gveval_ref_only", "gveval_combined", "vllm_judge",
)  # fmt: skip
N_QUESTIONS: Final = 3
WITH_QUESTIONS: Final = ("vdc", "vidcapbench", "vcapsbench", "capquiz")
WITH_REFERENCE: Final = ("gveval_ref_only", "gveval_combined")
WITH_VIDEO: Final = ("gveval_ref_free", "gveval_combined", "vllm_judge")
COLUMNS: Final = (
    *((protocol, column) for protocol in PROTOCOLS for column in ("clip_id", "caption")),
    *((protocol, "questions") for protocol in WITH_QUESTIONS),
    *((protocol, "reference") for protocol in WITH_REFERENCE),
    *((protocol, "video") for protocol in WITH_VIDEO),
)
"""Each protocol with each column that it needs."""


def rows_of(protocol: str, n_rows: int, videos: Path) -> list[dict[str, Any]]:
    """Rows with a caption each, of different length, and clips below a folder."""
    return [_row(protocol, number, videos) for number in range(n_rows)]


def _row(protocol: str, number: int, videos: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"clip_id": f"clip {number}", "caption": f"A dog runs {number} times."}
    if protocol in WITH_QUESTIONS:
        row["questions"] = [_question(protocol, number, place) for place in range(N_QUESTIONS)]
    if protocol in WITH_REFERENCE:
        row["reference"] = f"The dog runs {number} times."
    if protocol in WITH_VIDEO:
        row["video"] = f"{number % 3}.mp4"
        write_clip(videos / row["video"], row["video"])
    return row


def _question(protocol: str, number: int, place: int) -> Mapping[str, object]:
    text = f"What is there, {number}, {place}?"
    if protocol == "vcapsbench":
        return {"category": "action", "question": text, "answer": ("yes", "no")[place % 2]}
    if protocol == "capquiz":
        options = ["a dog", "a cat", "a cow", "a hen", "a pig"]
        return {"category": "Entity", "question": text, "options": options, "answer": "a dog"}
    return {"question": text, "answer": "a dog", "category": "animals"}


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A Parquet file of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    return list(pq.read_table(path).to_pylist())
