"""The right frames of valid clips: every frame carries its number, so that a wrong one is seen."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from lmms_eval_captions.model_wrappers.video.clip import Clip
from lmms_eval_captions.model_wrappers.video.frames import VideoReader, read_frames
from lmms_eval_captions.model_wrappers.video.sampling import (
    Explicit,
    Sampling,
    Uniform,
)
from numbered_frames import number_of, picture

FPS, N_FRAMES = 25, 40
SIZE = (96, 64)
X264 = {"preset": "ultrafast", "crf": "18"}


def _write(
    path: Path,
    codec: str,
    muxer: str,
    *,
    options: dict[str, str] | None = None,
    pixels: str = "yuv420p",
    n_b: int = 0,
    key_every: int = 12,
    numbers: Sequence[int] = range(N_FRAMES),
    pictures: Sequence[NDArray[np.uint8]] | None = None,
    stamps: Sequence[int] | None = None,
) -> Path:
    """A clip of numbered frames, one after the other, or shown at the stamps given."""
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec}")
    shown = pictures or [picture(number, *SIZE) for number in numbers]
    with av.open(str(path), "w", format=muxer) as container:
        stream = container.add_stream(codec, rate=FPS, options=options or {})
        stream.height, stream.width = shown[0].shape[:2]
        stream.pix_fmt = pixels
        stream.codec_context.thread_count = 1
        stream.codec_context.gop_size = key_every
        if n_b:
            stream.codec_context.max_b_frames = n_b
        for index, pixels_rgb in enumerate(shown):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels_rgb), format="rgb24")
            frame.pts = stamps[index] if stamps else index
            frame.time_base = Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def _numbers(clip: Clip) -> list[int | None]:
    return [number_of(frame) for frame in clip.frames]


def _check(path: Path, numbers: Sequence[int], *, has_times: bool = True) -> None:
    """Every sampling gives the frames of these numbers, at the clip's rate."""
    n_total = len(numbers)
    samplings: list[Sampling] = [Uniform(1000), Uniform(4), Uniform(3)]
    samplings += [Explicit((place,)) for place in (1, n_total // 2, n_total * 4 // 5)]
    for sampling in samplings:
        clip = read_frames(path, sampling, n_threads=1)
        chosen = sampling.indices(np.arange(n_total, dtype=np.float64))
        assert _numbers(clip) == [numbers[place] for place in chosen], sampling
        assert clip.n_total == n_total
        if has_times:
            wanted_s = np.asarray(chosen) / FPS
            assert clip.timestamps_s == pytest.approx(wanted_s, abs=0.5 / FPS), sampling


@pytest.mark.parametrize(
    ("codec", "muxer", "settings"),
    [
        pytest.param("libx264", "mp4", {"n_b": 3}, id="h264-mp4"),
        pytest.param("libx264", "mov", {"n_b": 2, "key_every": 250}, id="h264-mov-one-key"),
        pytest.param("libx264", "matroska", {"n_b": 4}, id="h264-mkv"),
        pytest.param("libx264", "avi", {"n_b": 3}, id="h264-avi-b-frames"),
        pytest.param("libx264", "avi", {}, id="h264-avi"),
        pytest.param("libx264", "mpegts", {"n_b": 3}, id="h264-ts"),
        pytest.param("libx264", "flv", {"n_b": 2}, id="h264-flv"),
        pytest.param("libx264", "nut", {"n_b": 2}, id="h264-nut"),
        pytest.param("libx264", "vob", {"n_b": 2}, id="h264-ps"),
        pytest.param("libx264", "3gp", {"n_b": 2}, id="h264-3gp"),
        pytest.param(
            "libx264",
            "mp4",
            {"n_b": 3, "options": {**X264, "x264-params": "open-gop=1:keyint=10:b-pyramid=normal"}},
            id="h264-open-groups",
        ),
        pytest.param(
            "libx264",
            "matroska",
            {"options": {**X264, "x264-params": "intra-refresh=1:keyint=10"}},
            id="h264-intra-refresh",
        ),
        pytest.param(
            "libx264",
            "mp4",
            {"options": {**X264, "x264-params": "tff=1"}, "n_b": 2},
            id="h264-interlaced",
        ),
        pytest.param(
            "libx265",
            "mp4",
            {"options": {"x265-params": "log-level=none:pools=none:keyint=10:bframes=3"}},
            id="hevc-mp4",
        ),
        pytest.param(
            "libx265",
            "mpegts",
            {"options": {"x265-params": "log-level=none:pools=none:keyint=10:bframes=3"}},
            id="hevc-ts",
        ),
        pytest.param("libvpx", "webm", {"options": {"crf": "10"}}, id="vp8-webm"),
        pytest.param(
            "libvpx",
            "webm",
            {"options": {"crf": "10", "auto-alt-ref": "1", "lag-in-frames": "16"}},
            id="vp8-hidden-frames",
        ),
        pytest.param(
            "libvpx-vp9",
            "webm",
            {"options": {"crf": "10", "auto-alt-ref": "1", "lag-in-frames": "16"}},
            id="vp9-webm",
        ),
        pytest.param("libvpx-vp9", "mp4", {"options": {"crf": "10"}}, id="vp9-mp4"),
        pytest.param("libsvtav1", "mp4", {"options": {"preset": "12", "crf": "20"}}, id="av1-mp4"),
        pytest.param("mpeg1video", "mpeg", {"n_b": 2}, id="mpeg1-ps"),
        pytest.param("mpeg2video", "mpegts", {"n_b": 2}, id="mpeg2-ts"),
        pytest.param("mpeg2video", "vob", {"n_b": 2}, id="mpeg2-vob"),
        pytest.param("mpeg2video", "mp4", {"n_b": 2}, id="mpeg2-mp4"),
        pytest.param("mpeg4", "avi", {"n_b": 2}, id="mpeg4-avi"),
        pytest.param("mpeg4", "matroska", {"n_b": 3}, id="mpeg4-mkv"),
        pytest.param("mpeg4", "mp4", {"n_b": 2, "key_every": 5}, id="mpeg4-mp4"),
        pytest.param("mjpeg", "avi", {"pixels": "yuvj420p"}, id="mjpeg-avi"),
        pytest.param("prores_ks", "mov", {"pixels": "yuv422p10le"}, id="prores-mov"),
        pytest.param("ffv1", "matroska", {}, id="ffv1-mkv"),
        pytest.param("wmv2", "asf", {}, id="wmv2-asf"),
        pytest.param("msmpeg4", "avi", {}, id="msmpeg4-avi"),
        pytest.param("flv", "flv", {}, id="flv1-flv"),
        pytest.param("gif", "gif", {"pixels": "rgb8"}, id="gif"),
        pytest.param("png", "mov", {"pixels": "rgb24"}, id="png-mov"),
        pytest.param("libvpx", "ivf", {"options": {"crf": "10"}}, id="vp8-ivf"),
    ],
)
def test_chosen_frames_are_those_that_are_there(
    tmp_path: Path, codec: str, muxer: str, settings: dict[str, Any]
) -> None:
    """Whatever the container, codec and grouping, the frames chosen are the ones given."""
    path = _write(tmp_path / "clip", codec, muxer, **settings)
    _check(path, range(N_FRAMES))


def _copy(source: Path, path: Path, *, shift: int, muxer: str = "mp4") -> Path:
    """A copy without encoding, shown so many frames sooner: earlier ones are cut off."""
    settings = {"avoid_negative_ts": "disabled"}
    with av.open(str(source)) as read, av.open(str(path), "w", muxer, options=settings) as written:
        stream = read.streams.video[0]
        copied = written.add_stream_from_template(stream)
        step = round(1 / FPS / stream.time_base)
        for packet in read.demux(stream):
            if packet.dts is not None:
                packet.pts -= shift * step
                packet.dts -= shift * step
                packet.stream = copied
                written.mux(packet)
    return path


@pytest.mark.parametrize("n_b", [0, 3])
@pytest.mark.parametrize("shift", [1, 7, 19])
def test_what_an_edit_list_cuts_off_is_not_shown(tmp_path: Path, n_b: int, shift: int) -> None:
    """Frames before the start that an edit list names are neither shown nor counted."""
    whole = _write(tmp_path / "whole.mp4", "libx264", "mp4", options=X264, n_b=n_b)
    _check(_copy(whole, tmp_path / "cut.mp4", shift=shift), range(shift, N_FRAMES))


@pytest.mark.parametrize("video_reader", ["pyav", "decord"])
@pytest.mark.parametrize(("codec", "muxer"), [("libx264", "matroska"), ("mpeg4", "mp4")])
def test_a_variable_rate_has_the_length_of_its_frames(
    tmp_path: Path, codec: str, muxer: str, video_reader: VideoReader
) -> None:
    """Every frame longer than the one before: the length and the mean rate are those of times."""
    if video_reader == "decord":
        pytest.importorskip("decord")
    stamps = [index + index * index // 20 for index in range(N_FRAMES)]
    path = _write(tmp_path / "clip", codec, muxer, stamps=stamps)
    clip = read_frames(path, 4, video_reader=video_reader)
    last_s = stamps[-1] / FPS
    assert last_s < clip.duration_s < last_s + 0.2
    assert clip.fps == pytest.approx(N_FRAMES / clip.duration_s)
    assert clip.timestamps_s[-1] == pytest.approx(last_s, abs=2e-3)


@pytest.mark.parametrize(
    ("matrix", "stored"),
    [
        pytest.param((1, 0, 0, 1), lambda p: p, id="none"),
        pytest.param((0, 1, -1, 0), lambda p: np.rot90(p, 1), id="clockwise"),
        pytest.param((-1, 0, 0, -1), lambda p: np.rot90(p, 2), id="upside down"),
        pytest.param((0, -1, 1, 0), lambda p: np.rot90(p, -1), id="anticlockwise"),
        pytest.param((-1, 0, 0, 1), lambda p: p[:, ::-1], id="mirrored"),
        pytest.param((1, 0, 0, -1), lambda p: p[::-1], id="flipped"),
        pytest.param((0, 1, 1, 0), lambda p: p.transpose(1, 0, 2), id="transposed"),
        pytest.param(
            (0, -1, -1, 0), lambda p: np.rot90(p, 2).transpose(1, 0, 2), id="transposed otherwise"
        ),
    ],
)
def test_a_turned_or_flipped_clip_is_shown_as_it_says(
    tmp_path: Path, matrix: tuple[int, int, int, int], stored: Callable[[Any], Any]
) -> None:
    """All eight ways in which an MP4 may ask to be shown."""
    pictures = [stored(picture(number, *SIZE)) for number in range(8)]
    path = _write(tmp_path / "clip.mp4", "mpeg4", "mp4", pictures=pictures)
    raw = bytearray(path.read_bytes())
    a, b, c, d = (value << 16 for value in matrix)
    struct.pack_into(">9i", raw, raw.index(b"tkhd") + 44, a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(raw)
    clip = read_frames(path, 8)
    assert clip.frames.shape == (8, SIZE[1], SIZE[0], 3)
    assert _numbers(clip) == list(range(8))


@pytest.mark.parametrize("spread", ["tv", "pc"])
@pytest.mark.parametrize("matrix", ["bt709", "smpte170m", "bt2020nc"])
def test_colours_are_read_by_the_clips_own_matrix_and_range(
    tmp_path: Path, matrix: str, spread: str
) -> None:
    wanted = (220, 60, 90)
    if "libx264" not in av.codecs_available:
        pytest.skip("this build of PyAV has no encoder libx264")
    numbers = {"bt709": 1, "smpte170m": 5, "bt2020nc": 9, "tv": 1, "pc": 2}
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        said = {"colorspace": matrix, "color_range": spread, "crf": "5"}
        stream = container.add_stream("libx264", rate=FPS, options=said)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        rgb = av.VideoFrame.from_ndarray(np.full((64, 64, 3), wanted, np.uint8), format="rgb24")
        frame = rgb.reformat(
            format="yuv420p",
            src_colorspace=4,
            dst_colorspace=numbers[matrix],
            src_color_range=2,
            dst_color_range=numbers[spread],
        )
        frame.colorspace, frame.color_range = numbers[matrix], numbers[spread]
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert read_frames(path, 1).frames[0, 32, 32] == pytest.approx(wanted, abs=4)
