"""Replies of a real small model to the prompts of ``build``: what is read of each.

``recorded_replies.md`` says where they come from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from lmms_eval_captions.construction.replies import (
    Review,
    Written,
    fault_of,
    read_captions,
    read_clusters,
    read_domains,
    read_free_caption,
    read_groups,
    read_items,
    read_option,
    read_review,
    read_yes_no,
)
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.capquiz.benchmark import SUPER_OF

Row = Mapping[str, Any]

ROWS: Final[list[Row]] = [
    json.loads(line)
    for line in Path(__file__).with_name("recorded_replies.jsonl").read_text("utf-8").splitlines()
]
MOST: Final = 100
_ITEM_KEYS: Final = {
    "build_capquiz_write": ("category", "question", "options", "answer"),
    "build_vcapsbench_pairs_from_caption": ("category", "question", "answer"),
    "build_vcapsbench_pairs_from_frames": ("category", "question", "answer"),
    "build_vidcapbench_pairs": ("primary_category", "sub_category", "question", "answer"),
}
_DOMAINS: Final = tuple(SUPER_OF)


def _letter(reply: Reply, row: Row) -> str | None:
    option = read_option(reply, row["options"])
    return None if option is None else "ABCDEF"[row["options"].index(option)]


READERS: Final[dict[str, Callable[[Reply, Row], object]]] = {
    "build_capquiz_domain": lambda reply, _: read_domains(reply, _DOMAINS),
    "build_capquiz_blind": _letter,
    "build_capquiz_sighted": _letter,
    "build_capquiz_cluster": lambda reply, row: read_clusters(reply, row["n"]),
    "build_vcapsbench_merge": lambda reply, row: read_groups(reply, row["n"]),
    "build_vcapsbench_sighted": lambda reply, _: read_yes_no(reply),
    "build_vdc_captions.first": lambda reply, _: read_captions(reply),
    "build_vdc_captions.second": lambda reply, _: read_free_caption(reply),
    "build_vdc_pairs": lambda reply, _: read_items(reply, ("question", "answer"), most=MOST),
    "build_vdc_sighted": lambda reply, _: read_yes_no(reply),
    "build_vidcapbench_review": lambda reply, _: read_review(reply),
    **{
        prompt: partial(lambda reply, _, keys: read_items(reply, keys, most=MOST), keys=keys)
        for prompt, keys in _ITEM_KEYS.items()
    },
}
"""Prompt to how its replies are read, as ``build`` has them read."""
READ: Final = {
    "build_capquiz_domain": (1, 19),
    "build_capquiz_write": (4, 20),
    "build_capquiz_blind": (11, 12),
    "build_capquiz_sighted": (10, 12),
    "build_capquiz_cluster": (0, 22),
    "build_vcapsbench_pairs_from_caption": (13, 24),
    "build_vcapsbench_pairs_from_frames": (8, 20),
    "build_vcapsbench_merge": (0, 21),
    "build_vcapsbench_sighted": (1, 12),
    "build_vdc_captions.first": (2, 17),
    "build_vdc_captions.second": (15, 24),
    "build_vdc_pairs": (3, 22),
    "build_vdc_sighted": (4, 22),
    "build_vidcapbench_pairs": (5, 21),
    "build_vidcapbench_review": (6, 24),
}
"""Replies that are read, and all of them."""


def _read(row: Row) -> object:
    value = READERS[row["prompt"]](Reply(row["reply"], row["finish_reason"]), row)
    if value is None or row["prompt"] == "build_vdc_captions.second":
        return None if value is None else "a caption"
    if isinstance(value, Written):
        value = [dict(item) for item in value.items]
    elif isinstance(value, Review):
        value = [value.decision, value.question, value.answer]
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("prompt", sorted(READERS))
def test_every_reply_is_read_as_a_person_reads_it(prompt: str) -> None:
    """Each of them was checked by hand: what is not said is not read, and none raises."""
    rows = [row for row in ROWS if row["prompt"] == prompt]
    assert [_read(row) for row in rows] == [row["read"] for row in rows]


def test_so_many_replies_are_read() -> None:
    """Facts about the model, 83 of 292: it hardly makes lists, and chooses among options."""
    n_read = Counter(row["prompt"] for row in ROWS if row["read"] is not None)
    n_all = Counter(row["prompt"] for row in ROWS)
    assert {prompt: (n_read[prompt], n_all[prompt]) for prompt in READERS} == READ


def test_what_cannot_be_read_is_told_why() -> None:
    """Every reply that is no list of questions has a reason; the model itself gave four of six."""
    keys = {**_ITEM_KEYS, "build_vdc_pairs": ("question", "answer")}
    faults = Counter(
        fault_of(row["reply"], keys[row["prompt"]], most=MOST)
        for row in ROWS
        if row["prompt"] in keys and row["read"] is None
    )
    assert faults == {"no JSON": 50, "wrong keys": 13, "unreadable": 6, "repeats itself": 5}
