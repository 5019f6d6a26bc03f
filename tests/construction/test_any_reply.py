"""Whatever a model says, a reader of building reads it or not, and soon."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_captions.construction.replies import (
    fault_of,
    read_captions,
    read_clusters,
    read_domains,
    read_groups,
    read_items,
    read_option,
    read_review,
    read_yes_no,
)
from lmms_eval_captions.judges.endpoint.request import Reply

KEYS: Final = ("category", "question", "options", "answer")
READERS: Final[dict[str, Callable[[Reply], object]]] = {
    "items": lambda reply: read_items(reply, KEYS, most=100),
    "pairs": lambda reply: read_items(reply, ("question", "answer"), most=20),
    "domains": lambda reply: read_domains(reply, ("Game", "Sports")),
    "clusters": lambda reply: read_clusters(reply, 7),
    "groups": lambda reply: read_groups(reply, 7),
    "captions": read_captions,
    "letter": lambda reply: read_option(reply, ("a", "b", "c", "d", "e")),
    "yes-no": read_yes_no,
    "review": read_review,
}
PARTS: Final = (
    *("{", "}", "[", "]", "(", ")", ",", ":", '"', "'", "\\", "\n", "...", "#", "//", "0", "-1."),
    *("True", "null", '"question"', "'answer': ", '{"a": 1}', "('x', 'y')", "[[0], [1]]"),
    *("[[[2]]]", "Short Caption: ", '"decision": "keep"', "<think>", "</think>", "\ud83d"),
    *(r"\ud83d", r"\u00", "“", "’", "```json", "Yes", "B. "),
)
UNITS: Final = (
    *("[", "{", "(", '{"a":', '{"a":"', "['", "{'", '{"a":"\\', '{"a": "x", ', '{"a": [', "[[0],"),
    *(
        '[" ,',
        "{a  ",
        '{"question": "Who?", "answer": "x"},',
        '{"question": "Who?", "question": "x",',
    ),
    *("Short Caption: a. ", "('a', 'b'),", "('a", "('a', 'b"),
)


@pytest.mark.parametrize("reader", READERS)
@given(
    st.text() | st.lists(st.sampled_from(PARTS), max_size=40).map("".join),
    st.sampled_from(["stop", "length", None]),
)
def test_no_reply_raises(reader: str, text: str, finish_reason: str | None) -> None:
    """Any text at all, and any sequence of what replies are made of."""
    READERS[reader](Reply(text, finish_reason))


@given(st.text() | st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
def test_every_unread_reply_has_a_reason(text: str) -> None:
    """The reasons are a closed set, by which they are counted."""
    assert read_items(Reply(text, "stop"), KEYS, most=1) is not None or fault_of(
        text, KEYS, most=1
    ) in {"empty", "no JSON", "wrong keys", "too many", "repeats itself", "unreadable"}


@pytest.mark.parametrize("unit", UNITS)
def test_a_megabyte_is_read_in_no_time(unit: str) -> None:
    """By every reader; none takes longer the deeper or the more broken a reply is."""
    reply = Reply(unit * (1_000_000 // len(unit)), "length")
    for name, read in READERS.items():
        begin = process_time()
        read(reply)
        assert process_time() - begin < 1.0, name
