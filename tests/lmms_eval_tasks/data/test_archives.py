"""Unpacking: nothing escapes, nothing unfinished counts, broken archives are named."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.data import hub
from lmms_eval_captions.lmms_eval_tasks.data.hub import BrokenArchiveError, unpack

if TYPE_CHECKING:
    from pathlib import Path


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
    """Members arrive with their folders, and nothing else is left."""
    archive = tar(tmp_path / name, ("./in/a.mp4", tarfile.REGTYPE, "A"))
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "in" / "a.mp4").read_text() == "A"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", name]


def test_a_zip_file_is_unpacked(tmp_path: Path) -> None:
    """Zip files work like tar files, with or without modes."""
    archive = zipped(tmp_path / "v.zip", ("in/a.mp4", 0), ("b.mp4", stat.S_IFREG | 0o644))
    unpack(archive, tmp_path / "out")
    assert (tmp_path / "out" / "in" / "a.mp4").read_text() == "content"
    assert (tmp_path / "out" / "b.mp4").is_file()


@pytest.mark.parametrize(
    "member",
    [
        pytest.param(("../evil", tarfile.REGTYPE, "x"), id="parent"),
        pytest.param(("a/../../evil", tarfile.REGTYPE, "x"), id="parent inside"),
        pytest.param(("link", tarfile.SYMTYPE, "/etc/passwd"), id="symbolic link"),
        pytest.param(("link", tarfile.LNKTYPE, "good"), id="hard link"),
        pytest.param(("pipe", tarfile.FIFOTYPE, ""), id="pipe"),
    ],
)
def test_an_unsafe_tar_member_is_refused(tmp_path: Path, member: tuple[str, bytes, str]) -> None:
    """A member outside the folder, a link or a device: then nothing is unpacked."""
    archive = tar(tmp_path / "v.tar", ("good", tarfile.REGTYPE, "x"), member)
    refuses(archive, "nothing was unpacked")
    assert not [path for path in tmp_path.rglob("*") if path.name == "evil"]


@pytest.mark.parametrize("name", ["../evil", "/evil", "a\\..\\..\\evil", "a/../../evil"])
def test_a_zip_member_stays_in_the_folder(tmp_path: Path, name: str) -> None:
    """Slashes and dots in front of a name are dropped, and a link becomes a file."""
    archive = zipped(tmp_path / "v.zip", (name, 0), ("link", stat.S_IFLNK | 0o777))
    unpack(archive, tmp_path / "made" / "out")
    assert [path.name for path in tmp_path.iterdir()] in (["v.zip", "made"], ["made", "v.zip"])
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["out"]
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


def test_an_absolute_tar_member_stays_in_the_folder(tmp_path: Path) -> None:
    """A slash in front of a name is dropped."""
    archive = tar(tmp_path / "v.tar", (f"{tmp_path}/evil", tarfile.REGTYPE, "x"))
    unpack(archive, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def refuses(archive: Path, message: str, kind: type[DataError] = DataError) -> None:
    """An archive is refused with this message, and nothing is left of it."""
    out = archive.parent / "made" / "out"
    with pytest.raises(kind, match=message) as caught:
        unpack(archive, out)
    assert str(archive) in str(caught.value)
    assert list(out.parent.iterdir()) == []


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    """Cut-off and alien files, and one whose last checksum is wrong."""
    archive = tar(tmp_path / "v.tar.gz", ("a.mp4", tarfile.REGTYPE, "A" * 100_000))
    whole = archive.read_bytes()
    wrong = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    for content in (whole[: len(whole) // 2], whole[:-40], wrong, b"<html>not found</html>", b""):
        archive.write_bytes(content)
        refuses(archive, "the archive is broken", BrokenArchiveError)


def test_the_remains_of_a_killed_run_do_not_count(tmp_path: Path) -> None:
    """Half of an earlier run's members are neither kept nor in the way."""
    (tmp_path / ".partial-out").mkdir()
    (tmp_path / ".partial-out" / "half.mp4").write_text("x")
    unpack(tar(tmp_path / "v.tar", ("a.mp4", tarfile.REGTYPE, "A")), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a.mp4"]


def test_bombs_are_refused_before_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive that unpacks to a hundred times its size, or to too many files."""
    monkeypatch.setattr(hub, "ALWAYS_BYTES", 2**20)
    refuses(tar(tmp_path / "v.tar.gz", ("a", tarfile.REGTYPE, "0" * 2**22)), "more than .* bytes")
    with zipfile.ZipFile(tmp_path / "v.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("a", bytes(2**22))
    refuses(tmp_path / "v.zip", "more than .* bytes")
    monkeypatch.setattr(hub, "MOST_FILES", 3)
    many = tar(tmp_path / "many.tar", *((str(n), tarfile.REGTYPE, "") for n in range(4)))
    refuses(many, "more than 3 members")
