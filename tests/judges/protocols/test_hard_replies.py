"""Every reader against the hard replies: the verdict that a person reads, or none.

A row of ``hard_replies.jsonl`` is a reply and the verdict that a person who knows the prompt reads.
 ``expected`` is null if there is no verdict or people differ; ``allowed`` are then the
verdicts that a person may defend. ``plain`` replies must be read. ``cuttable`` is false if a
beginning of the reply is a complete reply of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import read_choice
from lmms_eval_captions.judges.protocols.gveval import GVeval
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.protocols.vidcapbench import read_correctness
from lmms_eval_captions.judges.protocols.video_rating import DIMENSIONS, read_ratings

Row = dict[str, Any]
ROWS: Final[list[Row]] = [
    json.loads(line)
    for line in Path(__file__).with_name("hard_replies.jsonl").read_text("utf-8").splitlines()
]
MENU: Final = (
    "A red car", "A blue car", "A bicycle", "Two dogs", "A red car with a white stripe",
    "Cannot be determined",
)  # fmt: skip
"""Options of CapQuiz's replies; one option is the beginning of another."""
LEAST_READ: Final = 0.85


def _gveval(reply: Reply) -> object:
    read = GVeval("ref_only").read(reply)
    return None if read is None else [read[0][name] for name in ACCR]


def _ratings(reply: Reply) -> object:
    read = read_ratings(reply)
    return None if read is None else [read[name] for name in DIMENSIONS]


def _match(reply: Reply) -> object:
    read = read_match(reply)
    return None if read is None else list(read)


READERS: Final[dict[str, Callable[[Reply], object]]] = {
    "vdc": _match,
    "vidcapbench": read_correctness,
    "vcapsbench": read_answer,
    "capquiz": lambda reply: read_choice(reply, MENU),
    "gveval": _gveval,
    "video_rating": _ratings,
}
EACH: Final = pytest.mark.parametrize("reader", READERS)


def _read(row: Row) -> object:
    return READERS[row["reader"]](Reply(row["reply"], row.get("finish_reason", "stop")))


@EACH
def test_no_hard_reply_is_read_as_another_verdict(reader: str) -> None:
    """A reader returns the verdict that a person reads, or none."""
    misread = [
        f"{row['reply']!r} reads {read!r}, a person {row['expected']!r} ({row['why']})"
        for row in ROWS
        if row["reader"] == reader
        and (read := _read(row)) not in (None, row["expected"], *row.get("allowed", ()))
    ]
    assert not misread, "\n".join(misread)


@EACH
def test_most_clear_replies_are_read(reader: str) -> None:
    """85% of the replies that a person reads without hesitation, and all plain ones."""
    clear = [row for row in ROWS if row["reader"] == reader and row["expected"] is not None]
    unread = [row for row in clear if _read(row) != row["expected"]]
    assert not [row for row in unread if row.get("plain")]
    assert len(unread) <= (1 - LEAST_READ) * len(clear), unread


@EACH
def test_a_cut_reply_is_never_another_verdict(reader: str) -> None:
    """Each beginning of a clear reply is read as the complete one, or not at all.

    Except if it ended by itself (``stop``): it is complete then.
    """
    changed = [
        f"{text!r} reads {read!r}, complete {row['expected']!r}"
        for row in ROWS
        if row["reader"] == reader and row["expected"] is not None and row.get("cuttable", True)
        for end in range(len(row["reply"]))
        for text in [row["reply"][:end]]
        if (read := READERS[reader](Reply(text, "length"))) not in (None, row["expected"])
    ]
    assert not changed, "\n".join(changed)
