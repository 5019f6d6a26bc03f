"""Writing a file whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_captions.judges.files.atomic_write import write_atomically


def test_a_file_is_written_and_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    """The folder is made, the second content takes the place of the first, no draft stays."""
    path = tmp_path / "folder" / "file.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


def test_what_was_there_stays_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full in the middle of a file costs neither the old file nor a draft's room."""
    path = tmp_path / "file.json"
    write_atomically(path, b"first")

    def write_half(draft: Path, content: bytes) -> int:
        with draft.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_is_hidden_and_ends_in_another_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who looks for files of a kind while one is written does not see its draft."""
    seen: list[Path] = []

    def keep(draft: Path, _: Path) -> None:
        seen.append(draft)

    monkeypatch.setattr(Path, "replace", keep)
    write_atomically(tmp_path / "file.json", b"content")
    assert [(draft.name[0], draft.suffix) for draft in seen] == [(".", ".partial")]
