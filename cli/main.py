"""The command line ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from lmms_eval_captions import __version__
from lmms_eval_captions.cli.agree import add_agree
from lmms_eval_captions.cli.build import add_build
from lmms_eval_captions.cli.check import add_check, add_doctor
from lmms_eval_captions.cli.compare import add_compare
from lmms_eval_captions.cli.estimate import add_estimate
from lmms_eval_captions.cli.judge_verify import add_judge
from lmms_eval_captions.cli.label import add_label, add_labels
from lmms_eval_captions.cli.meta_eval import add_meta_eval
from lmms_eval_captions.cli.options import add_command
from lmms_eval_captions.cli.report import add_report
from lmms_eval_captions.cli.score import add_score
from lmms_eval_captions.cli.settings_flags import settings_taken
from lmms_eval_captions.cli.stability import add_stability
from lmms_eval_captions.cli.t2v_verify import add_t2v_verify
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.dependencies import advice_for
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Run and score": ("run", "score", "estimate", "doctor", "check", "tasks-path"),
    "Read results": ("compare", "report", "agree", "stability", "label", "labels", "meta-eval"),
    "Build and verify": ("build", "judge", "t2v-verify"),
}
"""Commands in the order of the list in ``--help``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments (default: the process's own).

    Returns:
        Exit status: 0 for success, 1 if something is wrong, 2 for a usage error, 3 if a gate of
        ``compare`` or ``judge verify`` cannot be decided.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone, as behind `| head`; nothing is left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except CaptionsError as error:
        sys.stdout.flush()
        print(sentence(f"lmms-eval-captions: {error}"), file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        advice = advice_for(error)
        if advice is None:
            raise
        print(f"lmms-eval-captions: {words[0]} needs more packages: {advice}", file=sys.stderr)
        return 2
    return code


def _run(words: Sequence[str]) -> int:
    if words[:1] == ["run"]:
        from lmms_eval_captions.cli.run import run

        with settings_taken(words[1:], (), is_run=True) as rest:
            return run(rest)
    parser, commands = _parser()
    if not words or words[0] in ("-h", "--help"):
        print(_overview(commands), end="")
        return 0
    if not words[0].startswith("-") and words[0] not in commands.choices:
        close = get_close_matches(words[0], commands.choices, n=1)
        meant = f"did you mean {close[0]}?" if close else "see lmms-eval-captions --help"
        print(f"lmms-eval-captions: no command {words[0]!r:.80}; {meant}", file=sys.stderr)
        return 2
    with settings_taken(words, _own_flags(parser, words), is_run=False) as rest:
        arguments = parser.parse_args(rest)
        return int(arguments.run(arguments))


def _parser() -> tuple[argparse.ArgumentParser, _SubParsersAction[argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(prog="lmms-eval-captions")
    parser.add_argument("--version", action="version", version=f"lmms-eval-captions {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser(
        "run", help="lmms-eval with the same arguments, then a check of its results", add_help=False
    )
    add_command(
        commands,
        "tasks-path",
        _tasks_path,
        help="print the folder of the task definitions",
        description="Prints the folder of the task definitions, for lmms-eval's --include_path.",
        example='lmms-eval --include_path "$(lmms-eval-captions tasks-path)" --tasks list',
    )
    for add in (
        add_score, add_estimate, add_doctor, add_check, add_compare, add_report, add_agree,
        add_stability, add_label, add_labels, add_meta_eval, add_build, add_judge, add_t2v_verify,
    ):  # fmt: skip
        add(commands)
    return parser, commands


def _overview(commands: _SubParsersAction[argparse.ArgumentParser]) -> str:
    """Return the help of the bare command."""
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    lines = [
        "usage: lmms-eval-captions COMMAND ...",
        "",
        "Score video captions with LLM judges, as tasks of lmms-eval.",
    ]
    for group, names in _GROUPS.items():
        lines += ["", f"{group}:"]
        for name in names:
            text = textwrap.wrap(helps[name], 64)
            lines += [f"  {name:<12} {text[0]}", *(f"{'':<15}{line}" for line in text[1:])]
    lines += [
        "",
        "lmms-eval-captions COMMAND --help shows options and an example; --version the version.",
    ]
    return "\n".join([*lines, ""])


def _own_flags(parser: argparse.ArgumentParser, words: Sequence[str]) -> set[str]:
    """Return the flags of a command and of the commands in it."""
    flags = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word in words:
                if word in action.choices:
                    flags |= _own_flags(action.choices[word], words)
    return flags


def _tasks_path(_: argparse.Namespace) -> int:
    print(tasks_path())
    return 0


if __name__ == "__main__":
    sys.exit(main())
