"""Decoding ahead of need: order, memory, failures, the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import (
    DocVisuals,
    Shown,
    Source,
    Visuals,
    source_name,
)
from lmms_eval_captions.model_wrappers.decode_ahead import DecodeAhead, Decoded
from lmms_eval_captions.model_wrappers.generation import Generation
from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
from lmms_eval_captions.model_wrappers.video.clip import make_clip


def _batches(*names: str) -> list[list[PlannedCaption]]:
    """One batch per word, one clip per letter."""
    return [
        [PlannedCaption(Path(letter), "", Generation(), "task", 0, (0,)) for letter in name]
        for name in names
    ]


class Reader:
    """Reads letters, counts them, and fails where it is told to."""

    def __init__(self, **failures: Exception) -> None:
        self.n_read: Counter[str] = Counter()
        self.failures = failures

    def __call__(self, source: Source) -> Shown:
        """A clip of as many frames as the letter's code says."""
        name = source_name(source)
        self.n_read[name] += 1
        if name in self.failures:
            raise self.failures[name]
        frame = np.zeros((1, 2, 2, 3), np.uint8)
        return Shown([make_clip(frame, np.zeros(1), fps=1.0, n_total=ord(name[-1]))])


def _joined(batch: Sequence[PlannedCaption], clips: Decoded) -> str:
    """The letters of the clips as capitals, and why others cannot be read."""
    read = [clips[planned.source] for planned in batch]
    return " ".join(
        shown if isinstance(shown, str) else chr(shown.clips[0].n_total).upper() for shown in read
    )


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize("n_ahead", [1, 2, 9])
def test_batches_come_in_order_and_clips_are_read_once(n_threads: int, n_ahead: int) -> None:
    """A clip that goes on in the next batch is not read again; one that comes back later is."""
    read = Reader()
    batches = _batches("ab", "bc", "c", "da")
    ahead = DecodeAhead(batches, decode=read, prepare=_joined, n_threads=n_threads, n_ahead=n_ahead)
    assert list(ahead) == ["A B", "B C", "C", "D A"]
    assert read.n_read == {"a": 2 if n_ahead < 4 else 1, "b": 1, "c": 1, "d": 1}
    assert not ahead._clips


def test_no_more_than_the_asked_for_is_made_ready() -> None:
    """So many batches wait beside the one in use."""
    n_prepared = 0
    ahead_of: list[int] = []

    def prepare(batch: Sequence[PlannedCaption], clips: Decoded) -> str:
        nonlocal n_prepared
        n_prepared += 1
        return _joined(batch, clips)

    ahead = DecodeAhead(
        _batches(*"abcdefgh"), decode=Reader(), prepare=prepare, n_threads=2, n_ahead=3
    )
    ahead_of.extend(n_prepared - done for done, _ in enumerate(ahead))
    assert max(ahead_of) <= 3 + 1
    assert n_prepared == 8


def test_a_clip_that_cannot_be_read_is_a_text() -> None:
    """Our own errors in their words, anything else with its kind; the others are read."""
    read = Reader(b=DataError("cut off"), c=ZeroDivisionError("by zero"))
    ahead = DecodeAhead(_batches("abc"), decode=read, prepare=_joined, n_threads=2)
    [line] = ahead
    assert line == (
        "A cut off expected a readable video, reading it failed: ZeroDivisionError('by zero')"
    )


def test_a_mistake_in_preparing_ends_the_run() -> None:
    """It is the captioner's, and nobody waits for the clips after it."""

    def fail(*_: object) -> str:
        raise KeyError("a mistake")

    ahead = DecodeAhead(_batches(*"abc"), decode=Reader(), prepare=fail, n_threads=1)
    with pytest.raises(KeyError, match="a mistake"):
        list(ahead)


def test_leaving_early_ends_its_threads() -> None:
    """After Ctrl-C in the model, say."""
    before = threading.active_count()
    for _ in DecodeAhead(_batches(*"abc"), decode=Reader(), prepare=_joined, n_threads=2):
        break
    until_s = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until_s:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_a_document_that_shows_pictures_is_read_once_like_a_clip() -> None:
    """Two captions about it in a row share what was read; equal documents are one source."""
    read = Reader()
    documents = [DocVisuals("task", "test", 7, partial(Visuals, ())) for _ in range(2)]
    batches = [
        [PlannedCaption(document, prompt, Generation(), "task", 7, (0,))]
        for document, prompt in zip(documents, "pq", strict=True)
    ]
    ahead = DecodeAhead(batches, decode=read, prepare=_joined, n_threads=2)
    assert list(ahead) == ["K", "K"]
    assert read.n_read == {"document 7 of task": 1}


def test_several_batches_are_prepared_at_once() -> None:
    """As many as the captioner allows, and they come in order all the same."""
    both = threading.Barrier(2, timeout=20)

    def prepare(batch: Sequence[PlannedCaption], clips: Decoded) -> str:
        both.wait()
        return _joined(batch, clips)

    ahead = DecodeAhead(
        _batches("a", "b", "c", "d"),
        decode=Reader(),
        prepare=prepare,
        n_threads=1,
        n_ahead=2,
        n_preparers=2,
    )
    assert list(ahead) == ["A", "B", "C", "D"]
