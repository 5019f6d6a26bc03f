"""Replies of a real small model are read as a careful person reads them, or not at all.

``recorded_replies.md`` says where they come from and by which rule they were read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import read_choice
from lmms_eval_captions.judges.protocols.gveval_reading import ACCR, read_scores
from lmms_eval_captions.judges.protocols.t2v_rating import read_ratings as read_video_ratings
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.judges.protocols.vdc_reading import read_match
from lmms_eval_captions.judges.protocols.vidcapbench import read_correctness
from lmms_eval_captions.judges.protocols.video_rating import read_ratings

Row = dict[str, Any]

ROWS: Final[list[Row]] = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded_replies.jsonl").read_text("utf-8").splitlines()
]
PROTOCOLS: Final = sorted({row["protocol"] for row in ROWS})
LEAST_READ: Final = 0.85
"""Least share of the replies with a clear verdict that must be read."""


READERS: Final[dict[str, Callable[[Reply], object]]] = {
    "vdc": read_match,
    "vidcapbench": read_correctness,
    "vcapsbench": read_answer,
    "gveval": partial(read_scores, dimensions=ACCR, lowest=0, highest=100),
    "video_rating": read_ratings,
    "t2v_rating": read_video_ratings,
}


def _read(row: Row) -> object:
    """What the protocol's reader makes of a reply, as JSON would write it."""
    reply = Reply(row["reply"], row["finish_reason"])
    if row["protocol"] == "capquiz":
        return read_choice(reply, row["options"])
    value = READERS[row["protocol"]](reply)
    if isinstance(value, dict) and row["protocol"].startswith("gveval"):
        return {name: float(written.text) for name, written in value.items()}
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_reply_is_read_as_another_verdict(protocol: str) -> None:
    """What a reader makes of a real reply is what a person reads in it, or nothing."""
    misread = [
        (read, row["expected"], row["reply"])
        for row in ROWS
        if row["protocol"] == protocol
        if (read := _read(row)) is not None and read != row["expected"]
    ]
    assert misread == [], f"{len(misread)} misread"


def test_clear_verdicts_are_read() -> None:
    """Most of the replies that state one verdict plainly are read."""
    clear = [row for row in ROWS if row["clear"] and row["expected"] is not None]
    unread = Counter(row["protocol"] for row in clear if _read(row) is None)
    share = 1 - unread.total() / len(clear)
    assert share >= LEAST_READ, f"{share:.0%} of {len(clear)} read; unread: {unread}"
