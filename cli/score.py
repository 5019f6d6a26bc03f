"""Subcommand ``score``: captions of a benchmark, or of any number of clips in Parquet files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import add_command, positive
from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.scorer.on_ray import Cluster

_INTERRUPTED = 130
_COLUMNS = ("clip_id", "caption", "questions", "reference", "video")


def add_score(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``score`` to the parser of ``lmms-eval-captions``."""
    command = add_command(
        commands,
        "score",
        _score,
        help="score captions in files: of a benchmark, or of any clips in Parquet files",
        description="With --tasks, scores captions of a benchmark like lmms-eval --model "
        "caption_file, without lmms-eval. With --protocol, scores the captions of Parquet files: a "
        "file of scores for each file, complete or not there. Started again, both resume; replies "
        "are kept, nothing is asked twice. Exit code: 0; 1 if a file could not be scored or too "
        "much is unscored; 2 for a usage error.",
        example="lmms-eval-captions score captions.jsonl --tasks vdc_score --judge gpt-4.1-mini "
        "-o results/mine\nlmms-eval-captions score --in clips.parquet --out scored --protocol "
        "vllm_judge --keep 0.8",
    )
    add = command.add_argument
    add("captions", nargs="*", metavar="FILES", help="with --tasks: files of captions")
    add("--tasks", metavar="TASKS", help="tasks and groups, comma-separated, such as vdc_score")
    add(
        "-o", "--output", type=Path, metavar="DIR",
        help="with --tasks: folder of the results",
    )  # fmt: skip
    add(
        "--missing", choices=("error", "skip", "drop"), default="error",
        help="with --tasks: stop if a caption is missing, leave its questions unscored, or leave "
        "the caption out (default: error)",
    )  # fmt: skip
    add(
        "--in", dest="inputs", nargs="+", action="extend", default=[], metavar="FILES",
        help="Parquet files, folders of them or patterns; may be given several times",
    )  # fmt: skip
    add("--out", type=Path, metavar="DIR", help="folder of the scores, lists and summary")
    add(
        "--protocol", metavar="NAME",
        help="what is asked about each caption: custom questions by one of the benchmarks' "
        "protocols, or gveval_ref_free, vllm_judge (the video), gveval_ref_only (a reference "
        "caption), gveval_combined (both); a wrong name lists them all",
    )  # fmt: skip
    add(
        "--column", action="append", default=[], type=_renamed, metavar="OURS=YOURS",
        help=f"name of a column in the files, of {', '.join(_COLUMNS)}",
    )  # fmt: skip
    add(
        "--videos", type=Path, metavar="DIR",
        help="folder in which the videos lie that rows name (default: the current one)",
    )  # fmt: skip
    add(
        "--captioner", metavar="NAME",
        help="writes missing captions, of the column video: caption_hf, caption_openai or another "
        "of ours, or a custom class as package.module:Class",
    )  # fmt: skip
    add("--captioner-args", default="", metavar="ARGS", help="as --model_args of lmms-eval")
    add("--prompt", metavar="TEXT", help="question to the captioner (default: the protocol's)")
    add(
        "--keep", type=_share, metavar="SHARE",
        help="write the best clips, such as 0.8 or 80 percent of them, with how many of these "
        "would not be among the best by their true scores",
    )  # fmt: skip
    add(
        "--worst", type=_share, default=0.05, metavar="SHARE",
        help="share of the clips in the list of the worst (default: 0.05)",
    )  # fmt: skip
    add(
        "--engine", choices=("local", "ray"), default="local",
        help="ray: on the machines of a Ray cluster (pip install 'lmms-eval-captions[ray]'; "
        "default: local)",
    )  # fmt: skip
    add(
        "--address", metavar="ADDRESS",
        help="of a Ray cluster, or auto (default: Ray is started on this machine)",
    )  # fmt: skip
    add(
        "--actors", type=positive, metavar="N",
        help="scorers on Ray, each with a captioner if there is one (default: one per node)",
    )  # fmt: skip
    add(
        "--gpus", type=float, default=0.0, metavar="N",
        help="GPUs of each actor on Ray, for its captioner (default: 0)",
    )  # fmt: skip


def _score(arguments: argparse.Namespace) -> int:
    try:
        return _score_tasks(arguments) if arguments.tasks else _score_files(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nstopped: files that are scored stay, and replies of the others are kept; the same "
            "command resumes\n"
        )
        return _INTERRUPTED


def _score_tasks(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.scorer.caption_run import score_tasks

    if not arguments.captions or arguments.output is None:
        raise SettingsError("--tasks: expected FILES of captions and -o DIR for the results")
    if arguments.inputs or arguments.out or arguments.protocol:
        raise SettingsError("--tasks: expected no --in, --out or --protocol, which score any clips")
    columns = dict(arguments.column)
    if unused := columns.keys() - {"caption", "video"}:
        raise SettingsError(f"--column: with --tasks, expected caption or video, got {min(unused)}")
    output = arguments.output.expanduser()
    return score_tasks(
        arguments.captions, arguments.tasks, output, columns=columns, missing=arguments.missing
    )


def _score_files(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.scorer.command import score
    from lmms_eval_captions.scorer.table import ScoreSpec

    if not (arguments.inputs and arguments.out and arguments.protocol):
        raise SettingsError(
            "score: expected FILES --tasks TASKS -o DIR for captions of a benchmark, or --in FILES "
            "--out DIR --protocol NAME for those of any clips"
        )
    if arguments.captions or arguments.output:
        raise SettingsError("--protocol: expected --in FILES and --out DIR, got FILES or -o alone")
    cluster, captioner = _cluster(arguments), None
    if arguments.captioner is None:
        if arguments.gpus:
            raise SettingsError("--captioner: expected one for --gpus, got none")
        if arguments.captioner_args or arguments.prompt:
            raise SettingsError("--captioner: expected one for --captioner-args or --prompt")
    else:
        captioner = (arguments.captioner, arguments.captioner_args, arguments.prompt)
    spec = ScoreSpec.of_environment(
        arguments.protocol,
        videos=arguments.videos,
        names=dict(arguments.column),
        captioner=captioner,
    )
    folder, worst, keep = arguments.out.expanduser(), arguments.worst, arguments.keep
    return score(spec, arguments.inputs, folder, worst=worst, keep=keep, cluster=cluster)


def _cluster(arguments: argparse.Namespace) -> Cluster | None:
    if arguments.engine == "local":
        if arguments.address or arguments.actors:
            raise SettingsError("--engine: expected ray with --address or --actors, got local")
        return None
    from lmms_eval_captions.scorer.on_ray import Cluster

    return Cluster(
        address=arguments.address,
        n_actors=arguments.actors,
        n_gpus=arguments.gpus,
    )


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
            f"expected a share up to 1, such as 0.8, or percent, such as 80, got {text!r}"
        )
    return value
