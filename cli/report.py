"""The command ``report``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import add_command, add_tasks, split_names

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_report(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    command = add_command(
        commands,
        "report",
        _report,
        help="one HTML file: scores, comparison, groups, videos with verdicts and replies",
        description="Writes one HTML file that works without a network and can be passed around: "
        "scores with their intervals, the comparison of captioners, groups of questions, and every "
        "video with its caption, questions, verdicts and the judge's replies. Needs --log_samples "
        "for captions and replies.",
        example="lmms-eval-captions report results/* -o report.html",
    )
    command.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="results folders or results files"
    )
    command.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE",
        help="(default: report.html)",
    )  # fmt: skip
    add_tasks(command)
    command.add_argument(
        "--videos",
        metavar="DATA",
        help="folder with the videos (default: LMMS_CAPTIONS_DATA)",
    )
    command.add_argument(
        "--frames", type=_whole, default=4, metavar="N",
        help="frames of each video, 0 for none (default: 4)",
    )  # fmt: skip
    command.add_argument(
        "--framed", type=_whole, default=50, metavar="N",
        help="videos with frames, those that score worst (default: 50)",
    )  # fmt: skip


def _report(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.report.report import make_report
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.judges.files import write_atomically
    from lmms_eval_captions.judges.settings import SAMPLE, read_data_settings

    if not arguments.output.name or arguments.output.is_dir():
        raise SettingsError(f"--output {arguments.output}: expected the name of a file")
    settings = read_data_settings()
    if arguments.videos is not None:
        if arguments.videos != SAMPLE and not Path(arguments.videos).expanduser().is_dir():
            raise SettingsError(f"--videos {arguments.videos}: no such folder")
        settings = replace(settings, data=str(Path(arguments.videos).expanduser()))
    report = make_report(
        arguments.folders,
        settings,
        tasks=split_names(arguments.tasks),
        n_frames=arguments.frames,
        n_framed=arguments.framed,
    )
    try:
        write_atomically(arguments.output, report.html.encode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(f"--output {arguments.output}: {error}") from error
    for note in report.notes:
        print(note)
    print(f"{arguments.output} ({len(report.html) / 1e6:.1f} MB): open it in a browser")
    return 1 if report.is_empty else 0


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, 0 or more, got {text!r:.80}")
    return int(text)
