"""Clips as programs write, cut, turn and tag them: every frame and its time are ffmpeg's."""

from __future__ import annotations

import shutil
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import clip_truth
from clip_recipes import RecipeError, run
from lmms_eval_captions.model_wrappers.video.clip import Clip
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from lmms_eval_captions.model_wrappers.video.readers import read_with
from lmms_eval_captions.model_wrappers.video.reading_errors import UnreadableError
from lmms_eval_captions.model_wrappers.video.sampling import Explicit, Uniform

pytestmark = pytest.mark.skipif(not shutil.which("ffmpeg"), reason="ffmpeg is not installed")

FPS, N_FRAMES = 25, 40
ALL = Uniform(1000)
MOST_APART = 0.5
"""Mean difference of levels, of 255: decoders of other versions round otherwise. The next frame is
twice as far, and so is chroma that is spread otherwise."""
X264 = "libx264 -preset veryfast -crf 18 -g 12 -bf 3"
X265 = "libx265 -preset ultrafast -x265-params log-level=none:pools=none:frame-threads=1:keyint=12"
SLOWER = "-vf setpts=(N+floor(N*N/20))/FR/TB -fps_mode passthrough"
_MATRICES = {
    "clockwise": (0, 1, -1, 0), "upside-down": (-1, 0, 0, -1), "anticlockwise": (0, -1, 1, 0),
    "mirrored": (-1, 0, 0, 1), "flipped": (1, 0, 0, -1), "transposed": (0, 1, 1, 0),
    "transverse": (0, -1, -1, 0),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A clip: how it is encoded, and then cut without encoding and turned."""

    encoder: str
    container: str
    options: str = ""
    cut: str = ""
    """Options of a second ffmpeg, which copies; ``-ss`` among them, before its input."""
    cut_to: str = ""
    turn: str = ""

    def write(self, folder: Path) -> Path:
        """The clip."""
        path = folder / f"clip.{self.container}"
        source = f"testsrc2=s=96x64:r={FPS}:d={N_FRAMES / FPS}"
        encode = ["-c:v", *self.encoder.split(), *self.options.split(), "-threads", "1"]
        run(["-f", "lavfi", "-i", source, *encode, str(path)])
        if self.cut:
            whole, path = path, folder / f"cut.{self.cut_to or self.container}"
            before, _, after = self.cut.partition(" | ")
            run([*before.split(), "-i", str(whole), *after.split(), "-c", "copy", str(path)])
        if self.turn:
            _turn(path, _MATRICES[self.turn])
        return path


def _turn(path: Path, matrix: tuple[int, int, int, int]) -> None:
    """Write how the track is to be shown."""
    raw = bytearray(path.read_bytes())
    a, b, c, d = (value << 16 for value in matrix)
    struct.pack_into(">9i", raw, raw.index(b"tkhd") + 44, a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(raw)


def _colours(matrix: str, spread: str) -> str:
    scale = f"scale=out_color_matrix={matrix}:out_range={spread}"
    return f"-vf {scale} -colorspace {matrix} -color_range {spread}"


CASES = {
    # What people have.
    "h264-mp4": Case(X264, "mp4"),
    "h264-mkv": Case(X264, "mkv"),
    "h264-ts": Case(X264, "ts"),
    "h264-avi": Case(X264, "avi"),
    "h264-flv": Case(X264, "flv"),
    "h264-fragments": Case(X264, "mp4", "-movflags frag_keyframe+empty_moov"),
    "h264-interlaced": Case(X264, "mp4", "-flags +ildct+ilme -x264-params tff=1"),
    "hevc-mp4": Case(X265, "mp4"),
    "hevc-ts": Case(X265, "ts"),
    "vp9-webm": Case("libvpx-vp9 -cpu-used 8 -deadline realtime -g 12", "webm"),
    "mpeg4-avi": Case("mpeg4 -q 2 -bf 2", "avi"),
    "mpeg2-ts": Case("mpeg2video -q 2 -bf 2", "ts"),
    "mjpeg-mov": Case("mjpeg -q 2 -pix_fmt yuvj420p", "mov"),
    "prores-mov": Case("prores_ks", "mov"),
    "ffv1-mkv": Case("ffv1 -pix_fmt yuv420p", "mkv"),
    # Cut without encoding: with edit lists, without, and with what comes before the first key.
    "cut-h264-mp4": Case(X264, "mp4", cut="-ss 0.3"),
    "cut-h264-mp4-at-key": Case(X264, "mp4", cut="-ss 0.48"),
    "cut-h264-mp4-end": Case(X264, "mp4", cut="-ss 0.62 -t 0.5"),
    "cut-h264-mp4-kept-stamps": Case(X264, "mp4", cut="-ss 0.7 | -copyts"),
    "cut-h264-mp4-from-zero": Case(X264, "mp4", cut="-ss 0.7 | -avoid_negative_ts make_zero"),
    "cut-h264-mp4-after-input": Case(X264, "mp4", cut=" | -ss 0.6"),
    "cut-h264-mov": Case(X264, "mov", cut="-ss 0.9"),
    "cut-hevc-mp4": Case(X265, "mp4", cut="-ss 0.55"),
    "cut-vp9-mp4": Case("libvpx-vp9 -cpu-used 8 -deadline realtime -g 12", "mp4", cut="-ss 0.6"),
    "cut-mpeg4-mp4": Case("mpeg4 -q 2 -bf 2 -g 12", "mp4", cut="-ss 0.6"),
    "cut-h264-ts": Case(X264, "ts", cut="-ss 0.6"),
    "cut-h264-ts-after-input": Case(X264, "ts", cut=" | -ss 0.6"),
    "cut-hevc-ts": Case(X265, "ts", cut="-ss 0.6"),
    "cut-mpeg2-ts": Case("mpeg2video -q 2 -bf 2", "ts", cut="-ss 0.6"),
    "cut-h264-mp4-to-ts": Case(X264, "mp4", cut="-ss 0.6", cut_to="ts"),
    "cut-h264-ts-to-mp4": Case(X264, "ts", cut="-ss 0.6", cut_to="mp4"),
    "cut-h264-mp4-to-mkv": Case(X264, "mp4", cut="-ss 0.6", cut_to="mkv"),
    "cut-h264-mkv-to-mp4": Case(X264, "mkv", cut="-ss 0.6", cut_to="mp4"),
    # Frames of a variable rate.
    "variable-h264-mp4": Case(X264, "mp4", SLOWER),
    "variable-h264-mkv": Case(X264, "mkv", SLOWER),
    "variable-mpeg4-mkv": Case("mpeg4 -q 2", "mkv", SLOWER),
    "variable-vp8-webm": Case("libvpx -deadline realtime -crf 8 -b:v 1M", "webm", SLOWER),
    "variable-h264-ts": Case(X264, "ts", SLOWER),
    "variable-mpeg4-ts": Case("mpeg4 -q 2", "ts", SLOWER),
    "variable-h264-flv": Case(X264, "flv", SLOWER),
    "variable-h264-nut": Case(X264, "nut", SLOWER),
    "variable-cut-h264-mp4": Case(X264, "mp4", SLOWER, cut="-ss 0.6"),
    # Turned and mirrored.
    **{f"{turn}-h264": Case(X264, "mp4", turn=turn) for turn in _MATRICES},
    "mirrored-hevc-mov": Case(X265, "mov", turn="mirrored"),
    "mirrored-cut-h264": Case(X264, "mp4", cut="-ss 0.6", turn="mirrored"),
    # Colours.
    **{
        f"{matrix}-{spread}": Case(X264, "mp4", _colours(matrix, spread))
        for matrix in ("bt709", "smpte170m", "bt2020nc")
        for spread in ("tv", "pc")
    },
    "bt709-hevc-10-bits": Case(X265, "mp4", "-pix_fmt yuv420p10le " + _colours("bt709", "tv")),
    "bt2020-hevc-10-bits": Case(X265, "mkv", "-pix_fmt yuv420p10le " + _colours("bt2020nc", "tv")),
    "full-range-by-kind": Case(X264, "mp4", "-pix_fmt yuvj420p"),
    "no-subsampling": Case(X264, "mkv", "-pix_fmt yuv444p " + _colours("bt709", "tv")),
    "half-subsampling-10-bits": Case(X264, "mkv", "-pix_fmt yuv422p10le"),
    "nv12": Case("rawvideo", "avi", "-pix_fmt nv12"),
    "grey": Case(X264, "mp4", "-pix_fmt gray"),
    "rgb": Case("libx264rgb -crf 18", "mp4", "-pix_fmt rgb24"),
}


@pytest.mark.parametrize("name", CASES)
def test_every_frame_is_ffmpegs(tmp_path: Path, name: str) -> None:
    """As read by default, and by each of PyAV's ways: number, levels, times and length."""
    case = CASES[name]
    try:
        path = case.write(tmp_path)
    except RecipeError as error:
        pytest.skip(f"this ffmpeg does not write it: {error}")
    truth = clip_truth.read(path)
    assert truth is not None
    n_total, end_s = len(truth.frames), float(truth.times_s[-1])
    assert n_total > 10
    moved = np.abs(np.diff(truth.frames.astype(np.int16), axis=0)).mean(axis=(1, 2, 3))
    assert moved.min() > 2 * MOST_APART
    step_s = float(np.diff(truth.times_s).max())
    some = Explicit((1, n_total // 3, n_total * 4 // 5))
    clips = [(read_frames(path, some), some), (_read("PyAV", path), ALL)]
    # What cannot be proven is not sought.
    with suppress(UnreadableError):
        clips.append((_read("PyAV, seeking", path), ALL))
    for clip, sampling in clips:
        places = sampling.indices(truth.times_s)
        assert clip.n_total == n_total
        apart = np.abs(clip.frames.astype(np.int16) - truth.frames[places])
        assert apart.mean(axis=(1, 2, 3)).max() < MOST_APART
        assert clip.timestamps_s == pytest.approx(truth.times_s[places], abs=2e-3)
        assert clip.duration_s == pytest.approx(end_s + step_s / 2, abs=0.6 * step_s)
        assert clip.fps == pytest.approx(n_total / clip.duration_s)


def _read(reader: str, path: Path) -> Clip:
    return read_with(reader, path, ALL, max_pixels=None, n_threads=1)
