"""From decoded frames to RGB: the levels that ffmpeg's own filters give."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np
import pytest
from av.filter import Graph
from av.stream import Disposition
from numpy.typing import NDArray

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.video.colours import Display, picture
from lmms_eval_captions.model_wrappers.video.frames import read_frames

if TYPE_CHECKING:
    from collections.abc import Sequence

MATRICES = {"bt709": 1, "unspecified": 2, "fcc": 4, "bt470bg": 5, "smpte170m": 6, "bt2020nc": 9}


def _frame(pixels: str, matrix: int = 2, spread: int = 0) -> av.VideoFrame:
    """Coloured blocks, whose edges show how chroma is spread, that say how they are coded."""
    random = np.random.default_rng(3)
    blocks = random.integers(0, 256, (16, 24, 3), dtype=np.uint8)
    rgb = np.ascontiguousarray(blocks.repeat(4, axis=0).repeat(4, axis=1))
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pixels)
    frame.colorspace, frame.color_range = matrix, spread
    return frame


def _by_filters(frame: av.VideoFrame) -> NDArray[np.uint8]:
    """RGB as ffmpeg makes it: a filter graph that puts in what it needs to convert."""
    graph = Graph()
    ends = [
        graph.add_buffer(
            width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25)
        ),
        graph.add("format", "pix_fmts=rgb24"),
        graph.add("buffersink"),
    ]
    for first, second in pairwise(ends):
        first.link_to(second)
    graph.configure()
    graph.push(frame)
    shown = graph.pull()
    return np.asarray(shown.to_ndarray(), dtype=np.uint8)


@pytest.mark.parametrize("spread", [0, 1, 2], ids=["unspecified", "tv", "pc"])
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("pixels", ["yuv420p", "yuv420p10le", "yuv444p", "nv12"])
def test_levels_are_those_of_the_matrix_and_range_that_a_frame_names(
    pixels: str, matrix: str, spread: int
) -> None:
    """Every matrix and range, 8 and 10 bits: level for level what ffmpeg's filters make."""
    frame = _frame(pixels, MATRICES[matrix], spread)
    assert np.array_equal(picture(frame, Display(), None), _by_filters(frame))


@pytest.mark.parametrize(
    "pixels",
    ["yuv410p", "yuv411p", "yuv422p", "yuv422p10le", "yuv440p", "yuvj420p", "yuva420p", "p010le",
     "yuyv422", "uyvy422", "gray", "gray10le", "ya8", "gbrp", "gbrp10le", "rgb24", "bgra",
     "rgb48le", "rgb565le"],
)  # fmt: skip
def test_levels_of_every_kind_of_frame(pixels: str) -> None:
    """Whatever the decoder gives: 4:1:0 to RGB of 16 bits, and grey."""
    frame = _frame(pixels)
    assert np.array_equal(picture(frame, Display(), None), _by_filters(frame))


def _clip(path: Path, levels: Sequence[int], *options: str, codec: str = "libx265") -> Path:
    """A gray clip of 10 bits whose left part has the first level, and so on."""
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec}")
    with av.open(str(path), "w") as container:
        params = ":".join(["log-level=none", "pools=none", "lossless=1", *options])
        stream = container.add_stream(codec, rate=5, options={"x265-params": params})
        stream.width, stream.height, stream.pix_fmt = 64 * len(levels), 64, "yuv420p10le"
        frame = av.VideoFrame(stream.width, 64, "yuv420p10le")
        luma = np.repeat(np.array(levels, np.uint16), 64)[None].repeat(64, axis=0)
        chroma = np.full((32, stream.width // 2), 512, np.uint16)
        for plane, values in zip(frame.planes, (luma, chroma, chroma), strict=True):
            rows = np.zeros((plane.height, plane.line_size // 2), np.uint16)
            rows[:, : values.shape[1]] = values
            plane.update(rows.tobytes())
        for _ in range(3):
            frame.pts = None
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize(
    ("transfer", "levels"),
    [
        # 10-bit levels of black, 18% gray, reference white and peak, by BT.2408.
        pytest.param("smpte2084", [64, 397, 573, 723], id="PQ"),
        pytest.param("arib-std-b67", [64, 397, 721, 940], id="HLG"),
    ],
)
@pytest.mark.parametrize("ending", ["mp4", "mkv"])
def test_hdr_is_as_bright_as_players_show_it(
    transfer: str, levels: Sequence[int], ending: str, tmp_path: Path
) -> None:
    """Reference white is nearly white, the peak white, and gray in the middle."""
    told = ("colorprim=bt2020", f"transfer={transfer}", "colormatrix=bt2020nc")
    path = _clip(tmp_path / f"clip.{ending}", levels, *told)
    frame = read_frames(path, 1).frames[0]
    black, gray, white, peak = (frame[32, 32 + 64 * at] for at in range(4))
    assert max(black) <= 2
    assert 90 <= min(gray) <= max(gray) <= 140
    assert 215 <= min(white) <= max(white) <= 245
    assert min(peak) >= 250


def test_wide_primaries_become_those_of_bt709() -> None:
    """BT.709's red, as BT.2020 codes it, is red; a gray stays what it is."""
    # Linear (0.627, 0.069, 0.016) and (0.2, 0.2, 0.2) by a gamma of 2.2.
    rgb = np.array([[[206, 76, 39], [123, 123, 123]]], np.uint8).repeat(8, 0).repeat(8, 1)
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24")
    shown = picture(frame, Display(primaries=9), None).astype(int)
    assert shown[0, 0] == pytest.approx([255, 0, 0], abs=12)
    assert shown[0, -1] == pytest.approx([123, 123, 123], abs=1)


@pytest.mark.parametrize("aspect", ["64/45", "1/2", "8/9", "1/1"])
@pytest.mark.parametrize("ending", ["mp4", "mkv", "ts"])
def test_frames_have_the_displayed_shape(aspect: str, ending: str, tmp_path: Path) -> None:
    """Pixels that are not square are stretched, never squeezed, in seeking and in decoding all."""
    codec, path = "libx264", tmp_path / f"clip.{ending}"
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec}")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = 48, 48, "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(aspect)
        for _ in range(4):
            container.mux(stream.encode(_frame("yuv420p").reformat(48, 48)))
        container.mux(stream.encode())
    width, height = read_frames(path, 1).frames.shape[2:0:-1]
    assert width / height == pytest.approx(float(Fraction(aspect)), rel=0.02)
    assert min(width, height) == 48


@pytest.mark.parametrize("ending", ["m4a", "mp3", "flac"])
def test_sound_with_a_cover_is_no_video(ending: str, tmp_path: Path) -> None:
    """A file whose only picture is an attached one is refused with that reason."""
    path = tmp_path / f"song.{ending}"
    codec = {"mp3": "libmp3lame", "flac": "flac"}.get(ending, "aac")
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec}")
    with av.open(str(path), "w", format="mp4" if ending == "m4a" else None) as container:
        sound = container.add_stream(codec, rate=44100, layout="mono")
        cover = container.add_stream("mjpeg", rate=1)
        cover.width, cover.height, cover.pix_fmt = 64, 64, "yuvj420p"
        cover.disposition = Disposition.attached_pic.value
        container.mux(cover.encode(_frame("yuvj420p").reformat(64, 64)))
        container.mux(cover.encode())
        for _ in range(4):
            silence = av.AudioFrame.from_ndarray(
                np.zeros((1, 1024), np.int16), format="s16", layout="mono"
            )
            silence.sample_rate = 44100
            container.mux(sound.encode(silence))
        container.mux(sound.encode())
    with pytest.raises(DataError, match=r"song\..*(attached cover|no video container)"):
        read_frames(path, 4)
