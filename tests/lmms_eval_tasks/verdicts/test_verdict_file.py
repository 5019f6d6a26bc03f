"""The file of a task's verdicts: written whole, read to its end or refused in words."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdict_file import (
    read_verdict_items,
    verdict_path,
    write_verdicts,
)
from lmms_eval_captions.model_wrappers.caption_files.paths import caption_files_in

ITEMS: list[dict[str, object]] = [{"video_id": "a", "asked": ["Wer? \ud83d"]}, {"video_id": "b"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with the verdicts of two captions."""
    path = verdict_path(tmp_path, "20260102_030405", "vdc_camera")
    write_verdicts(path, {"task": "vdc_camera"}, ITEMS)
    return path


def test_what_is_written_is_read(path: Path) -> None:
    """Half a character, which no file can hold, is a question mark."""
    assert [item["video_id"] for item in read_verdict_items(path)] == ["a", "b"]
    assert next(read_verdict_items(path))["asked"] == ["Wer? ?"]


def test_equal_verdicts_are_equal_files(path: Path, tmp_path: Path) -> None:
    """No time of day is in them: who keeps results under version control sees no change."""
    other = tmp_path / "other.jsonl.gz"
    write_verdicts(other, {"task": "vdc_camera"}, ITEMS)
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b'{"task": "t"}\n{"video_id": "a"}\n')[:-12], "cut off"),
        (gzip.compress(b'{"task": "t"}\n{"video_id": \n'), "Expecting value"),
        (gzip.compress(b'{"task": "t"}\n[1]\n'), r"line 2: expected a caption, got \[1\]"),
    ],
    ids=["cut-off", "no-json", "no-caption"],
)
def test_a_damaged_file_is_refused_by_its_name(path: Path, content: bytes, words: str) -> None:
    """Nothing is made of half of the verdicts."""
    path.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        list(read_verdict_items(path))
    assert path.name in str(caught.value)


def test_verdicts_are_no_captions(path: Path) -> None:
    """Who names a folder of results as captions is not served verdicts."""
    assert caption_files_in(path.parent) == []
