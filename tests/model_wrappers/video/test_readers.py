"""One reader after the other, and what becomes of a library's errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video import readers
from lmms_eval_captions.model_wrappers.video.reading_errors import (
    RefusedError,
    UnreadableError,
    one_line,
)
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

MODULES = {
    "PyAV, seeking": "frames_by_seeking", "PyAV": "frames_from_start", "decord": "frames_decord",
}  # fmt: skip


def _read_with_failing(
    name: str, error: Exception, cause: Exception | None, patch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error from cause

    patch.setattr(getattr(readers, MODULES[name]), "read", fail)
    readers.read_with(name, Path("clip.mp4"), Uniform(2), max_pixels=None, n_threads=1)


@pytest.mark.parametrize("name", readers.READERS)
def test_whatever_a_library_raises_costs_the_clip_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name leads to its own reader, whose unknown errors are put in one line."""
    with pytest.raises(UnreadableError, match=r"^ZeroDivisionError: first$"):
        _read_with_failing(name, ZeroDivisionError("first\nsecond"), None, monkeypatch)


@pytest.mark.parametrize("error", [RefusedError("too large"), DataError("gone"), MemoryError()])
def test_errors_with_a_meaning_keep_it(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal stays one for all readers, and a lack of memory is no fault of the file's."""
    with pytest.raises(type(error)) as caught:
        _read_with_failing("PyAV", error, None, monkeypatch)
    assert caught.value is error


def test_a_lack_of_memory_within_an_error_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libav's own is wrapped on the way."""
    with pytest.raises(MemoryError):
        _read_with_failing("PyAV", UnreadableError("no"), MemoryError("libav"), monkeypatch)


def test_an_error_without_a_text_has_the_name_of_its_kind() -> None:
    """A message is never empty."""
    assert [one_line(error) for error in (ValueError(), ValueError(" a\n b"))] == [
        "ValueError", "a"
    ]  # fmt: skip
