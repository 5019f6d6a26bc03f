"""Help of the command line."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator

import pytest

from lmms_eval_captions.cli.main import _parser, main


def _commands(
    parser: argparse.ArgumentParser, names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    inner = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    if not inner:
        yield names, parser
    for action in inner:
        for name, command in action.choices.items():
            yield from _commands(command, (*names, name))


COMMANDS = {" ".join(names): command for names, command in _commands(_parser()[0])}


def test_the_bare_command_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    listed = set(re.findall(r"^  ([a-z][a-z0-9-]+) ", printed, re.MULTILINE))
    assert listed == {name.split()[0] for name in COMMANDS}
    assert max(map(len, printed.splitlines())) <= 90


def test_a_misspelt_command_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comapre", "a", "b"]) == 2
    assert "did you mean compare?" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "run"])
def test_help_has_an_example_and_names_defaults(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*name.split(), "--help"])
    printed = capsys.readouterr().out
    assert re.search(r"example:\n  .*lmms-eval-captions", printed)
    assert "%%" not in printed
    defaults = [
        action.default
        for action in COMMANDS[name]._actions
        if action.option_strings and action.default not in (None, False, argparse.SUPPRESS, [], ())
    ]
    assert len(re.findall(r"\(default:\s", printed)) >= len(defaults)


def test_the_help_of_run_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--help"]) == 0
    assert "example:" in capsys.readouterr().out


def test_a_reader_that_is_gone_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """``| head`` closes the pipe after ten lines."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert main(["tasks-path"]) == 1
