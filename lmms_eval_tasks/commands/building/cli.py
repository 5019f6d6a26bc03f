"""The subcommand ``build`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.cli import add_clips_command
from lmms_eval_captions.lmms_eval_tasks.commands.building.registry import NAMES
from lmms_eval_captions.lmms_eval_tasks.commands.numbers_given import above_zero, dollars, positive

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
    from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options

_INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended, as shells have it."""
_MODELS = (
    "NAME[@URL[#KEY_VARIABLE]], several separated by commas; without an address, at "
    "LMMS_CAPTIONS_JUDGE_URL or OPENAI_BASE_URL"
)


def add_build(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "build",
        help="make a benchmark of one's own clips, by the pipelines of the papers",
        description="Makes the files of a benchmark out of a folder of clips, so that its tasks "
        "score captions of them with LMMS_CAPTIONS_DATA=DATA.",
    )
    kinds = command.add_subparsers(required=True, metavar="KIND")
    _add_kinds(kinds, _build)
    add_clips_command(kinds)


def build_estimate(words: Sequence[str]) -> int:
    """Print what a build would take.

    Args:
        words: Arguments of ``build``; ``-o`` may be left out.
    """
    parser = argparse.ArgumentParser(prog="lmms-eval-captions estimate --build")
    _add_kinds(parser.add_subparsers(required=True, metavar="KIND"), _estimate)
    nowhere = ["-o", str(Path(tempfile.gettempdir(), "lmms-eval-captions"))]
    arguments = parser.parse_args([*words, *([] if _has_output(words) else nowhere)])
    return int(arguments.run(arguments))


def _has_output(words: Sequence[str]) -> bool:
    return any(word == "-o" or word.startswith("--o") for word in words)


def _add_kinds(
    kinds: _SubParsersAction[argparse.ArgumentParser], run: Callable[[argparse.Namespace], int]
) -> None:
    for name in NAMES:
        kind = kinds.add_parser(
            name,
            help=f"questions as {name} asks them",
            description="Every stage is a file in DATA/KIND/build; the same command run again "
            "goes on where it was ended, and asks nothing twice. Exit code: 0 where the benchmark "
            "is complete, 1 where requests have no reply yet or no question is left, 2 where it "
            "cannot be built as asked.",
        )
        add_arguments(kind)
        kind.set_defaults(run=run, kind=name)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of every kind."""
    command.add_argument("--videos", type=Path, required=True, metavar="DIR", help="your clips")
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="DATA",
        help="root of benchmark data; the benchmark's folder is made below it",
    )
    command.add_argument(
        "--writer", required=True, metavar="MODELS", help=f"vision models that write: {_MODELS}"
    )
    command.add_argument(
        "--solver",
        metavar="MODELS",
        help="models that read text alone: they answer without the clip, group questions, judge "
        "(the writers)",
    )
    command.add_argument(
        "--viewer",
        metavar="MODELS",
        help="vision models of the sighted check (the first writer)",
    )
    command.add_argument(
        "--per-video", type=positive, metavar="N", help="most questions of a clip that stay"
    )
    command.add_argument("--limit", type=positive, metavar="N", help="take the first N clips")
    command.add_argument("--frames", type=positive, metavar="N", help="frames of each clip")
    command.add_argument(
        "--frame-pixels",
        type=positive,
        default=512 * 512,
        metavar="N",
        help="larger frames are shrunk to that area (262144)",
    )
    command.add_argument(
        "--max-tokens",
        type=positive,
        default=16_384,
        metavar="N",
        help="longest reply of a writer (16384); less for servers with a short context",
    )
    command.add_argument(
        "--timeout-s", type=above_zero, default=600.0, metavar="S", help="longest wait for a reply"
    )
    command.add_argument(
        "--max-cost",
        type=dollars,
        metavar="USD",
        help="most that all models together may be billed in this run",
    )
    command.add_argument(
        "--categories",
        type=Path,
        metavar="FILE",
        help="own categories of questions: YAML of names and definitions",
    )
    command.add_argument(
        "--labels",
        type=Path,
        nargs="+",
        default=(),
        metavar="FILE",
        help="answers of people, from the page that `label --build` makes; they take the place of "
        "the sighted check",
    )
    command.add_argument(
        "--annotators",
        type=positive,
        default=1,
        metavar="N",
        help="fewest people that --labels must have of a question (1; the paper has 3)",
    )
    command.add_argument(
        "--license", default="", metavar="TEXT", help="licence of the clips, for the data card"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of shuffles (0)")
    command.add_argument(
        "--until",
        metavar="NAME",
        help="stop behind this stage, such as before people look at the questions",
    )
    command.add_argument(
        "--stage", metavar="NAME", help="run this stage alone, anew; those before it are there"
    )


def options_of(arguments: argparse.Namespace) -> tuple[Kind, Options]:
    """The options that were given, checked.

    Raises:
        SettingsError: If a model or its endpoint cannot be used.
    """
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
    from lmms_eval_captions.lmms_eval_tasks.commands.building.registry import kind_of
    from lmms_eval_captions.lmms_eval_tasks.named_models import parse_models

    endpoint = read_judge_settings().endpoint
    kind = kind_of(arguments.kind)
    writers = parse_models("--writer", arguments.writer, endpoint)
    given = {"--solver": arguments.solver, "--viewer": arguments.viewer}
    named = {name: parse_models(name, text, endpoint) for name, text in given.items() if text}
    options = Options(
        kind=kind.name,
        # Stages are of the same clips, however their folder is written.
        videos=arguments.videos.expanduser().resolve(),
        data=arguments.output.expanduser(),
        writers=writers,
        solvers=named.get("--solver", writers),
        viewers=named.get("--viewer", writers[:1]),
        per_video=arguments.per_video or kind.per_video,
        limit=arguments.limit,
        n_frames=arguments.frames or kind.n_frames,
        frame_pixels=arguments.frame_pixels,
        max_tokens=arguments.max_tokens,
        timeout_s=arguments.timeout_s,
        seed=arguments.seed,
        max_cost_usd=arguments.max_cost,
        categories=arguments.categories,
        labels=tuple(path.expanduser() for path in arguments.labels),
        annotators=arguments.annotators,
        stage=arguments.stage,
        until=arguments.until,
        license=arguments.license,
    )
    return kind, options


def _build(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.building.building import (
        NothingLeftError,
        build,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.building.card import warnings_of, write_card
    from lmms_eval_captions.lmms_eval_tasks.commands.building.screen import screen

    kind, options = options_of(arguments)
    for warning in warnings_of(options):
        print(f"warning: {warning}", file=sys.stderr)
    try:
        built = build(kind, options, read_judge_settings())
    except KeyboardInterrupt:
        print(
            "stopped: every reply that came is kept, and the same command goes on from there",
            file=sys.stderr,
        )
        return _INTERRUPTED
    except NothingLeftError as error:
        for line in screen(error.built):
            print(line)
        print(f"lmms-eval-captions: {error}", file=sys.stderr)
        return 1
    if built.files:
        write_card(built)
    for line in screen(built):
        print(line)
    return 1 if built.n_lost else 0


def _estimate(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.endpoint.cost import load_prices
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.commands.building.estimating import (
        estimate_build,
        estimate_table,
    )

    kind, options = options_of(arguments)
    settings = read_judge_settings()
    estimate = estimate_build(kind, options, settings)
    for line in estimate_table(estimate, kind, options, load_prices(settings.prices)):
        print(line)
    return 0
