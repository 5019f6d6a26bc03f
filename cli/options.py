"""Help, options and values that several commands share."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d+)?) ?([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SETTINGS: Final = (
    "Every setting is a flag too (--judge, --judge-url, --max-cost, ...), or a line under "
    "lmms_eval_captions: in a --config file. lmms-eval-captions doctor --all lists them."
)


def add_command(
    commands: _SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], int] | None = None,
    *,
    help: str,  # noqa: A002 - argparse's name
    description: str,
    example: str,
) -> argparse.ArgumentParser:
    """Add a command whose ``--help`` ends with an example.

    Args:
        commands: Subcommands of a parser.
        name: Name of the command.
        run: Function that runs it and returns the exit code; ``None`` if it has commands itself.
        help: One line for the list of commands.
        description: Purpose and exit codes.
        example: Command lines, separated by newlines.
    """
    lines = "".join(f"  {line}\n" for line in example.splitlines())
    command = commands.add_parser(
        name,
        help=help,
        description=textwrap.fill(description, 79, break_on_hyphens=False),
        epilog=f"example:\n{lines}\n{textwrap.fill(_SETTINGS, 79)}",
        formatter_class=_Help,
    )
    if run is not None:
        command.set_defaults(run=run)
    return command


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help that names the default of every option that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        has_default = action.option_strings and action.default not in (
            None, False, argparse.SUPPRESS, [], "",
        )  # fmt: skip
        if not has_default or "(default" in (action.help or ""):
            return action.help
        return f"{action.help or ''} (default: %(default)s)".strip()


def add_tasks(command: argparse.ArgumentParser) -> None:
    """Add ``--tasks`` to a command that reads results."""
    command.add_argument(
        "--tasks", metavar="NAMES", help="tasks and groups, separated by commas (default: all)"
    )


def add_format(
    command: argparse.ArgumentParser,
    *formats: str,
) -> None:
    """Add ``--format`` and ``--output`` to a command that prints tables.

    Args:
        command: Parser of the command.
        formats: Formats (default: text, markdown, latex, csv, json).
    """
    choices = formats or ("text", "markdown", "latex", "csv", "json")
    command.add_argument("--format", choices=choices, default="text", help="output format")
    add_output(command)


def add_output(command: argparse.ArgumentParser) -> None:
    """Add ``--output`` to a command."""
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="file to write (default: stdout)"
    )


def write_output(text: str, path: Path | None) -> None:
    """Write a text to a file, or to stdout.

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


def split_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list, none if it is not given.

    >>> split_names("vdc_score, capquiz,"), split_names(None)
    (['vdc_score', 'capquiz'], [])
    """
    return [name for name in (part.strip() for part in (text or "").split(",")) if name]


def positive(text: str) -> int:
    """Return a whole number of at least 1, as ``type`` of an argument.

    Raises:
        argparse.ArgumentTypeError: If the text is none.

    >>> positive("12")
    12
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r:.80}")
    return int(text)


def above_zero(text: str) -> float:
    """Return a finite number above 0, as ``type`` of an argument.

    Raises:
        argparse.ArgumentTypeError: If the text is none.

    >>> above_zero("0.5")
    0.5
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r:.80}")
    return value


def dollars(text: str) -> float:
    """Return US dollars above 0, with or without a dollar sign, as ``type`` of an argument.

    Raises:
        argparse.ArgumentTypeError: If the text is none.

    >>> dollars("$20")
    20.0
    """
    return above_zero(text.removeprefix("$"))


def moment(text: str) -> float:
    """Return a past moment in seconds since the epoch, as ``type`` of an argument.

    Args:
        text: How long ago it was, such as ``2h``, or an ISO 8601 date or time; local time unless
            it names a time zone.

    Raises:
        argparse.ArgumentTypeError: If it is neither, or in the future.
    """
    duration = _DURATION.fullmatch(text.strip())
    if duration:
        return time.time() - float(duration[1]) * _SECONDS[duration[2]]
    try:
        # Python 3.10 does not parse Z.
        then = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip())).timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"expected how long ago, such as 90m, 2h or 3d, or a time such as 2026-01-31T18:30, "
            f"got {text!r:.80}"
        ) from None
    if then > time.time():
        raise argparse.ArgumentTypeError(f"expected a time in the past, got {text!r:.80}")
    return then
