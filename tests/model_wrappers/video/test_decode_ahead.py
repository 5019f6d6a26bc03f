"""Decoding ahead of need: order, memory, failures, the end."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.generation import Generation
from lmms_eval_captions.model_wrappers.ordering import PlannedCaption
from lmms_eval_captions.model_wrappers.video.decode_ahead import DecodeAhead


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

    def __call__(self, path: Path) -> str:
        """The letter, as a capital."""
        self.n_read[path.name] += 1
        if path.name in self.failures:
            raise self.failures[path.name]
        return path.name.upper()


def _joined(batch: list[PlannedCaption], clips: dict[Path, str]) -> str:
    return " ".join(clips[planned.path] for planned in batch)


@pytest.mark.parametrize("n_threads", [1, 4])
@pytest.mark.parametrize("n_ahead", [1, 2, 9])
def test_batches_come_in_order_and_clips_are_read_once(n_threads: int, n_ahead: int) -> None:
    """A clip that goes on in the next batch is not read again; one that comes back later is."""
    read = Reader()
    batches = _batches("ab", "bc", "c", "da")
    ahead = DecodeAhead(  # type: ignore[var-annotated]
        batches, decode=read, prepare=_joined, n_threads=n_threads, n_ahead=n_ahead
    )
    assert list(ahead) == ["A B", "B C", "C", "D A"]
    assert read.n_read == {"a": 2 if n_ahead < 4 else 1, "b": 1, "c": 1, "d": 1}
    assert not ahead._clips


def test_no_more_than_the_asked_for_is_made_ready() -> None:
    """So many batches wait beside the one in use."""
    n_prepared = 0
    ahead_of: list[int] = []

    def prepare(batch: list[PlannedCaption], clips: dict[Path, str]) -> str:
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
