"""Moments as they are given on a command line."""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime
from typing import Final

_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d+)?) ?([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def moment_since(text: str) -> float:
    """A moment, in seconds since the epoch.

    Args:
        text: How long ago it was, such as ``2h``, or a date or a time as ISO 8601 has it, of this
            machine's time zone where it names none.

    Raises:
        argparse.ArgumentTypeError: If it is neither, or is yet to come.
    """
    duration = _DURATION.fullmatch(text.strip())
    if duration:
        return time.time() - float(duration[1]) * _SECONDS[duration[2]]
    try:
        # Python 3.10 knows no Z.
        moment = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip())).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"expected how long ago, such as 90m, 2h or 3d, or a time such as 2026-01-31T18:30, "
            f"got {text!r:.80}"
        ) from None
    if moment > time.time():
        raise argparse.ArgumentTypeError(f"expected a time that is past, got {text!r:.80}")
    return moment
