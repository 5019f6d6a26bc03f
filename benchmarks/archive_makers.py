"""Random archives of videos, honest and hostile, for the campaign of ``archives.py``."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import stat
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

TARS: Final = ("tar", "tar.gz", "tar.bz2", "tar.xz")
ZIPS: Final = ("zip",)
_NAMES: Final = (
    "a",
    "b.mp4",
    "clip 1.webm",
    "三.mp4",
    "é.avi",
    "PK\x03.mp4",
    "x" * 120 + ".mp4",
    "...a",
)
_FOLDERS: Final = ("", "", "videos/", "./", "deep/down/", "視/", "y" * 150 + "/", "UP/", "up/")
_FORMATS: Final = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


@dataclass
class Archive:
    """An archive and what is in it."""

    kind: str
    data: bytes
    members: dict[str, bytes] = field(default_factory=dict)
    """What must be unpacked where the archive is whole: path to content."""
    hostile: str = ""
    """What is wrong with it by construction."""
    refused: bool = False
    """Whether unpacking must refuse it."""
    seams: list[int] = field(default_factory=list)
    """Where members begin and end."""
    contents: list[tuple[int, int]] = field(default_factory=list)
    """Parts of a plain tar that hold content, which no checksum covers, as (start, end)."""
    long_names: list[tuple[int, int]] = field(default_factory=list)
    """The same of long names; two that are damaged may be one and the same."""


def honest(rng: random.Random, kind: str) -> Archive:
    """An archive as benchmarks have them."""
    files: list[tuple[str, bytes]] = []
    for _ in range(rng.randint(1, 9)):
        name = f"{rng.choice(_FOLDERS)}{rng.randint(0, 99)}{rng.choice(_NAMES)}"
        if files and rng.random() < 0.05:
            name = rng.choice(files)[0]
        files.append((name, content(rng)))
    # A file where another member has its folder would be hostile.
    members = {_plain(name): data for name, data in files}
    if kind == "zip":
        archive = Archive(kind, _zip(rng, files), members)
        archive.seams = _finds(archive.data, b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06")
        return archive
    raw = _tar(rng, files, folders=rng.random() < 0.3)
    archive = Archive(kind, pack(kind, raw), members)
    if kind == "tar":
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            for member in tar:
                archive.seams += [member.offset, member.offset_data]
                archive.contents.append((member.offset_data, member.offset_data + member.size))
                archive.long_names.append((member.offset + 512, member.offset_data - 512))
            archive.seams.append(tar.offset)
    return archive


def content(rng: random.Random) -> bytes:
    """A file's bytes: of a size that fills blocks or not, or none."""
    size = rng.choice((0, 1, 511, 512, 513, 1024, rng.randint(0, 9000)))
    return rng.randbytes(size) if rng.random() < 0.8 else bytes(size)


def pack(kind: str, raw: bytes) -> bytes:
    """Compress a tar file as its name says."""
    if kind == "tar.gz":
        return gzip.compress(raw, 1)
    if kind == "tar.bz2":
        return bz2.compress(raw, 1)
    return lzma.compress(raw, preset=0) if kind == "tar.xz" else raw


def hostile(rng: random.Random, outside: str) -> Archive:
    """An archive that attacks: names, kinds, sizes, numbers.

    Args:
        rng: Draws it.
        outside: An absolute folder that must stay empty.
    """
    make = rng.choice(_HOSTILE)
    return make(rng, outside)


def _plain(name: str) -> str:
    return name.removeprefix("./")


def _tar(
    rng: random.Random,
    files: list[tuple[str, bytes]],
    *,
    folders: bool = False,
    change: Callable[[tarfile.TarInfo], None] | None = None,
) -> bytes:
    stream = io.BytesIO()
    long = any(len(name) > 99 or not name.isascii() for name, _ in files)
    form = rng.choice(_FORMATS[1:] if long else _FORMATS)
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        if folders:
            info = tarfile.TarInfo("folder/empty")
            info.type, info.mode = tarfile.DIRTYPE, 0o7777
            tar.addfile(info)
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), rng.choice((0o644, 0o7777, 0))
            if change is not None:
                change(info)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def _zip(rng: random.Random, files: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        with zipfile.ZipFile(stream, "w") as bundle:
            for name, data in files:
                info = zipfile.ZipInfo(name)
                info.external_attr = rng.choice((0, stat.S_IFREG | 0o6777)) << 16
                info.compress_type = rng.choice(
                    (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
                )
                bundle.writestr(info, data)
    return stream.getvalue()


def _finds(data: bytes, *marks: bytes) -> list[int]:
    places = []
    for mark in marks:
        place = data.find(mark)
        while place >= 0:
            places.append(place)
            place = data.find(mark, place + 1)
    return places


def _either(
    rng: random.Random, files: list[tuple[str, bytes]], what: str, *, refused: bool
) -> Archive:
    kind = rng.choice((*TARS, *ZIPS))
    raw = _zip(rng, files) if kind == "zip" else pack(kind, _tar(rng, files))
    members = {} if refused else {_plain(name): data for name, data in files}
    return Archive(kind, raw, members, hostile=what, refused=refused)


def _bad_name(rng: random.Random, outside: str) -> Archive:
    name = rng.choice(
        (
            "../evil", "a/../../evil", f"{outside}/evil", "..", "/", "C:\\evil", "C:evil",
            "a\\..\\..\\evil", "\\\\host\\evil", "a/.. /evil", "....//evil", "a/. ./evil",
            "n" * 300, "/".join(["d" * 200] * 9), ".unpacked.json", ".unpacked.json/a",
            "./../evil", "a/./../../evil", ".UNPACKED.json",
        )
    )  # fmt: skip
    files = [("good.mp4", content(rng)), (name, b"evil")]
    rng.shuffle(files)
    return _either(rng, files, f"name {name[:30]!r}", refused=True)


def _odd_name(rng: random.Random, _: str) -> Archive:
    name = rng.choice(
        ("․․/a", "．．/a", "a\nb", "-rf", "~", "~root/a", "%2e%2e/a", "CON", "a.", "\u202ea")
    )
    files = [(name, content(rng)), ("A.mp4", b"1"), ("a.mp4", b"2"), ("x/a.mp4", b"3")]
    return _either(rng, files, "odd name", refused=False)


def _file_in_file(rng: random.Random, _: str) -> Archive:
    files = [("a", b"1"), ("a/b", b"2")]
    rng.shuffle(files)
    return _either(rng, files, "file below a file", refused=True)


def _raw_bytes_in_name(rng: random.Random, _: str) -> Archive:
    raw = _tar(rng, [("caf\udce9.mp4", b"1")])
    return Archive("tar", raw, {"caf\udce9.mp4": b"1"}, hostile="name of another encoding")


def _link(rng: random.Random, outside: str) -> Archive:
    kinds = (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        b"V",
    )
    chosen = rng.choice(kinds)
    target = rng.choice((outside, "..", "good.mp4", "/etc/passwd", "/dev/zero"))

    def change(info: tarfile.TarInfo) -> None:
        if info.name == "link":
            info.type, info.linkname = chosen, target

    files = [("good.mp4", b"1"), ("link", b""), ("link/evil" if chosen == b"2" else "x", b"evil")]
    if rng.random() < 0.3:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as bundle:
            bundle.writestr(link, target)
            bundle.writestr("link/evil", "evil")
        return Archive("zip", stream.getvalue(), hostile="link", refused=True)
    return Archive("tar", _tar(rng, files, change=change), hostile="link", refused=True)


def _absurd_time(rng: random.Random, _: str) -> Archive:
    time_s = rng.choice((-1.0, 1e18, 2.0**63, -(2.0**40)))

    def change(info: tarfile.TarInfo) -> None:
        info.mtime = time_s
        info.uid = 2**40

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a.mp4")
        change(info)
        tar.addfile(info)
    return Archive("tar", stream.getvalue(), {"a.mp4": b""}, hostile="absurd time")


def _bomb(rng: random.Random, _: str) -> Archive:
    files = [("zeros.mp4", bytes(6 * 2**20))]
    kind = rng.choice(("tar.gz", "tar.bz2", "zip"))
    if kind == "zip":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bundle:
            bundle.writestr(*files[0])
        return Archive(kind, stream.getvalue(), hostile="bomb", refused=True)
    return Archive(kind, pack(kind, _tar(rng, files)), hostile="bomb", refused=True)


def _crowd(rng: random.Random, _: str) -> Archive:
    files = [(f"{number}", b"") for number in range(600)]
    return _either(rng, files, "too many members", refused=True)


def _vast_size(rng: random.Random, _: str) -> Archive:
    """A header that claims terabytes, by its own field, an extended header or a sparse map."""
    raw = bytearray(_tar(rng, [("a.mp4", b"1"), ("b.mp4", b"22")]))
    style = rng.choice(("field", "pax", "sparse"))
    size = rng.choice((2**33 - 1, 2**40, 2**62, 2**63, 2**94))
    if style == "field" and rng.random() < 0.2:
        size = -1
    if style == "field":
        place = raw.rfind(b"b.mp4") // 512 * 512
        raw[place + 124 : place + 136] = _number(size)
        _sign(raw, place)
        return Archive("tar", bytes(raw), hostile=f"size {size}", refused=True)
    records = {"size": str(size)}
    if style == "sparse":
        records = {"GNU.sparse.size": str(size), "GNU.sparse.map": f"0,1,{size - 1},1"}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a.mp4")
        info.size, info.pax_headers = 2, records
        tar.addfile(info, io.BytesIO(b"11"))
    kind = rng.choice(TARS)
    return Archive(kind, pack(kind, stream.getvalue()), hostile=f"{style} {size}", refused=True)


def _vast_header(rng: random.Random, _: str) -> Archive:
    """A long name or an extended header of a megabyte, or a thousand of them in a row."""
    info = tarfile.TarInfo("././@LongLink")
    info.type = rng.choice((tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE))
    fill = rng.choice((b"0", b"2 ", b"a", b"\0"))
    if rng.random() < 0.5:
        info.size = rng.choice((2**14, 2**20, 2**21))
        head = info.tobuf(tarfile.GNU_FORMAT) + (fill * info.size)[: info.size]
    else:
        info.size = 512
        head = (info.tobuf(tarfile.GNU_FORMAT) + (fill * 512)[:512]) * 1500
    last = _tar(rng, [("a.mp4", b"1")])
    kind = rng.choice(TARS)
    # What stands in a small header may be a name, or nothing at all.
    return Archive(kind, pack(kind, head + last), hostile="vast header")


def _zip_lies(rng: random.Random, _: str) -> Archive:
    """A zip file whose list of members lies: sizes, places, kinds, flags, numbers."""
    files = [("a.mp4", rng.randbytes(800)), ("b.mp4", bytes(900))]
    raw = bytearray(_zip(rng, files))
    place = rng.choice(_finds(bytes(raw), b"PK\x01\x02") + _finds(bytes(raw), b"PK\x05\x06"))
    fields = (8, 10, 16, 20, 24, 28, 30, 32, 38, 42) if raw[place + 2] == 1 else (8, 10, 12, 16)
    where = place + rng.choice(fields)
    raw[where : where + 4] = struct.pack("<I", rng.choice((0, 1, 2**16, 2**31, 2**32 - 1, 0x81ED)))
    return Archive("zip", bytes(raw), dict(files), hostile="lies of a zip")


def _overlap(rng: random.Random, _: str) -> Archive:
    """A zip file of many members that are one and the same compressed block."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("a.mp4", bytes(2**20))
        for _number_of in range(rng.randint(4, 200)):
            bundle.filelist.append(bundle.filelist[0])
    return Archive("zip", stream.getvalue(), {"a.mp4": bytes(2**20)}, hostile="overlap")


def _zip_in_zip(rng: random.Random, _: str) -> Archive:
    """A zip file, stored in another and cut off behind it: what is left looks like a zip file."""
    inner = _zip(rng, [("inner.mp4", b"1")])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as bundle:
        bundle.writestr("inner.zip", inner)
        bundle.writestr("b.mp4", b"2")
    data = stream.getvalue()
    end = data.find(b"PK\x05\x06") + 22
    return Archive("zip", data[:end], hostile="zip in a zip, cut", refused=True)


def _no_end(rng: random.Random, _: str) -> Archive:
    """A tar that ends at a member's end, plain and compressed, or goes on behind its end."""
    files = [("a.mp4", content(rng)), ("b.mp4", content(rng))]
    raw = _tar(rng, files)
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        tar.getmembers()
        whole = raw[: tar.offset]
    kind = rng.choice(TARS)
    if rng.random() < 0.5:
        return Archive(kind, pack(kind, raw + raw), hostile="two tars", refused=True)
    members = dict(files) if kind != "tar" else {}
    return Archive(kind, pack(kind, whole), members, hostile="no end mark", refused=kind == "tar")


def _alien(rng: random.Random, _: str) -> Archive:
    data = rng.choice(
        (
            b"",
            b"<html>not found</html>",
            b"PK\x05\x06",
            b"PK\x03\x04",
            bytes(10240),
            rng.randbytes(3000),
        )
    )
    return Archive(rng.choice((*TARS, *ZIPS)), data, hostile="no archive", refused=True)


def _number(value: int) -> bytes:
    if 0 <= value < 8**11:
        return b"%011o\0" % value
    return (b"\xff" if value < 0 else b"\x80") + (value % 256**11).to_bytes(11, "big")


def _sign(raw: bytearray, place: int) -> None:
    """Put the checksum of a tar header right."""
    raw[place + 148 : place + 156] = b" " * 8
    raw[place + 148 : place + 156] = b"%06o\0 " % sum(raw[place : place + 512])


_HOSTILE: Final[tuple[Callable[[random.Random, str], Archive], ...]] = (
    *[_bad_name] * 3, _odd_name, _file_in_file, _raw_bytes_in_name, *[_link] * 2, _absurd_time,
    _bomb, _crowd, *[_vast_size] * 2, _vast_header, *[_zip_lies] * 3, _overlap, _zip_in_zip,
    *[_no_end] * 2, _alien,
)  # fmt: skip
