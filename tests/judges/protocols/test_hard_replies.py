"""Every reader against the hard replies: what a person reads, or nothing."""

from __future__ import annotations

from typing import Final, get_args

import pytest

from hard_replies import HARD_REPLIES, PLAIN_REPLIES, READERS, HardReply, Reader
from lmms_eval_captions.judges.endpoint.request import Reply

_CASES: Final = [
    pytest.param(case, id=f"{case.reader}-{index}") for index, case in enumerate(HARD_REPLIES)
]
_LEAST_SHARE_READ: Final = 0.85
"""Of the clear replies of each reader."""


@pytest.mark.parametrize("case", _CASES)
def test_no_hard_reply_is_read_as_another_verdict(case: HardReply) -> None:
    """A reader gives the verdict that a person reads, or none."""
    read = READERS[case.reader](Reply(case.text, case.finish_reason))
    assert read in {None, case.reads, *case.allowed}, case.why


@pytest.mark.parametrize("case", PLAIN_REPLIES)
def test_words_near_a_verdict_do_not_hide_it(case: HardReply) -> None:
    """What only looks like a form that is shown, or an option that is named, is read."""
    assert READERS[case.reader](Reply(case.text, case.finish_reason)) == case.reads


@pytest.mark.parametrize("reader", get_args(Reader))
def test_most_clear_replies_are_read(reader: Reader) -> None:
    """A reader reads at least 85% of the replies that a person reads without hesitation."""
    clear = [case for case in HARD_REPLIES if case.reader == reader and case.clear]
    unread = [
        f"{case.text!r}: a person reads {case.reads!r} ({case.why})"
        for case in clear
        if READERS[reader](Reply(case.text, case.finish_reason)) != case.reads
    ]
    share = 1 - len(unread) / len(clear)
    assert share >= _LEAST_SHARE_READ, f"{share:.0%} of {len(clear)} read\n" + "\n".join(unread)


@pytest.mark.parametrize("finish_reason", ["length", None])
@pytest.mark.parametrize("reader", get_args(Reader))
def test_a_cut_hard_reply_is_never_another_verdict(
    reader: Reader, finish_reason: str | None
) -> None:
    """Each beginning of a clear reply is read as the whole or not at all, unless it says it ended.

    A reply that ended by itself (``stop``) is whole, and one without a verdict may begin with one.
    """
    changed = [
        f"{case.text[:end]!r} reads {read!r}, the whole {case.reads!r}"
        for case in HARD_REPLIES
        if case.reader == reader and case.clear and case.cuttable
        for end in range(len(case.text))
        if (read := READERS[reader](Reply(case.text[:end], finish_reason))) is not None
        and read != case.reads
    ]
    assert not changed, "\n".join(changed)


def test_the_table_is_large_and_consistent() -> None:
    """There are 300 replies or more, 45 or more of each reader, and none stands there twice."""
    texts = {(case.reader, case.text) for case in HARD_REPLIES}
    assert len(texts) == len(HARD_REPLIES) >= 300
    for reader in get_args(Reader):
        assert sum(case.reader == reader for case in HARD_REPLIES) >= 45
    assert not [case for case in HARD_REPLIES if case.clear and case.allowed]
    assert not [case for case in HARD_REPLIES if not case.why]
