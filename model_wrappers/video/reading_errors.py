"""Why a clip cannot be read; all of it is a ``DataError`` to whoever asked for the clip."""

from __future__ import annotations

from lmms_eval_captions.judges.errors import DataError


class UnreadableError(DataError):
    """One reader cannot read a file; the text says why in a few words."""


class RefusedError(DataError):
    """No reader can read the file, or should; the text says why in a few words."""


class LimitError(RefusedError):
    """Reading the file goes beyond a limit of time or memory; the text says how it is raised."""


class StoppedError(DataError):
    """The reading was ended from outside."""


def one_line(error: Exception) -> str:
    """The first line of a library's error, or its kind where it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
