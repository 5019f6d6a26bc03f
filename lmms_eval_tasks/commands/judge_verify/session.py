"""The nonce of a verification: it stands in every seed, so that nobody has its answers yet.

A verification that was interrupted, or could not be decided, goes on within a day with the same
nonce, and finds what was answered in the store. Later, or where that is asked for, or once it is
decided, there is a new one: an endpoint is to be asked, and not what it said before.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files.atomic_write import write_atomically
from lmms_eval_captions.judges.files.bounded_files import parse_json, read_whole

GOES_ON_S: Final = 86_400.0
"""Seconds after which a verification does not go on with the replies of the one before."""
_LEAST: Final = 1_000
_MOST: Final = 300_000
"""Of a nonce. It takes the place of the number of a judge run, which VCapsBench multiplies by 3;
seeds of fresh samples are above a million."""


@dataclass(frozen=True, slots=True)
class Session:
    """One verification of one judge at one endpoint."""

    nonce: int
    """Takes the place of the number of a judge run, in [1,000, 300,000)."""
    goes_on: bool
    """Whether it was begun before."""


def open_session(path: Path, *, anew: bool = False) -> Session:
    """The verification that is under way, or a new one, which is written down.

    Args:
        path: Where it is written down.
        anew: Whether it is a new one, whatever was begun before.

    Raises:
        DataError: If it cannot be written down.
    """
    if not anew and (nonce := _read(path)) is not None:
        return Session(nonce, goes_on=True)
    nonce = _LEAST + secrets.randbelow(_MOST - _LEAST)
    document = json.dumps({"nonce": nonce, "begun_s": time.time()})
    try:
        write_atomically(path, document.encode("ascii"))
    except OSError as error:
        raise DataError(
            f"{path}: the verification cannot be written down: {error}; make room, or set "
            "LMMS_CAPTIONS_CACHE to a folder that can be written"
        ) from error
    return Session(nonce, goes_on=False)


def _read(path: Path) -> int | None:
    """The nonce that is written down, ``None`` where there is none, or an old one."""
    try:
        document: Any = parse_json(read_whole(path))
        nonce, age_s = int(document["nonce"]), time.time() - float(document["begun_s"])
    except (OSError, ValueError, TypeError, LookupError):
        return None
    return nonce if 0 <= age_s < GOES_ON_S and _LEAST <= nonce < _MOST else None
