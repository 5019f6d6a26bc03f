"""Unpacking: nothing escapes, nothing half-done counts, broken archives are told."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.archives import MARKER, is_unpacked, unpack

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = {"repo": "r", "revision": "main", "archive": "a"}


def tar(path: Path, *members: tuple[str, bytes, str]) -> Path:
    """A tar file of members (name, tarfile type, link target or content)."""
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            data = text.encode() if kind == tarfile.REGTYPE else b""
            info.size = len(data)
            info.linkname = "" if data else text
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, *members: tuple[str, int]) -> Path:
    """A zip file of members (name, file mode)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            archive.writestr(info, "content")
    return path


@pytest.mark.parametrize("name", ["v.tar", "v.tar.gz"])
def test_a_tar_file_is_unpacked(tmp_path: Path, name: str) -> None:
    """Members arrive with their folders, and the marker says what they are."""
    archive = tar(tmp_path / name, ("./in/a.mp4", tarfile.REGTYPE, "A"))
    unpack(archive, tmp_path / "out", ORIGIN)
    assert (tmp_path / "out" / "in" / "a.mp4").read_text() == "A"
    assert is_unpacked(tmp_path / "out", ORIGIN)
    assert not is_unpacked(tmp_path / "out", {**ORIGIN, "revision": "other"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", name]


def test_a_zip_file_is_unpacked(tmp_path: Path) -> None:
    """Zip files work like tar files, with or without modes."""
    archive = zipped(tmp_path / "v.zip", ("in/a.mp4", 0), ("b.mp4", stat.S_IFREG | 0o644))
    unpack(archive, tmp_path / "out", ORIGIN)
    assert (tmp_path / "out" / "in" / "a.mp4").read_text() == "content"
    assert (tmp_path / "out" / "b.mp4").is_file()


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(("../evil", tarfile.REGTYPE, "x"), id="parent"),
        pytest.param(("a/../../evil", tarfile.REGTYPE, "x"), id="parent inside"),
        pytest.param(("/evil", tarfile.REGTYPE, "x"), id="absolute"),
        pytest.param(("C:\\evil", tarfile.REGTYPE, "x"), id="drive"),
        pytest.param(("link", tarfile.SYMTYPE, "/etc/passwd"), id="symbolic link"),
        pytest.param(("link", tarfile.LNKTYPE, "good"), id="hard link"),
        pytest.param(("pipe", tarfile.FIFOTYPE, ""), id="pipe"),
    ],
)
def test_an_unsafe_tar_member_is_refused(tmp_path: Path, member: tuple[str, bytes, str]) -> None:
    """No member may leave the folder or be anything but a file, and then none is kept."""
    archive = tar(tmp_path / "v.tar", ("good", tarfile.REGTYPE, "x"), member)
    with pytest.raises(DataError, match="member"):
        unpack(archive, tmp_path / "out" / "v", ORIGIN)
    assert not (tmp_path / "out" / "v").exists()
    assert not [path for path in tmp_path.rglob("*") if path.name == "evil"]


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(("../evil", 0), id="parent"),
        pytest.param(("/evil", 0), id="absolute"),
        pytest.param(("a\\..\\..\\evil", 0), id="backslash"),
        pytest.param(("link", stat.S_IFLNK | 0o777), id="link"),
    ],
)
def test_an_unsafe_zip_member_is_refused(tmp_path: Path, member: tuple[str, int]) -> None:
    """Zip members are held to the same rules."""
    archive = zipped(tmp_path / "v.zip", ("good", 0), member)
    with pytest.raises(DataError, match="member"):
        unpack(archive, tmp_path / "out" / "v", ORIGIN)
    assert not (tmp_path / "out" / "v").exists()


def test_a_broken_archive_is_told(tmp_path: Path) -> None:
    """Cut-off and alien files give an error that names the file, and nothing is kept."""
    whole = tar(tmp_path / "v.tar.gz", ("a.mp4", tarfile.REGTYPE, "A" * 100_000)).read_bytes()
    for content in (whole[: len(whole) // 2], whole[:-40], b"<html>not found</html>", b""):
        (tmp_path / "v.tar.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"v\.tar\.gz: the archive is broken"):
            unpack(tmp_path / "v.tar.gz", tmp_path / "out", ORIGIN)
        assert not (tmp_path / "out").exists()


def test_the_remains_of_a_killed_run_do_not_count(tmp_path: Path) -> None:
    """Half-unpacked members of an earlier run are neither kept nor in the way."""
    (tmp_path / ".partial-out").mkdir()
    (tmp_path / ".partial-out" / "half.mp4").write_text("x")
    archive = tar(tmp_path / "v.tar", ("a.mp4", tarfile.REGTYPE, "A"))
    unpack(archive, tmp_path / "out", ORIGIN)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [MARKER, "a.mp4"]


def test_a_complete_folder_is_left_alone(tmp_path: Path) -> None:
    """A second call does not even open the archive."""
    archive = tar(tmp_path / "v.tar", ("a.mp4", tarfile.REGTYPE, "A"))
    unpack(archive, tmp_path / "out", ORIGIN)
    archive.unlink()
    unpack(archive, tmp_path / "out", ORIGIN)
    assert (tmp_path / "out" / "a.mp4").read_text() == "A"


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    """An unpacking that cannot write names the folder and the setting."""
    archive = tar(tmp_path / "v.tar", ("a.mp4", tarfile.REGTYPE, "A"))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="LMMS_CAPTIONS_CACHE"):
        unpack(archive, tmp_path / "file" / "out", ORIGIN)
