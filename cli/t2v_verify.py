"""The command ``t2v-verify``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import add_command, write_output

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_t2v_verify(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "t2v-verify",
        _t2v_verify,
        help="compare videos that were generated from captions with their originals",
        description="VidCapBench's training-free verification: similarity of videos that a "
        "text-to-video model made from captions to the captioned videos (PSNR, SSIM, CLIP), "
        "ratings by people or a judge from 1 to 5, and Pearson's correlation with caption scores "
        "over captioners. Runs no generator. Exit code: 1 if nothing could be compared or rated.",
        example="lmms-eval-captions t2v-verify --generated made --original videos "
        "--scores results/*",
    )
    for option, text in (
        ("--generated", "one folder per captioner, with VIDEO.mp4 or GENERATOR/VIDEO.mp4 in it"),
        ("--original", "the captioned videos, with the same names"),
    ):
        command.add_argument(option, type=Path, required=True, metavar="DIR", help=text)
    command.add_argument(
        "--frames", type=int, default=8, metavar="N", help="evenly spaced frames (default: 8)"
    )
    command.add_argument(
        "--clip",
        metavar="CHECKPOINT",
        help="CLIP checkpoint of transformers on this machine: similarity of its embeddings",
    )
    command.add_argument(
        "--captions",
        type=Path,
        metavar="FILE",
        help=".jsonl or .csv with captioner, video and caption: similarity of videos with their "
        "captions, by --clip",
    )
    command.add_argument(
        "--ratings",
        type=Path,
        metavar="FILE",
        help=".csv or .jsonl of people's ratings: captioner, video, rater, VA, SC, AR, LC, and "
        "generator if there are several",
    )
    command.add_argument(
        "--judge",
        action="store_true",
        help="have the judge of LMMS_CAPTIONS_JUDGE, which must see pictures, rate the videos",
    )
    command.add_argument(
        "--scores",
        type=Path,
        nargs="+",
        default=[],
        metavar="PATH",
        help="caption scores to correlate with: a .csv or .jsonl file with captioner and columns "
        "of numbers, or results folders named like the captioners",
    )
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write everything, by video, as JSON"
    )


def _t2v_verify(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.t2v_verify.report import part_of
    from lmms_eval_captions.analysis.t2v_verify.verify import Options, verify
    from lmms_eval_captions.analysis.tables import as_json, render
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.lmms_eval_tasks.session import SESSION

    if not 1 <= arguments.frames <= 1000:
        raise SettingsError(f"--frames: expected 1 to 1000, got {arguments.frames}")
    options = Options(
        generated=arguments.generated.expanduser(),
        original=arguments.original.expanduser(),
        n_frames=arguments.frames,
        clip=arguments.clip,
        captions=arguments.captions,
        ratings=arguments.ratings,
        asks_judge=arguments.judge,
        scores=tuple(path.expanduser() for path in arguments.scores),
    )
    try:
        found = verify(options, log=lambda line: print(line, file=sys.stderr, flush=True))
    finally:
        SESSION.close()
    sys.stdout.write(render([part_of(found)]))
    if arguments.output is not None:
        write_output(as_json(found), arguments.output)
    return 0 if any(video["values"] for video in found["videos"]) else 1
