"""Display times of frames, from the stamps that decoded frames carry."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

Stamps = tuple[int | None, int | None]
"""Time stamps of a frame, and of the packet after which it came out, if there are any."""
_JUMP_S: Final = 10.0
"""A longer step forwards in a broadcast stream is a new clock (``-dts_delta_threshold``)."""
_BACK_S: Final = 1.0
"""A longer step backwards is a new clock, too."""
_MOST_BAD: Final = 0.2
"""Share of frames' own stamps that may be missing or out of order before packets' count."""


def shown_at(
    stamps: Sequence[Stamps], *, unit_s: float, step_s: float, may_jump: bool
) -> NDArray[np.float64]:
    """Return when each frame is shown, in seconds from the first, never falling.

    Frames' own stamps count unless those of packets are in better order, as where AVI holds packed
    pictures. A stamp that is missing, or not later than those before it, is made up: frames in
    between stand a step apart, or closer if the next good stamp comes sooner.

    Args:
        stamps: One per frame, in the order in which they are shown.
        unit_s: Seconds of one unit of the stamps.
        step_s: Seconds from frame to frame by the stream's rate.
        may_jump: Whether the container's clock may restart in mid-stream, as in MPEG-TS.

    >>> shown_at([(0, 0), (2, 1), (None, None)], unit_s=0.5, step_s=0.25, may_jump=False)
    array([0.  , 1.  , 1.25])
    """
    own, packets = ([pair[kind] for pair in stamps] for kind in (0, 1))
    n_bad, n_bad_packets = _n_bad(own), _n_bad(packets)
    known = [stamp for stamp in own if stamp is not None]
    # AVI numbers frames as they are stored: with H.264 in it few are shown in another order.
    falls = any(late < early for early, late in pairwise(known))
    is_stored_order = not may_jump and not n_bad_packets and falls
    # Packets' own are those of decoding: they count if frames have no stamps, not if a few of them
    # are rounded to the same moment.
    is_own_good = n_bad <= _MOST_BAD * len(own) and not is_stored_order
    is_alone = packets.count(None) == len(packets)
    raw = own if is_own_good or is_alone or n_bad <= n_bad_packets else packets
    # Counted from the first as whole numbers: cut Ogg has stamps of which floats lose the digits.
    base = next((stamp for stamp in raw if stamp is not None), 0)
    times_s = np.zeros(len(raw), dtype=np.float64)
    offset_s: float | None = None
    last = 0
    for index, stamp in enumerate(raw):
        if stamp is None:
            continue
        n_steps = index - last
        time_s = (stamp - base) * unit_s + (offset_s or 0.0)
        expected_s, gone_s = times_s[last] + step_s * n_steps, time_s - times_s[last]
        # Frames without stamps lie between, for which there is no room: the clock went back.
        is_crowded = n_steps > 1 and gone_s < step_s * n_steps / 2
        is_new_clock = may_jump and (is_crowded or not -_BACK_S <= gone_s <= _JUMP_S)
        if offset_s is None or is_new_clock:
            offset_s = (offset_s or 0.0) + expected_s - time_s
            time_s = expected_s
        elif gone_s <= 0:
            continue
        own_step_s = min(step_s, (time_s - times_s[last]) / max(1, n_steps))
        times_s[last:index] = times_s[last] + own_step_s * np.arange(n_steps)
        times_s[index] = time_s
        last = index
    times_s[last:] = times_s[last] + step_s * np.arange(len(raw) - last)
    return times_s


def end_of(times_s: NDArray[np.float64], last_s: float, *, fps: float) -> float | None:
    """Return when a clip's last frame ends, in seconds from its first; ``None`` without a clock.

    Args:
        times_s: When all frames are shown, at least one.
        last_s: Duration of the last one by the file, 0 for none; next to nothing counts as the
            duration of the one before.
        fps: The stream's rate, 0 for none; counts for a clip of one frame.

    >>> end_of(np.array([0.0, 1.0, 3.0]), 0.5, fps=25), end_of(np.array([0.0, 2.0]), 0, fps=25)
    (3.5, 4.0)
    """
    steps_s = np.diff(times_s)
    steps_s = steps_s[steps_s > 0]
    # The last packet of fragmented MP4 is said to last for one tick of the clock.
    if last_s <= 0 or (len(steps_s) and last_s < steps_s.min() / 2):
        last_s = float(steps_s[-1]) if len(steps_s) else 1 / fps if fps > 0 else 0.0
    return float(times_s[-1]) + last_s or None


def _n_bad(stamps: Sequence[int | None]) -> int:
    """Count stamps that are missing, or not later than the one before."""
    last: int | None = None
    n_bad = 0
    n_known = max((n for n, stamp in enumerate(stamps, 1) if stamp is not None), default=0)
    for stamp in stamps[:n_known]:
        n_bad += stamp is None or (last is not None and stamp <= last)
        last = stamp if stamp is not None else last
    return n_bad
