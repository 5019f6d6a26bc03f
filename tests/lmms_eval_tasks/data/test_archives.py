"""Unpacking: nothing escapes, nothing half-done counts, broken archives are told."""

from __future__ import annotations

import gzip
import io
import shutil
import stat
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data import archives
from lmms_eval_captions.lmms_eval_tasks.data.archives import (
    MARKER,
    BrokenArchiveError,
    is_unpacked,
    unpack,
)

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


def refuses(archive: Path, words: str, kind: type[DataError] = DataError) -> None:
    """An archive is refused in these words, and nothing is left of it."""
    out = archive.parent / "made" / "out"
    with pytest.raises(kind, match=words) as caught:
        unpack(archive, out, ORIGIN)
    assert str(archive) in str(caught.value)
    assert list(out.parent.iterdir()) == []


def seams_of(archive: Path) -> list[int]:
    """Where each member of a tar begins, and where the last one ends."""
    with tarfile.open(archive) as opened:
        return [*(member.offset for member in opened.getmembers()), opened.offset]


def test_a_tar_that_is_cut_at_a_member_s_end_is_broken(tmp_path: Path) -> None:
    """What is left looks like a whole tar but for the zeros at its end."""
    members = [(f"{name}.mp4", tarfile.REGTYPE, name * 700) for name in "abc"]
    archive = tar(tmp_path / "v.tar", *members)
    whole = archive.read_bytes()
    for seam in seams_of(archive):
        archive.write_bytes(whole[:seam])
        refuses(archive, "the archive is broken", BrokenArchiveError)
    archive.write_bytes(whole[: seam + 512])
    unpack(archive, tmp_path / "out", ORIGIN)
    assert len(list((tmp_path / "out").glob("*.mp4"))) == 3


def test_a_compressed_tar_is_read_to_its_very_end(tmp_path: Path) -> None:
    """The checksum behind the last member counts; zeros at the end may be missing."""
    archive = tar(tmp_path / "v.tar", ("a.mp4", tarfile.REGTYPE, "A" * 5000))
    packed = gzip.compress(archive.read_bytes())
    wrong = bytes([packed[-8] ^ 1])
    for damaged in (packed[:-8], packed[:-1], packed[:-8] + wrong + packed[-7:]):
        (tmp_path / "v.tar.gz").write_bytes(damaged)
        refuses(tmp_path / "v.tar.gz", "the archive is broken", BrokenArchiveError)
    end = seams_of(archive)[-1]
    (tmp_path / "v.tar.gz").write_bytes(gzip.compress(archive.read_bytes()[:end]))
    unpack(tmp_path / "v.tar.gz", tmp_path / "out", ORIGIN)
    assert (tmp_path / "out" / "a.mp4").read_text() == "A" * 5000


def test_bombs_end_in_words_before_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What unpacks to a hundred times its size, to more than the disk has, or to too many files."""
    monkeypatch.setattr(archives, "_ALWAYS_BYTES", 2**20)
    archive = tar(tmp_path / "v.tar.gz", ("a", tarfile.REGTYPE, "0" * 2**22))
    refuses(archive, "more than 100 times")
    with zipfile.ZipFile(tmp_path / "v.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("a", bytes(2**22))
    refuses(tmp_path / "v.zip", "more than 100 times")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**28 + 2**10))
    small = tar(tmp_path / "small.tar", ("a", tarfile.REGTYPE, "0" * 2000))
    refuses(small, "the disk has room for 1,024.*LMMS_CAPTIONS_CACHE")
    monkeypatch.undo()
    monkeypatch.setattr(archives, "MOST_FILES", 3)
    many = tar(tmp_path / "many.tar", *((str(n), tarfile.REGTYPE, "") for n in range(4)))
    refuses(many, "more than 3")


@pytest.mark.parametrize("name", ["a/.. /b", ".unpacked.json"])
def test_names_that_would_be_something_else_are_refused(tmp_path: Path, name: str) -> None:
    """A parent folder on Windows, and our marker."""
    refuses(tar(tmp_path / "v.tar", (name, tarfile.REGTYPE, "x")), "member .*outside")
