"""Settings as flags of every command, and as a section of a ``--config`` file.

A flag wins over an environment variable, and that over the file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import read_yaml_file
from lmms_eval_captions.judges.settings import Settings, variables_of

SECTION: Final = "lmms_eval_captions"
"""Key of the section in lmms-eval's own file of arguments."""
_PREFIX: Final = "LMMS_CAPTIONS_"
_CONFIG: Final = "--config"
FLAGS: Final[Mapping[str, str]] = {
    f"--{row.name.removeprefix(_PREFIX).lower().replace('_', '-')}": row.name
    for row in variables_of(Settings).values()
    if row.name.startswith(_PREFIX)
}
"""Flag to its variable."""


@contextmanager
def settings_taken(
    words: Sequence[str], own: Collection[str], *, is_run: bool
) -> Iterator[list[str]]:
    """Set the variables that a command line names, and yield the rest of it.

    Args:
        words: Arguments of a command.
        own: Flags that the command has itself.
        is_run: True if the rest is lmms-eval's, which reads the rest of a file too.

    Raises:
        SettingsError: If a flag has no value or looks misspelt, or a file cannot be used.
    """
    rest: list[str] = []
    given: dict[str, str] = {}
    waiting = iter(words)
    with tempfile.TemporaryDirectory(prefix="lmms-eval-captions-") as folder:
        for word in waiting:
            flag, equals, value = word.partition("=")
            if flag in own or (flag not in FLAGS and flag != _CONFIG):
                _require_known(flag, own, is_run=is_run)
                rest.append(word)
                continue
            text = value if equals else next(waiting, None)
            if text is None:
                raise SettingsError(f"{flag}: expected a value behind it, got none")
            if flag != _CONFIG:
                given[FLAGS[flag]] = text
                continue
            path = Path(text)
            content = _read(path)
            if SECTION in content:
                section = _variables(path, content.pop(SECTION) or {})
                given = {n: v for n, v in section.items() if n not in os.environ} | given
                path = Path(folder) / path.name
                path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            if is_run:
                rest += [_CONFIG, str(path)]
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            yield rest
        finally:
            for name in given:
                os.environ.pop(name, None)
            os.environ.update({name: text for name, text in before.items() if text is not None})


def _require_known(flag: str, own: Collection[str], *, is_run: bool) -> None:
    """Raise if a flag is probably one of ours misspelt; lmms-eval's have no dash within."""
    if not flag.startswith("--") or flag in own or (is_run and "-" not in flag[2:]):
        return
    if close := get_close_matches(flag, [*FLAGS, *own], n=1, cutoff=0.8):
        raise SettingsError(f"{flag}: no such option; was {close[0]} meant?")


def _variables(path: Path, section: object) -> dict[str, str]:
    """Return the variables that the section of a file sets."""
    if not isinstance(section, dict):
        raise SettingsError(
            f"{_CONFIG} {path}: expected settings under {SECTION}, such as judge: gpt-4o, got "
            f"{section!r:.80}"
        )
    variables = {}
    for key, value in section.items():
        flag = f"--{str(key).replace('_', '-')}"
        if flag not in FLAGS:
            names = [name[2:].replace("-", "_") for name in FLAGS]
            close = get_close_matches(str(key), names, n=1)
            meant = f"; was {close[0]} meant?" if close else f", expected any of {', '.join(names)}"
            raise SettingsError(f"{_CONFIG} {path}: no setting {key!r:.80} is known{meant}")
        variables[FLAGS[flag]] = str(int(value)) if isinstance(value, bool) else str(value)
    return variables


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml_file(path)
    except FileNotFoundError:
        raise SettingsError(
            f"{_CONFIG}: expected a YAML file of lmms-eval's arguments, found no file "
            f"{str(path)!r:.80}; give the path of one, or the arguments themselves"
        ) from None
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{_CONFIG} {path}: expected a YAML file, got {error!s:.200}"
        ) from error
    # A list holds several evaluations of lmms-eval.
    return content if isinstance(content, dict) else {}
