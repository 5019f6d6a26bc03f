"""The subcommand ``score`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import positive

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_INTERRUPTED = 130
_COLUMNS = ("clip_id", "caption", "questions", "reference", "video")


def add_score(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``score`` to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "score",
        help="score captions of any number of clips in Parquet files, and choose which to keep",
        description="Scores the captions of Parquet files with the judge of the environment, as "
        "the tasks do: a file of scores for each file, written whole or not at all. Started again, "
        "it goes on where it stopped; replies are kept, nothing is asked twice. Exit code: 0; 1 "
        "where a file could not be scored or too much is unscored; 2 for a usage error.",
    )
    command.add_argument(
        "--in", dest="inputs", nargs="+", action="extend", required=True, metavar="FILES",
        help="Parquet files, folders of them or patterns; may be given several times",
    )  # fmt: skip
    command.add_argument(
        "--out", type=Path, required=True, metavar="DIR",
        help="folder of the scores, lists and summary",
    )  # fmt: skip
    command.add_argument(
        "--protocol", required=True, metavar="NAME",
        help="what is asked about each caption: questions of your own by one of the benchmarks' "
        "protocols, or gveval_ref_free, vllm_judge (the video), gveval_ref_only (a reference "
        "caption), gveval_combined (both); a wrong name lists them all",
    )  # fmt: skip
    command.add_argument(
        "--column", action="append", default=[], type=_renamed, metavar="OURS=YOURS",
        help=f"what a column is called in the files, of {', '.join(_COLUMNS)}",
    )  # fmt: skip
    command.add_argument(
        "--videos", type=Path, metavar="DIR", help="folder that the names of videos are below"
    )
    command.add_argument(
        "--captioner", metavar="NAME",
        help="writes captions that are not there, of the column video: caption_hf, caption_openai "
        "or another of ours, or a class of yours as package.module:Class",
    )  # fmt: skip
    command.add_argument(
        "--captioner-args", default="", metavar="ARGS", help="as --model_args of lmms-eval"
    )
    command.add_argument(
        "--prompt", metavar="TEXT", help="what the captioner is asked (the protocol's own prompt)"
    )
    command.add_argument(
        "--keep", type=_share, metavar="SHARE",
        help="write the best clips, such as 0.8 of them, with how many of these would not be among "
        "the best by their true scores",
    )  # fmt: skip
    command.add_argument(
        "--worst", type=_share, default=0.05, metavar="SHARE",
        help="share of the clips in the list of the worst (0.05)",
    )  # fmt: skip
    command.add_argument(
        "--engine", choices=("local", "ray"), default="local",
        help="ray: on the machines of a Ray cluster (pip install 'lmms-eval-captions[ray]')",
    )  # fmt: skip
    command.add_argument(
        "--address", metavar="ADDRESS",
        help="of a Ray cluster, or auto; without, Ray is started on this machine",
    )  # fmt: skip
    command.add_argument(
        "--actors", type=positive, metavar="N", help="scorers on Ray (one for each machine)"
    )
    command.add_argument(
        "--caption-actors", type=positive, default=1, metavar="N", help="captioners on Ray (1)"
    )
    command.add_argument(
        "--gpus", type=float, default=0.0, metavar="N", help="GPUs of each captioner on Ray (0)"
    )
    command.set_defaults(run=_score)


def _score(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.scorer.command import Options, score

    options = Options(
        inputs=arguments.inputs,
        folder=arguments.out.expanduser(),
        protocol=arguments.protocol,
        names=dict(arguments.column),
        videos=arguments.videos,
        captioner=arguments.captioner,
        captioner_arguments=arguments.captioner_args,
        prompt=arguments.prompt,
        worst=arguments.worst,
        keep=arguments.keep,
        engine=arguments.engine,
        address=arguments.address,
        n_actors=arguments.actors,
        n_caption_actors=arguments.caption_actors,
        n_gpus=arguments.gpus,
    )
    try:
        return score(options)
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nstopped: files that are scored stay, and replies of the others are kept; the same "
            "command goes on\n"
        )
        return _INTERRUPTED


def _renamed(text: str) -> tuple[str, str]:
    ours, equals, yours = text.partition("=")
    if ours not in _COLUMNS or not equals or not yours:
        raise argparse.ArgumentTypeError(
            f"expected one of {', '.join(_COLUMNS)}, =, and the column's name, got {text!r}"
        )
    return ours, yours


def _share(text: str) -> float:
    """Return a share, which may be given in percent."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = 0.0
    value = value / 100 if value > 1 or text.endswith("%") else value
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(
            f"expected a share above 0, at most 1, such as 0.8, or percent, such as 80, got {text!r}"
        )
    return value
