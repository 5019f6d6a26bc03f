"""Every reader against replies with the verdict that a person reads, or none.

``recorded_replies.jsonl`` has replies of a real small model, ``recorded_replies.md`` says by which
rule they were read. A row of ``hard_replies.jsonl`` is a reply and the verdict that a person who
knows the prompt reads. ``expected`` is null if there is no verdict or people differ; ``allowed``
are then the verdicts that a person may defend. ``plain`` replies must be read. ``cuttable`` is
false if a beginning of the reply is a complete reply of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import read_choice
from lmms_eval_captions.judges.protocols.gveval import GVeval
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.protocols.vidcapbench import read_correctness
from lmms_eval_captions.judges.protocols.video_rating import read_ratings

Row = dict[str, Any]
MENU: Final = (
    "A red car", "A blue car", "A bicycle", "Two dogs", "A red car with a white stripe",
    "Cannot be determined",
)  # fmt: skip
"""Options of CapQuiz's hard replies; one option is the beginning of another."""
LEAST_READ: Final = 0.85
"""Least share of the replies with a clear verdict that must be read."""
READERS: Final[Mapping[str, Callable[[Reply], Any]]] = {
    "vdc": read_match,
    "vidcapbench": read_correctness,
    "vcapsbench": read_answer,
    "capquiz": lambda reply: read_choice(reply, MENU),
    "gveval": lambda reply: (GVeval("ref_only").read(reply) or (None,))[0],
    "video_rating": read_ratings,
}


def _rows(name: str) -> list[Row]:
    text = Path(__file__).with_name(f"{name}_replies.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


HARD: Final = _rows("hard")
RECORDED: Final = _rows("recorded")
EACH: Final = pytest.mark.parametrize("reader", sorted({row["reader"] for row in HARD}))


def _read(row: Row, text: str | None = None) -> object:
    reply = Reply(row["reply"] if text is None else text, row.get("finish_reason", "stop"))
    if "options" in row:
        return read_choice(reply, row["options"])
    value = READERS[row.get("protocol") or row["reader"]](reply)
    if isinstance(value, dict) and not isinstance(row["expected"], dict):
        value = value.values()
    return value if value is None or isinstance(value, str | int | dict) else list(value)


def _misread(rows: Sequence[Row]) -> str:
    return "\n".join(
        f"{row['reply']!r} reads {read!r}, a person {row['expected']!r}"
        for row in rows
        if (read := _read(row)) not in (None, row["expected"], *row.get("allowed", ()))
    )


def _unread(rows: Sequence[Row]) -> list[Row]:
    """Clear replies that are not read; at most as many as may be."""
    unread = [row for row in rows if _read(row) != row["expected"]]
    assert len(unread) <= (1 - LEAST_READ) * len(rows), unread
    return unread


@pytest.mark.parametrize("protocol", sorted({row["protocol"] for row in RECORDED}))
def test_no_recorded_reply_is_read_as_another_verdict(protocol: str) -> None:
    assert not (misread := _misread([r for r in RECORDED if r["protocol"] == protocol])), misread


def test_most_clear_recorded_replies_are_read() -> None:
    _unread([row for row in RECORDED if row["clear"] and row["expected"] is not None])


@EACH
def test_no_hard_reply_is_read_as_another_verdict(reader: str) -> None:
    """A reader returns the verdict that a person reads, or none."""
    assert not (misread := _misread([row for row in HARD if row["reader"] == reader])), misread


@EACH
def test_most_clear_hard_replies_are_read(reader: str) -> None:
    """And all plain ones."""
    clear = [row for row in HARD if row["reader"] == reader and row["expected"] is not None]
    assert not [row for row in _unread(clear) if row.get("plain")]


@EACH
def test_a_cut_reply_is_never_another_verdict(reader: str) -> None:
    """Each beginning of a clear reply is read as the complete one, or not at all.

    Except if it ended by itself (``stop``): it is complete then.
    """
    changed = [
        f"{text!r} reads {read!r}, complete {row['expected']!r}"
        for row in HARD
        if row["reader"] == reader and row["expected"] is not None and row.get("cuttable", True)
        for end in range(len(row["reply"]))
        for text in [row["reply"][:end]]
        if (read := _read({**row, "finish_reason": "length"}, text)) not in (None, row["expected"])
    ]
    assert not changed, "\n".join(changed)
