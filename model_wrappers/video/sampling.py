"""Choice of the frames of a clip that a captioner sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lmms_eval_captions.model_wrappers.model_args import above_zero, at_least_one

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MOMENT_S = 1e-6
"""Rounding of time stamps by containers: a frame due this much later counts as shown."""


class Sampling(Protocol):
    """A choice of frames; hashable, so that equal choices share one decoding of a clip."""

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Return the positions of the frames to read, at least one in [0, n_total), rising.

        ``times_s`` has shape (n_total,), n_total >= 1: when each frame is shown, in seconds from
        the first, in order.
        """

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """A number of frames, evenly spaced by position, the first and the last included.

    Position ``k`` of ``n`` is ``round(k * (n_total - 1) / (n - 1))``, as by ``numpy.linspace``; a
    clip with fewer frames gives each of them once.

    Source: CapQuiz, section 4.2 ("uniformly sampled at 32 frames");
    VidCapBench, section 4.1 (16 frames, where a model's makers recommend nothing else).

    >>> Uniform(4).indices(np.arange(217) / 25)
    [0, 72, 144, 216]
    """

    n_frames: int

    def __post_init__(self) -> None:
        if self.n_frames < 1:
            raise ValueError(f"expected n_frames of at least 1, got {self.n_frames!r}")

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Return positions; see :class:`Sampling`."""
        return spread(len(times_s), self.n_frames)


@dataclass(frozen=True, slots=True)
class Fps:
    """The frames shown at 0, 1/fps, 2/fps, ... seconds, evenly thinned to a cap.

    Times are those of the file, so that a clip of variable frame rate is sampled evenly in time
    and not by position. A frame that is shown at two of the moments is read once. If more than
    ``max_frames`` moments fit in the clip, that many are spread over its complete length.

    Source: VidCapBench, table 3 (Qwen2-VL at 2 fps, CogVLM2-Caption at 1 fps).

    >>> Fps(2.0, max_frames=32).indices(np.arange(50) / 25)
    [0, 12, 25, 37]
    >>> Fps(2.0, max_frames=2).indices(np.arange(50) / 25)
    [0, 37]
    """

    fps: float
    max_frames: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.fps < float("inf") or self.max_frames < 1:
            raise ValueError(
                f"expected fps above 0 and max_frames of at least 1, got fps={self.fps!r}, "
                f"max_frames={self.max_frames!r}"
            )

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Return positions; see :class:`Sampling`."""
        # Never more moments than frames: a wild time stamp must not make billions of them.
        n_moments = int(min((times_s[-1] - times_s[0]) * self.fps + _MOMENT_S, 1e9)) + 1
        n_chosen = min(self.max_frames, n_moments, len(times_s))
        chosen = np.unique(np.round(np.linspace(0, n_moments - 1, n_chosen)))
        moments_s = times_s[0] + chosen / self.fps + _MOMENT_S
        shown = np.searchsorted(times_s, moments_s, side="right") - 1
        return [int(index) for index in np.unique(shown)]


@dataclass(frozen=True, slots=True)
class Thirds:
    """The frames at 0, 1/3 and 2/3 of the clip: the first three of four evenly spaced ones.

    Source: ztangaj/gveval@fee3fd7:evaluation/gveval/utils.py.

    >>> Thirds().indices(np.arange(31)), Thirds().indices(np.arange(3))
    ([0, 10, 20], [0, 1])
    """

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Return positions; see :class:`Sampling`."""
        return spread(len(times_s), 4)[:-1] or [0]


@dataclass(frozen=True, slots=True)
class Explicit:
    """Given positions; one past the end stands for the last frame, a negative one counts from it.

    >>> Explicit((0, 5, 500, -1)).indices(np.arange(217) / 25)
    [0, 5, 216]
    """

    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.positions:
            raise ValueError("expected at least 1 position, got none")

    def indices(self, times_s: NDArray[np.float64]) -> list[int]:
        """Return positions; see :class:`Sampling`."""
        n_total = len(times_s)
        from_start = (p if p >= 0 else n_total + p for p in self.positions)
        return sorted({min(max(p, 0), n_total - 1) for p in from_start})


def sampling_of(max_num_frames: object, fps: object) -> Sampling:
    """Return the sampling that ``--model_args max_num_frames=...[,fps=...]`` asks for.

    >>> sampling_of(32, None), sampling_of(32, 2)
    (Uniform(n_frames=32), Fps(fps=2.0, max_frames=32))
    """
    n_frames = at_least_one("max_num_frames", max_num_frames)
    return Uniform(n_frames) if fps is None else Fps(above_zero("fps", fps), n_frames)


def spread(n_total: int, n: int) -> list[int]:
    """Return ``n`` positions from 0 to ``n_total - 1``, evenly spaced and rounded, or all."""
    return [int(index) for index in np.round(np.linspace(0, n_total - 1, min(n_total, n)))]
