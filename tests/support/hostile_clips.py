"""Video files as they are met in the wild: broken, mislabelled, odd. All are generated."""

from __future__ import annotations

import os
import random
import socket
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Final

import av
import numpy as np

FPS = 12
Picture = np.ndarray


SOUGHT_CODEC: Final = "libx264" if "libx264" in av.codecs_available else "mpeg4"
"""Frames of H.264 are sought; MPEG-4 is always decoded from the start."""


def level(index: int) -> int:
    """Gray level of a numbered frame."""
    return 20 + 9 * (index % 24)


def write_clip(
    path: Path,
    n_frames: int = 24,
    *,
    size: tuple[int, int] = (64, 48),
    codec: str = "mpeg4",
    container_format: str = "mp4",
    pixel_format: str = "yuv420p",
    times: list[int] | None = None,
    options: dict[str, str] | None = None,
    key_every: int | None = None,
    b_frames: int = 0,
) -> Path:
    """Gray frames of rising level with a white left half in each upper quarter.

    Args:
        path: File to write.
        n_frames: Its frames.
        size: Width and height.
        codec: Encoder.
        container_format: Muxer.
        pixel_format: Of the encoder.
        times: Time stamps in twelfths of a second, by default one after the other.
        options: Of the muxer.
        key_every: Frames from one key frame to the next at most.
        b_frames: Frames in a row that may be built on later ones.
    """
    width, height = size
    with av.open(str(path), "w", format=container_format, options=options or {}) as container:
        stream = container.add_stream(codec, rate=FPS)
        stream.width, stream.height, stream.pix_fmt = width, height, pixel_format
        if key_every:
            stream.codec_context.gop_size = key_every
            stream.codec_context.max_b_frames = b_frames
        for index in range(n_frames):
            picture = np.full((height, width, 3), level(index), dtype=np.uint8)
            picture[: height // 4, : width // 2] = 255
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = index if times is None else times[index]
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_sound(path: Path) -> Path:
    """An audio track alone."""
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=16000)
        silence = np.zeros((1, 1024), dtype=np.float32)
        frame = av.AudioFrame.from_ndarray(silence, format="fltp", layout="mono")
        frame.sample_rate = 16000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def rotate(path: Path) -> Path:
    """Mark an MP4 as to be shown a quarter turn clockwise, as phones do."""
    raw = bytearray(path.read_bytes())
    matrix = raw.index(b"tkhd") + 4 + 40
    raw[matrix : matrix + 36] = struct.pack(">9i", 0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30)
    path.write_bytes(raw)
    return path


def claim_hours(path: Path, hours: int = 10) -> Path:
    """Make every header of an MP4 claim a length of so many hours."""
    raw = bytearray(path.read_bytes())
    movie = raw.index(b"mvhd")
    (movie_scale,) = struct.unpack_from(">I", raw, movie + 16)
    media = raw.index(b"mdhd")
    (media_scale,) = struct.unpack_from(">I", raw, media + 16)
    struct.pack_into(">I", raw, movie + 20, hours * 3600 * movie_scale)
    struct.pack_into(">I", raw, media + 20, hours * 3600 * media_scale)
    struct.pack_into(">I", raw, raw.index(b"tkhd") + 24, hours * 3600 * movie_scale)
    path.write_bytes(raw)
    return path


def damage(path: Path, share: float = 0.3) -> Path:
    """Overwrite the middle of a file's pictures with noise."""
    raw = bytearray(path.read_bytes())
    start = raw.index(b"mdat") + 4
    end = raw.index(b"moov", start) if b"moov" in raw[start:] else len(raw)
    n_bytes = int((end - start) * share)
    first = start + (end - start - n_bytes) // 2
    raw[first : first + n_bytes] = random.Random(0).randbytes(n_bytes)
    path.write_bytes(raw)
    return path


def packets(path: Path) -> list[tuple[int, int]]:
    with av.open(str(path)) as container:
        return [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]


def cut(path: Path, share: float) -> Path:
    """Keep the first share of a file's bytes."""
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    return path


def begin_stream(path: Path) -> None:
    """A flipped bit: the last picture's packet of an MPEG-TS belongs to a stream of its own."""
    raw = bytearray(path.read_bytes())
    packets = range(0, len(raw), 188)
    pictures = [at for at in packets if raw[at + 1] & 0x5F == 0x41 and raw[at + 2] == 0]
    raw[pictures[-1] + 2] ^= 1
    path.write_bytes(raw)


def write_all(folder: Path) -> dict[str, bool]:
    """A folder of hostile clips.

    Returns:
        File name to whether its frames can be read at all.
    """

    def at(name: str) -> Path:
        return folder / name

    noise = random.Random(1).randbytes(20_000)
    at("zero_bytes.mp4").write_bytes(b"")
    at("text.mp4").write_bytes(b"this is no video\n" * 50)
    at("page.mp4").write_bytes(b"<!DOCTYPE html><html><body>404 Not Found</body></html>" * 20)
    at("noise.mp4").write_bytes(noise)
    at("header_alone.mp4").write_bytes(b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")
    at("folder.mp4").mkdir()
    cut(write_clip(at("cut_before_index.mp4")), 0.5)
    write_sound(at("sound_alone.mp4"))
    cut(write_clip(at("cut.mp4"), options={"movflags": "faststart"}), 0.7)
    write_clip(at("one_frame.mp4"), 1)
    write_clip(at("8k.avi"), 2, size=(7680, 4320), codec="mjpeg", container_format="avi",
               pixel_format="yuvj420p")  # fmt: skip
    write_clip(at("1x1.mkv"), size=(1, 1), codec="ffv1", container_format="matroska",
               pixel_format="bgr0")  # fmt: skip
    rotate(write_clip(at("portrait.mp4"), codec=SOUGHT_CODEC))
    write_clip(at("variable_rate.mp4"), 12, codec=SOUGHT_CODEC,
               times=[0, 1, 2, 3, 4, 5, 30, 60, 61, 62, 63, 120])  # fmt: skip
    claim_hours(write_clip(at("ten_hours.mp4"), codec=SOUGHT_CODEC))
    write_clip(at("matroska.mp4"), container_format="matroska", codec=SOUGHT_CODEC)
    write_clip(at("no_extension"))
    write_clip(at("gif.mp4"), 6, codec="gif", container_format="gif", pixel_format="rgb8")
    write_clip(at("odd_size.mkv"), size=(33, 17), codec="ffv1", container_format="matroska",
               pixel_format="bgr0")  # fmt: skip
    write_clip(at("picture.mp4"), 1, codec="mjpeg", container_format="image2",
               pixel_format="yuvj420p", options={"update": "1"})  # fmt: skip
    damage(write_clip(at("damaged.mp4"), size=(320, 240), codec=SOUGHT_CODEC))
    begin_stream(write_clip(at("late_stream.ts"), size=(320, 240), codec="mpeg2video",
                            container_format="mpegts"))  # fmt: skip
    write_clip(at("late_start.mp4"), codec=SOUGHT_CODEC, times=list(range(60, 84)))
    write_clip(at("Clip, 1 % ünïcödé 'q'.mp4"))
    write_clip(at("ten_bit.mkv"), codec="ffv1", container_format="matroska",
               pixel_format="yuv420p10le")  # fmt: skip
    unreadable = {
        "zero_bytes.mp4", "text.mp4", "page.mp4", "noise.mp4", "header_alone.mp4", "folder.mp4",
        "cut_before_index.mp4", "sound_alone.mp4",
    }  # fmt: skip
    return {path.name: path.name not in unreadable for path in sorted(folder.iterdir())}


def patch(path: Path, box: bytes, offset: int, *values: int) -> Path:
    """Overwrite 32-bit fields of the first box of a kind, counted from its name's end."""
    raw = bytearray(path.read_bytes())
    struct.pack_into(f">{len(values)}I", raw, raw.index(box) + 4 + offset, *values)
    path.write_bytes(raw)
    return path


def endless_repeats(path: Path) -> Path:
    """Two thousand million frames at one moment, as the index says: decord aborts on it."""
    return patch(write_clip(path, options={"movflags": "faststart"}), b"stts", 8, 0x7FFFFFFF, 0)


def unknown_codec(path: Path) -> Path:
    """A clip whose codec nobody knows."""
    write_clip(path)
    path.write_bytes(path.read_bytes().replace(b"mp4v", b"zzzz").replace(b"esds", b"zzzz"))
    return path


def refer_to(path: Path, other: Path) -> Path:
    """Make an MP4 say that its pictures are in another file."""
    raw = path.read_bytes()
    name = str(other).encode()
    name += bytes(len(name) % 2)
    alias = bytes(4 + 10) + b"\x01v".ljust(28, b"\0") + bytes(12) + b"\x01f".ljust(64, b"\0")
    alias += bytes(16) + struct.pack(">HH", 1, 1) + bytes(16)
    alias += struct.pack(">HH", 2, len(name)) + name + struct.pack(">HH", 0xFFFF, 0)
    entry = struct.pack(">I", 8 + len(alias)) + b"alis" + alias
    start = raw.index(b"dref") + 12
    old = struct.unpack_from(">I", raw, start)[0]
    changed = bytearray(raw[:start] + entry + raw[start + old :])
    for box in (b"moov", b"trak", b"mdia", b"minf", b"dinf", b"dref"):
        at = raw.index(box) - 4
        size = struct.unpack_from(">I", raw, at)[0]
        struct.pack_into(">I", changed, at, size + len(entry) - old)
    path.write_bytes(changed)
    return path


def write_png(path: Path, side: int, *, n_rows: int | None = None) -> Path:
    """A black gray-scale picture that says it is square, with all its rows or the first ones."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    packer = zlib.compressobj(1)
    row = bytes(side + 1)
    rows = b"".join(packer.compress(row) for _ in range(side if n_rows is None else n_rows))
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", rows + packer.flush())
        + chunk(b"IEND", b"")
    )
    return path


def write_gif(path: Path, n_frames: int, side: int) -> Path:
    """An animation on a square canvas of which each frame paints one pixel."""
    header = b"GIF89a" + struct.pack("<HHBBB", side, side, 0x80, 0, 0) + bytes(3) + b"\xff" * 3
    pause = b"\x21\xf9\x04\x00\x04\x00\x00\x00"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x4c\x01\x00"
    path.write_bytes(header + (pause + frame) * n_frames + b"\x3b")
    return path


def write_traps(folder: Path) -> dict[str, str | None]:
    """A folder of files that crash, hang or fill the memory of what opens them carelessly.

    Returns:
        File name to words of the reason why it cannot be read, ``""`` where it can be, ``None``
        where either will do.
    """

    def at(name: str) -> Path:
        return folder / name

    (folder / "beside").mkdir(parents=True)
    other = write_clip(folder / "beside" / "other.ts", container_format="mpegts",
                       codec="mpeg2video")  # fmt: skip
    os.mkfifo(folder / "beside" / "waits_for_ever.ts")
    is_list = "no video container"
    traps: dict[str, str | None] = {}

    def text(name: str, content: str) -> None:
        at(name).write_text(content, encoding="utf-8")
        traps[name] = is_list

    text("concat_of_itself.mp4", "ffconcat version 1.0\nfile concat_of_itself.mp4\n")
    text("concat_of_a_pipe.mp4", "ffconcat version 1.0\nfile beside/waits_for_ever.ts\n")
    hls = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:2,\n{}\n#EXT-X-ENDLIST\n"
    text("hls.m3u8", hls.format("beside/other.ts"))
    text("hls.mp4", hls.format("beside/other.ts"))
    text("hls_of_a_pipe.m3u8", hls.format("beside/waits_for_ever.ts"))
    text("hls_of_a_server.m3u8", hls.format("http://127.0.0.1:9/clip.ts"))
    text("dash.mp4", '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" '
         'type="static"><Period><AdaptationSet mimeType="video/mp4"><Representation id="1">'
         "<BaseURL>beside/other.ts</BaseURL></Representation></AdaptationSet></Period>"
         "</MPD>")  # fmt: skip
    text("sdp.mp4", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
         "m=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n")  # fmt: skip
    text("subtitles.mp4", "1\n00:00:00,000 --> 00:00:01,000\nHello\n\n" * 20)
    text("paper.mp4", "%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n")
    with tarfile.open(at("tar.mp4"), "w") as tar:
        tar.add(other, "other.ts")
    with zipfile.ZipFile(at("zip.mp4"), "w") as archive:
        archive.write(other, "other.ts")
    # Stored as they are, the pictures of a clip may be found within.
    traps |= {"tar.mp4": None, "zip.mp4": None}

    unknown_codec(at("unknown_codec.mp4"))
    at("unknown_codec.mkv").write_bytes(
        write_clip(at("plain.mkv"), container_format="matroska")
        .read_bytes()
        .replace(b"V_MPEG4/ISO/ASP", b"V_NOBODY/KNOWS/")
    )
    traps |= {"unknown_codec.mp4": "no decoder", "unknown_codec.mkv": "no decoder", "plain.mkv": ""}

    endless_repeats(at("endless_repeats.mp4"))
    traps["endless_repeats.mp4"] = ""
    for box, offset in (("moov", -8), ("stsd", -8), ("stsz", -8), ("stsz", 8), ("stsz", 4),
                        ("stco", 4), ("stco", 8), ("stsc", 12), ("stts", 8), ("elst", 4),
                        ("elst", 8), ("elst", 12), ("mdhd", 12), ("esds", 4)):  # fmt: skip
        for value in (1, 0x10000000, 0x7FFFFFFF, 0xFFFFFFFF):
            name = f"{box}_{offset}_{value:x}.mp4"
            codec = "mpeg4" if box == "esds" else SOUGHT_CODEC
            patch(write_clip(at(name), 12, codec=codec), box.encode(), offset, value)
            traps[name] = None
    nested = b"".join(struct.pack(">I", 8 * (20_000 - k)) + b"moov" for k in range(20_000))
    at("nested.mp4").write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + nested)
    traps["nested.mp4"] = "no video"
    whole = write_clip(at("lies.mkv"), 12, container_format="matroska", codec=SOUGHT_CODEC)
    matroska = whole.read_bytes()
    for number in range(20):
        lying = bytearray(matroska)
        start = random.Random(number).randrange(4, len(lying) - 8)
        lying[start : start + 8] = b"\x01" + b"\xff" * 6 + b"\xfe"
        at(f"lies_{number}.mkv").write_bytes(lying)
        traps[f"lies_{number}.mkv"] = None
    traps["lies.mkv"] = ""

    write_png(at("vast.png"), 20_000, n_rows=1)
    write_gif(at("vast.gif"), 3, 65_535)
    write_gif(at("ten_thousand.gif"), 10_000, 16)
    traps |= {"vast.png": "is not one", "vast.gif": "is not one", "ten_thousand.gif": ""}

    target = write_clip(at("target.mp4"))
    refer_to(write_clip(at("refers.mp4")), other)
    os.mkfifo(at("pipe.mp4"))
    at("zero.mp4").symlink_to("/dev/zero")
    at("stdin.mp4").symlink_to("/dev/stdin")
    at("nowhere.mp4").symlink_to(folder / "no such file")
    at("circle.mp4").symlink_to(at("circle.mp4"))
    at("link.mp4").symlink_to(target)
    with socket.socket(socket.AF_UNIX) as listening:
        before = Path.cwd()
        os.chdir(folder)  # names of sockets are short
        listening.bind("socket.mp4")
        os.chdir(before)
    traps |= {
        "target.mp4": "", "refers.mp4": "is not one", "link.mp4": "", "pipe.mp4": "named pipe",
        "zero.mp4": "device", "stdin.mp4": "is a|none", "nowhere.mp4": "link to nothing",
        "circle.mp4": "link to nothing", "socket.mp4": "socket",
    }  # fmt: skip
    for codec, name in (("png", "picture.png"), ("mjpeg", "picture.jpg"), ("bmp", "picture.bmp"),
                        ("tiff", "picture.tiff")):  # fmt: skip
        write_clip(at(name), 1, codec=codec, container_format="image2", options={"update": "1"},
                   pixel_format="yuvj420p" if codec == "mjpeg" else "bgr24" if codec == "bmp"
                   else "rgb24")  # fmt: skip
        traps[name] = ""
    latin = target.read_bytes().replace(b"Lavf", b"L\xe4vf")
    at("latin_title.mp4").write_bytes(latin)
    traps["latin_title.mp4"] = ""
    for name in (os.fsdecode(b"not_utf_8_\xff.mp4"), "clip.png", "concat:a|b", "http:x", "-i",
                 "pipe:0", "subfile,,start,0,end,0,,:x", "%03d.png", "file:x",
                 "data:video;base64,AAAA", "two\nlines.mp4"):  # fmt: skip
        at(name).write_bytes(target.read_bytes())
        traps[name] = ""
    return traps
