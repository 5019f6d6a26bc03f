"""Clips that are cut out of a video keep its sound."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.cutting import cut_parts

RATE, FPS = 16_000, 10
TONES = (400, 800)


def _write(path: Path, codec: str, n_seconds: int) -> Path:
    """A video whose tone rises in its middle."""
    if codec not in av.codecs_available:
        pytest.skip(f"this build of PyAV has no encoder {codec}")
    with av.open(str(path), "w") as container:
        video = container.add_stream("mpeg4", rate=FPS)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        audio = container.add_stream(codec, rate=RATE, layout="mono")
        seconds = np.arange(RATE * n_seconds) / RATE
        tone = np.where(seconds < n_seconds / 2, *TONES)
        samples = (np.sin(2 * np.pi * tone * seconds) * 20_000).astype(np.int16)
        for index in range(n_seconds * FPS):
            picture = np.full((48, 64, 3), index, np.uint8)
            container.mux(video.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            piece = samples[index * RATE // FPS : (index + 1) * RATE // FPS]
            frame = av.AudioFrame.from_ndarray(piece[None], format="s16", layout="mono")
            frame.sample_rate, frame.pts = RATE, index * RATE // FPS
            container.mux(audio.encode(frame))
        for stream in (video, audio):
            container.mux(stream.encode(None))
    return path


@pytest.mark.parametrize(
    ("ending", "codec"), [("mp4", "aac"), ("mkv", "libopus"), ("mov", "pcm_s16le")]
)
def test_each_part_has_the_sound_of_its_time(ending: str, codec: str, tmp_path: Path) -> None:
    """As long as its pictures, and the tone of its half."""
    source = _write(tmp_path / f"source.{ending}", codec, 6)
    parts = [((0, 28), tmp_path / "a.mp4"), ((32, 60), tmp_path / "b.mp4")]
    cut_parts(source, parts)
    for (_, path), tone in zip(parts, TONES, strict=True):
        with av.open(str(path)) as container:
            pieces = [frame.to_ndarray()[0] for frame in container.decode(audio=0)]
            rate = container.streams.audio[0].rate
        samples = np.concatenate(pieces)
        assert len(samples) / rate == pytest.approx(2.8, abs=0.15)
        middle = samples[len(samples) // 4 : len(samples) * 3 // 4]
        loudest = np.abs(np.fft.rfft(middle)).argmax() * rate / len(middle)
        assert loudest == pytest.approx(tone, abs=5)


def test_a_silent_video_has_silent_parts(tmp_path: Path) -> None:
    """No sound is made up."""
    source = tmp_path / "source.mp4"
    with av.open(str(source), "w") as container:
        video = container.add_stream("mpeg4", rate=FPS)
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        for _ in range(9):
            picture = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
            container.mux(video.encode(picture))
        container.mux(video.encode(None))
    cut_parts(source, [((1, 8), tmp_path / "a.mp4")])
    with av.open(str(tmp_path / "a.mp4")) as container:
        assert not container.streams.audio
