"""Which generated videos a folder has."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.t2v_verify.generated import (
    find_generated,
    find_originals,
)


def _touch(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return folder


def test_videos_are_found_with_and_without_a_folder_of_the_generator(tmp_path: Path) -> None:
    """What is no video is passed over."""
    folder = _touch(tmp_path, "b/v.mp4", "a/hun/v.mkv", "a/hun/notes.txt", "a/ltx/w.mp4")
    assert [item.key for item in find_generated(folder)] == [
        ("a", "hun", "v"), ("a", "ltx", "w"), ("b", "", "v"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("v.mp4",), "expected CAPTIONER/VIDEO"),
        (("a/b/c/v.mp4",), "expected CAPTIONER/VIDEO"),
        (("a/v.mp4", "a/v.mkv"), "have the same name"),
        (("a/v.txt",), "found no video"),
    ],
)
def test_another_layout_is_refused(names: tuple[str, ...], words: str, tmp_path: Path) -> None:
    """The message says which one is expected, or which files are in each other's way."""
    with pytest.raises(DataError, match=words):
        find_generated(_touch(tmp_path, *names))


def test_originals_have_the_same_names(tmp_path: Path) -> None:
    """Whatever their ending; none of them at all is a wrong folder."""
    folder = _touch(tmp_path, "x/v.avi", "u.mp4")
    assert find_originals(folder, {"v", "w"}) == {"v": folder / "x" / "v.avi"}
    with pytest.raises(DataError, match="such as 'w', found none of them"):
        find_originals(folder, {"w"})
