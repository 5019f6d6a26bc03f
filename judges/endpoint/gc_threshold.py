"""How often Python looks for reference cycles while a judge is being asked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_YOUNG_OBJECTS: Final = 5_000


@contextmanager
def rarer_collections() -> Iterator[None]:
    """Let Python look for cycles less often; a setting of the process, put back at the end.

    Some 25,000 objects belong to 256 requests in flight. Under Python 3.11's threshold of 700 new
    ones they are looked through every 40 requests, which stops all of them for 1-20 ms: measured,
    89.5% of the ideal calls/s against 95.1% under this one. A process that set more, or none (0),
    is left alone.
    """
    young, *older = gc.get_threshold()
    if not 0 < young < _YOUNG_OBJECTS:
        yield
        return
    gc.set_threshold(_YOUNG_OBJECTS, *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
