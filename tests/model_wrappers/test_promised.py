"""Captions that someone else writes: settled however asking and reading end."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NoReturn

import pytest

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.model_wrappers.caption_jobs import Caption
from lmms_eval_captions.model_wrappers.promised import Promises


def came(text: str) -> Future[str]:
    """An answer that is there."""
    answer: Future[str] = Future()
    answer.set_result(text)
    return answer


def fail() -> NoReturn:
    """Nothing is asked."""
    raise CaptionError("nobody is there")


def test_an_answer_that_cannot_be_read_is_no_wait_without_end() -> None:
    """An output of a form that nobody expected has a reason, and leaves its place."""
    promises = Promises(1, lambda error: f"of theirs: {error!r}")
    caption = promises.caption(lambda: came("x"), lambda text: Caption(text[3]))
    with pytest.raises(CaptionError, match="of theirs: IndexError"):
        caption.result(timeout=5)
    assert promises.caption(lambda: came("x"), Caption).result(timeout=5) == Caption("x")


def test_what_could_not_be_asked_leaves_its_place() -> None:
    """The next one is asked all the same."""
    promises = Promises(1)
    for _ in range(2):
        with pytest.raises(CaptionError, match="nobody"):
            promises.caption(fail, Caption)


def test_what_is_dropped_is_dropped() -> None:
    """As of an engine that ends."""
    answer: Future[str] = Future()
    caption = Promises(1).caption(lambda: answer, Caption)
    assert answer.cancel()
    assert caption.cancelled()
