"""Where a command's report goes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_output(command: argparse.ArgumentParser) -> None:
    """Add ``--output`` to a command."""
    command.add_argument("--output", type=Path, metavar="FILE", help="write there, not to stdout")


def write_output(text: str, path: Path | None) -> None:
    """Write a report to a file, or without one to stdout.

    Raises:
        DataError: If the file cannot be written.
    """
    from lmms_eval_captions.judges.errors import DataError
    from lmms_eval_captions.judges.files import write_atomically

    if path is None:
        sys.stdout.write(text)
        return
    try:
        write_atomically(path.expanduser(), text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(f"--output {path}: cannot be written: {error}") from error
    sys.stderr.write(f"written to {path}\n")
