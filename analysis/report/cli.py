"""The subcommand ``report`` of ``lmms-eval-captions``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.lmms_eval_tasks.commands.name_list import split_names

if TYPE_CHECKING:
    from argparse import _SubParsersAction


def add_report(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``report`` to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "report",
        help="one HTML file to look at runs with: scores, videos, verdicts and replies",
        description="Writes one HTML file that works without a network and can be passed around: "
        "scores with their intervals, what is missed, every video with its caption, questions, "
        "verdicts and the judge's replies; several folders side by side. Needs --log_samples for "
        "captions and replies.",
    )
    command.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER",
        help="folders given to lmms-eval as --output_path, or results files; the others are "
        "compared with the first",
    )  # fmt: skip
    command.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE",
        help="(report.html)",
    )  # fmt: skip
    command.add_argument("--tasks", metavar="NAMES", help="tasks, separated by commas; all without")
    command.add_argument(
        "--videos",
        metavar="DATA",
        help="folder with the videos, as LMMS_CAPTIONS_DATA has it (which is the default)",
    )
    command.add_argument(
        "--frames", type=_whole, default=4, metavar="N", help="frames of each video, 0 for none (4)"
    )
    command.add_argument(
        "--framed", type=_whole, default=50, metavar="N",
        help="videos that have frames, the ones that score worst first (50)",
    )  # fmt: skip
    command.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.report.report import Options, make_report
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.judges.files import write_atomically
    from lmms_eval_captions.judges.settings import SAMPLE, read_data_settings

    options = Options(
        tasks=tuple(split_names(arguments.tasks)),
        n_frames=arguments.frames,
        n_framed=arguments.framed,
    )
    if not arguments.output.name or arguments.output.is_dir():
        raise SettingsError(f"--output {arguments.output}: expected the name of a file")
    settings = read_data_settings()
    if arguments.videos is not None:
        if arguments.videos != SAMPLE and not Path(arguments.videos).expanduser().is_dir():
            raise SettingsError(f"--videos {arguments.videos}: there is no such folder")
        settings = replace(settings, data=str(Path(arguments.videos).expanduser()))
    report = make_report(arguments.folders, options, settings)
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
