"""Video files as they are met in the wild: broken, mislabelled, odd. All are generated."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import av
import numpy as np

FPS = 12
Picture = np.ndarray


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


def cut(path: Path, share: float) -> Path:
    """Keep the first share of a file's bytes."""
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    return path


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
    rotate(write_clip(at("portrait.mp4")))
    write_clip(at("variable_rate.mp4"), 12, times=[0, 1, 2, 3, 4, 5, 30, 60, 61, 62, 63, 120])
    claim_hours(write_clip(at("ten_hours.mp4")))
    write_clip(at("matroska.mp4"), container_format="matroska")
    write_clip(at("no_extension"))
    write_clip(at("gif.mp4"), 6, codec="gif", container_format="gif", pixel_format="rgb8")
    write_clip(at("odd_size.mkv"), size=(33, 17), codec="ffv1", container_format="matroska",
               pixel_format="bgr0")  # fmt: skip
    write_clip(at("picture.mp4"), 1, codec="mjpeg", container_format="image2",
               pixel_format="yuvj420p", options={"update": "1"})  # fmt: skip
    damage(write_clip(at("damaged.mp4"), size=(320, 240)))
    write_clip(at("late_start.mp4"), times=list(range(60, 84)))
    write_clip(at("Clip, 1 % ünïcödé 'q'.mp4"))
    write_clip(at("ten_bit.mkv"), codec="ffv1", container_format="matroska",
               pixel_format="yuv420p10le")  # fmt: skip
    unreadable = {
        "zero_bytes.mp4", "text.mp4", "page.mp4", "noise.mp4", "header_alone.mp4", "folder.mp4",
        "cut_before_index.mp4", "sound_alone.mp4",
    }  # fmt: skip
    return {path.name: path.name not in unreadable for path in sorted(folder.iterdir())}
