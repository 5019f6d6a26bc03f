"""The kind ``clips`` of the subcommand ``build``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_clips_command(kinds: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``clips`` to the kinds of ``build``."""
    command = kinds.add_parser(
        "clips",
        help="long videos cut at scene changes into clips of 3 to 15 seconds that move",
        description="Cuts videos at scene changes (PySceneDetect) into clips of 3 to 15 seconds, "
        "as VidCapBench does, leaves still images out (optical flow), and chooses clips so that "
        "short and long ones are equally many. Writes clips without sound, and clips.jsonl with "
        "what became of every part. A run that was ended goes on where it was. Exit code 1 where "
        "no clip came of it. Needs the extra: pip install 'lmms-eval-captions[scenes]'.",
    )
    command.add_argument(
        "source", type=Path, metavar="SOURCE", help="folder of videos, or one video"
    )
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the clips"
    )
    command.add_argument(
        "--min-s", type=float, default=3.0, metavar="S", help="shortest clip in seconds (3)"
    )
    command.add_argument(
        "--max-s", type=float, default=15.0, metavar="S", help="longest clip in seconds (15)"
    )
    command.add_argument(
        "--n", type=int, metavar="N", help="clips, balanced by length; all without"
    )
    command.add_argument(
        "--still-below",
        type=float,
        metavar="PIXELS",
        help="motion below which a part is a still image, in pixels a quarter of a second at a "
        "longer side of 160 (0.15); 0 keeps still images",
    )
    command.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of which clips are chosen (0)"
    )
    command.add_argument(
        "--limit", type=int, metavar="N", help="look at the first N videos alone, to try it"
    )
    command.set_defaults(run=_clips)


def _clips(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.analysis import (
        require_scenedetect,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.clips import (
        STILL_BELOW,
        Options,
        build_clips,
    )
    from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.parts_file import Lengths
    from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.report import report

    for option, lowest in (("n", 1), ("limit", 1), ("seed", 0)):
        value = getattr(arguments, option)
        if value is not None and value < lowest:
            raise SettingsError(f"--{option}: expected at least {lowest}, got {value}")
    still_below = STILL_BELOW if arguments.still_below is None else arguments.still_below
    if not 0 <= still_below < float("inf"):
        raise SettingsError(f"--still-below: expected pixels of at least 0, got {still_below}")
    options = Options(
        lengths=Lengths(arguments.min_s, arguments.max_s),
        still_below=still_below,
        n=arguments.n,
        seed=arguments.seed,
        limit=arguments.limit,
    )
    require_scenedetect()
    output = arguments.output.expanduser()
    outcome = build_clips(
        arguments.source.expanduser(),
        output,
        options,
        tell=lambda line: print(line, file=sys.stderr, flush=True),
    )
    sys.stdout.write(report(outcome, options, output))
    return 0 if any(row.is_kept for row in outcome.rows) else 1
