"""Sound of a part of a video, copied into the file of that part."""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from loguru import logger

from lmms_eval_captions.model_wrappers.video.containers import open_clip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_RATES: Final = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
"""Sample rates that are kept; others become the last one."""


class Sound:
    """The first sound track of a video from some moment on, encoded as AAC; close it.

    Sound that is damaged is left out from there on; pictures do not suffer.

    Args:
        source: The video.
        start_s: Where the part begins, in seconds of the video's clock.
        target: The container to write to, before its first packet.
    """

    def __init__(self, source: Path, start_s: float, target: Any) -> None:  # noqa: ANN401 (PyAV's)
        self._opened = ExitStack()
        self._start_s = start_s
        self._target = target
        self._frames: Iterator[Any] = iter(())
        self._waiting: Any = None
        container = self._opened.enter_context(open_clip(source))
        track = next(iter(container.streams.audio), None)
        if track is None or track.codec_context is None:
            return
        self._rate = track.rate if track.rate in _RATES else _RATES[-1]
        layout = "mono" if track.channels == 1 else "stereo"
        self._written = target.add_stream("aac", rate=self._rate, layout=layout)
        self._frames = self._decoded(container, track)

    def write_until(self, end_s: float) -> None:
        """Encode the sound that begins before ``end_s``, in seconds of the video's clock."""
        while True:
            frame = self._waiting if self._waiting is not None else next(self._frames, None)
            self._waiting = None
            if frame is None:
                return
            if frame.time >= end_s:
                self._waiting = frame
                return
            if frame.time >= self._start_s:
                ticks = round((frame.time - self._start_s) * self._rate)
                frame.pts, frame.time_base = ticks, Fraction(1, self._rate)
                self._target.mux(self._written.encode(frame))

    def close(self) -> None:
        """Write what the encoder still holds, and close the video."""
        if hasattr(self, "_written"):
            self._target.mux(self._written.encode(None))
        self._opened.close()

    def _decoded(self, container: Any, track: Any) -> Iterator[Any]:  # noqa: ANN401
        import av

        try:
            container.seek(max(0, int(self._start_s / track.time_base)), stream=track)
            for frame in container.decode(track):
                if frame.pts is not None:
                    yield frame
        except av.FFmpegError as error:
            logger.debug("{}: its sound ends early: {}", container.name, error)
