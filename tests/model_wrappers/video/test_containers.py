"""Containers that are opened, and those that are not."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.containers import (
    RefusedError,
    check_file,
    may_be_list,
    nameless,
)


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


KINDS: dict[str, Callable[[Path], object]] = {
    "a folder": _folder,
    "a named pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/null"),
    "no regular file": _socket,
    "a link to nothing": lambda path: path.symlink_to(path.with_name("gone")),
    "empty": Path.touch,
    "none": lambda path: None,  # noqa: ARG005
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything else is named for what it is, with its path, before it is opened."""
    monkeypatch.chdir(tmp_path)  # A socket's path must be short.
    path = Path("clip.mp4")
    KINDS[kind](path)
    word = "a socket" if kind == "no regular file" else kind
    with pytest.raises(DataError, match=rf"expected a video file.*({word}.*clip|clip.*{word})"):
        check_file(path)
    if kind != "empty":
        with pytest.raises(RefusedError), nameless(path):
            pass


def test_a_file_has_its_size_and_a_name_that_says_nothing(tmp_path: Path) -> None:
    """FFmpeg sees neither a pattern nor an extension, and reads the same bytes."""
    path = tmp_path / "frame%03d.m3u8"
    path.write_bytes(b"12345")
    assert check_file(path) == 5
    with nameless(path) as name:
        assert path.stem not in name
        assert Path(name).read_bytes() == b"12345"
    n_open = len(list(Path("/dev/fd").iterdir()))
    for _ in range(20):
        with nameless(path):
            pass
    assert len(list(Path("/dev/fd").iterdir())) <= n_open


@pytest.mark.parametrize(
    ("content", "is_one"),
    [
        (b"#EXTM3U\n", True),
        (b"\0" * 99 + b"ffconcat version 1.0", True),
        (b"v=0\nc=IN IP4 0.0.0.0", True),
        (b"\0\0\0\x20ftypisom", False),
        (b"\0" * 2**21 + b"#EXTM3U", False),
    ],
)
def test_lists_of_files_are_told_by_their_beginning(
    content: bytes, is_one: bool, tmp_path: Path
) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(content)
    assert may_be_list(path) == is_one
