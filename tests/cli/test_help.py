"""Help of the command line."""

from __future__ import annotations

import argparse
import os
import re
import sys

import pytest

from lmms_eval_captions.cli.commands import COMMANDS
from lmms_eval_captions.cli.main import main


def test_the_bare_command_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    listed = re.findall(r"^  ([a-z].*?)  ", printed, re.MULTILINE)
    assert listed == list(COMMANDS)
    assert max(map(len, printed.splitlines())) <= 90


def test_a_misspelt_command_is_corrected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["comapre", "a", "b"]) == 2
    assert "did you mean compare?" in capsys.readouterr().err
    assert main(["judge"]) == 2
    assert "did you mean judge verify?" in capsys.readouterr().err


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "run"])
def test_help_has_an_example_and_names_defaults(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*name.split(), "--help"])
    printed = capsys.readouterr().out
    assert re.search(r"example:\n  .*lmms-eval-captions", printed)
    assert "%%" not in printed
    for action in COMMANDS[name].parser()._actions:
        if action.default not in (None, False, argparse.SUPPRESS, []):
            shown = re.search(r"\(default: (.*)\)", str(action.help))
            assert shown is not None
            assert str(action.default) in (shown[1], f"{shown[1]}.0")


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
