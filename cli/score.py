"""The command ``score``: captions of a benchmark, or of any number of clips in Parquet files."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Final

from lmms_eval_captions.judges.errors import SettingsError

_INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as in shells."""


def score(arguments: Namespace) -> int:
    """Score captions of a benchmark, or of clips in Parquet files."""
    try:
        return _score_tasks(arguments) if arguments.tasks else _score_files(arguments)
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nstopped: files that are scored stay, and replies of the others are kept; the same "
            "command resumes\n"
        )
        return _INTERRUPTED


def _score_tasks(arguments: Namespace) -> int:
    # Neither way needs what the other one imports: lmms-eval's tasks, pyarrow and Ray.
    from lmms_eval_captions.scorer.caption_run import score_tasks

    if not arguments.files or arguments.output is None:
        raise SettingsError("--tasks: expected FILES of captions and -o DIR for the results")
    if vars(arguments)["in"] or arguments.out or arguments.protocol:
        raise SettingsError("--tasks: expected no --in, --out or --protocol, which score any clips")
    columns = dict(arguments.column)
    if unused := columns.keys() - {"caption", "video"}:
        raise SettingsError(f"--column: with --tasks, expected caption or video, got {min(unused)}")
    return score_tasks(
        arguments.files,
        arguments.tasks,
        arguments.output,
        columns=columns,
        missing=arguments.missing,
    )


def _score_files(arguments: Namespace) -> int:
    from lmms_eval_captions.scorer.command import score as score_parquet
    from lmms_eval_captions.scorer.on_ray import Cluster
    from lmms_eval_captions.scorer.table import ScoreSpec

    inputs = vars(arguments)["in"]
    if not (inputs and arguments.out and arguments.protocol):
        raise SettingsError(
            "score: expected FILES --tasks TASKS -o DIR for captions of a benchmark, or --in FILES "
            "--out DIR --protocol NAME for those of any clips"
        )
    if arguments.files or arguments.output:
        raise SettingsError("--protocol: expected --in FILES and --out DIR, got FILES or -o alone")
    is_local = arguments.engine == "local"
    if is_local and (arguments.address or arguments.actors):
        raise SettingsError("--engine: expected ray with --address or --actors, got local")
    captioner = arguments.captioner
    if captioner is None and arguments.gpus:
        raise SettingsError("--captioner: expected one for --gpus, got none")
    if captioner is None and (arguments.captioner_args or arguments.prompt):
        raise SettingsError("--captioner: expected one for --captioner-args or --prompt")
    spec = ScoreSpec.of_environment(
        arguments.protocol,
        videos=arguments.videos,
        names=dict(arguments.column),
        captioner=captioner and (captioner, arguments.captioner_args or "", arguments.prompt),
    )
    cluster = Cluster(
        address=arguments.address,
        n_actors=arguments.actors,
        n_gpus=arguments.gpus,
    )
    return score_parquet(
        spec,
        inputs,
        arguments.out,
        worst=arguments.worst,
        keep=arguments.keep,
        cluster=None if is_local else cluster,
    )
