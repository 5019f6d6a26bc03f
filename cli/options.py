"""Commands declared by the text of their ``--help``, and output that several commands share."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lmms_eval_captions.analysis.tables import Part, as_json, render
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.judges.settings import choice_of, dollars_or_none, number, whole_number

if TYPE_CHECKING:
    import pandas as pd

_SETTINGS: Final = (
    "Every setting is a flag too (--judge, --judge-url, --max-cost, ...), or a line under "
    "lmms_eval_captions: in a --config file. lmms-eval-captions doctor --all lists them."
)
_HEAD: Final = re.compile(
    r"(?P<flags>(?:-[\w-]+, )*--[\w-]+)?(?: ?(?P<value>[^\s.*]+))?(?P<more>\.\.\.|\*| \.\.\.)?"
)
_NARGS: Final = {"...": "+", "*": "*", " ...": argparse.REMAINDER}
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d+)?) ?([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Command(NamedTuple):
    """A command.

    Its text has three paragraphs, separated by empty lines: purpose and exit codes; arguments and
    options; examples. An option is a head, two blanks and its help, which deeper lines continue::

        FOLDER...            one argument or more; FILE* for any number
        -o, --output FILE    the name of the value is its type, see TYPES
        --format text|json   one of these
        --all                a switch

    Help that contains (required), (repeatable) or (default: VALUE) is obeyed. A default that is
    no value of the option's type, such as (default: all), is for readers only.
    """

    name: str
    """Also names its function: ``judge_verify`` for ``judge verify``."""
    module: str
    """Module of this folder with its function."""
    help: str
    """One line for the list of commands."""
    text: str

    def parser(self) -> argparse.ArgumentParser:
        """Return the parser of its arguments."""
        description, *options, examples = textwrap.dedent(self.text).strip().split("\n\n")
        parser = argparse.ArgumentParser(
            prog=f"lmms-eval-captions {self.name}",
            description=textwrap.fill(description, 79, break_on_hyphens=False),
            epilog=f"example:\n{textwrap.indent(examples, '  ')}\n\n{textwrap.fill(_SETTINGS, 79)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for entry in options:
            for head, text in _entries(entry):
                _add(parser, head, text)
        return parser


def _entries(options: str) -> Iterator[tuple[str, str]]:
    """Yield the head and the help of each option."""
    for entry in re.split(r"\n(?! )", options):
        head, _, text = entry.partition("  ")
        yield head, " ".join(text.split())


def _add(parser: argparse.ArgumentParser, head: str, text: str) -> None:
    flags, value, more = _HEAD.fullmatch(head).groups()  # type: ignore[union-attr] # tested
    names = flags.split(", ") if flags else []
    shown = text.replace("%", "%%")
    if value is None:
        parser.add_argument(*names, action="store_true", help=shown)
        return
    choices = value.rpartition(":")[2].split("|") if "|" in value else None
    read = choice_of(*choices) if choices else TYPES.get(value, str)
    default = re.search(r"\(default: ([^)]+)\)", text)
    options: dict[str, Any] = {
        "help": shown,
        "type": None if choices else _typed(read),
        "choices": choices,
        "default": _default(read, default[1]) if default else [] if more == "..." else None,
        "metavar": None if choices else value,
        "nargs": _NARGS.get(more),
    }
    if "(repeatable)" in text:
        options |= {"action": "extend" if more else "append", "default": []}
    if flags:
        options["required"] = "(required)" in text
    else:
        name = value.partition(":")[0].lower()
        names = [f"{name.removesuffix('s')}s" if more else name]
    parser.add_argument(*names, **options)


def _default(read: Callable[[str], object], text: str) -> object:
    """Return a default that is a number or one of several choices."""
    try:
        return None if read in (str, _path) else read(text)
    except ValueError:
        return None


def _typed(read: Callable[[str], object]) -> Callable[[str], object]:
    """Return a reader whose complaints argparse prints."""

    def parse(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"expected {error}, got {text!r:.80}") from None

    return parse


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _share(text: str) -> float:
    """Return a share, which may be given in percent."""
    value = number("a share up to 1, such as 0.8, or percent, such as 80")(text.removesuffix("%"))
    value = value / 100 if value > 1 or text.endswith("%") else value
    if value > 1:
        raise ValueError("a share up to 1, such as 0.8, or percent, such as 80")
    return value


def _moment(text: str) -> float:
    """Return a past moment in seconds since the epoch."""
    duration = _DURATION.fullmatch(text.strip())
    if duration:
        return time.time() - float(duration[1]) * _SECONDS[duration[2]]
    try:
        # Python 3.10 does not parse Z.
        then = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text.strip())).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            "how long ago, such as 90m, 2h or 3d, or a time such as 2026-01-31T18:30"
        ) from None
    if then > time.time():
        raise ValueError("a time in the past")
    return then


def _renamed(text: str) -> tuple[str, str]:
    """Return our name of a column, and the user's."""
    columns = ("clip_id", "caption", "questions", "reference", "video")
    ours, equals, yours = text.partition("=")
    if ours not in columns or not equals or not yours:
        raise ValueError(f"one of {', '.join(columns)}, =, and the column's name")
    return ours, yours


TYPES: Final[dict[str, Callable[[str], object]]] = {
    "N": whole_number(least=1),
    "COUNT": whole_number(least=0),
    "SEED": whole_number(least=0),
    **dict.fromkeys(("MB", "PIXELS", "NUMBER"), number("a number", lambda _: True)),
    "S": number("a number above 0"),
    "USD": dollars_or_none,
    "SHARE": _share,
    "TIME": _moment,
    "OURS=YOURS": _renamed,
    **dict.fromkeys(("FILE", "DIR", "FOLDER", "PATH", "SOURCE", "DATA", "DATA/KIND"), _path),
}
"""Names of values to their readers, which raise ``ValueError``; others are texts."""


def write_report(
    parts: Sequence[Part],
    document: object,
    arguments: argparse.Namespace,
    rows: pd.DataFrame | None = None,
) -> None:
    """Write a report as ``--format`` says: its document as JSON, rows as CSV, else its parts."""
    if arguments.format == "json":
        text = as_json(document)
    elif arguments.format == "csv" and rows is not None:
        text = rows.to_csv(index=False)
    else:
        text = render(parts, arguments.format)
    write_output(text, arguments.output)


def write_output(text: str, path: Path | None) -> None:
    """Write a text to a file, or to stdout.

    Raises:
        DataError: If the file cannot be written.
    """
    if path is None:
        sys.stdout.write(text)
        return
    save(text, path)
    sys.stderr.write(f"written to {path}\n")


def save(text: str, path: Path) -> None:
    """Write a file of ``--output``, complete or not at all.

    Raises:
        DataError: If it cannot be written.
    """
    try:
        write_atomically(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise DataError(f"--output {path}: cannot be written: {error}") from error


def split_names(text: str | None) -> list[str]:
    """Return the names in a comma-separated list, none if it is not given.

    >>> split_names("vdc_score, capquiz,"), split_names(None)
    (['vdc_score', 'capquiz'], [])
    """
    return [name for name in (part.strip() for part in (text or "").split(",")) if name]
