"""The command line ``lmms-eval-captions``."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from lmms_eval_captions import __version__
from lmms_eval_captions.cli.commands import COMMANDS, GROUPS
from lmms_eval_captions.cli.settings_flags import settings_taken
from lmms_eval_captions.judges.errors import CaptionsError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.dependencies import advice_for
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence


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
    if not words or words[0] in ("-h", "--help"):
        print(_overview(), end="")
        return 0
    if words[0] == "--version":
        print(f"lmms-eval-captions {__version__}")
        return 0
    n_words = 2 if " ".join(words[:2]) in COMMANDS else 1
    name, rest = " ".join(words[:n_words]), words[n_words:]
    if name not in COMMANDS:
        longer = [known for known in COMMANDS if known.startswith(f"{name} ")]
        close = longer or get_close_matches(name, COMMANDS, n=1)
        meant = f"did you mean {close[0]}?" if close else "see lmms-eval-captions --help"
        raise SettingsError(f"no command {name!r:.80}; {meant}")
    command = COMMANDS[name]
    parser = command.parser()
    is_run = name == "run"
    if is_run and rest[:1] in (["-h"], ["--help"]):
        parser.print_help()
        return 0
    function = name.replace(" ", "_").replace("-", "_")
    own = () if is_run else parser._option_string_actions
    with settings_taken(rest, own, is_run=is_run) as left:
        arguments = left if is_run else parser.parse_args(left)
        module = import_module(f"lmms_eval_captions.cli.{command.module}")
        return int(getattr(module, function)(arguments))


def _overview() -> str:
    """Return the help of the bare command."""
    lines = [
        "usage: lmms-eval-captions COMMAND ...",
        "",
        "Score video captions with LLM judges, as tasks of lmms-eval.",
    ]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:"]
        for command in commands:
            text = textwrap.wrap(command.help, 64)
            lines += [f"  {command.name:<13} {text[0]}", *(f"{'':<16}{line}" for line in text[1:])]
    lines += [
        "",
        "lmms-eval-captions COMMAND --help shows options and an example; --version the version.",
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
