"""The commands ``label`` and ``labels``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import (
    add_command,
    add_output,
    positive,
    split_names,
    write_output,
)

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.analysis.label.page import Page, PageOptions
    from lmms_eval_captions.analysis.label.report import Report


def add_label(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``label`` to the parser."""
    command = add_command(
        commands,
        "label",
        _label,
        help="a page on which people grade what the judge graded, or choose between captions",
        description="Writes one HTML file that works offline: a person answers questions by "
        "keyboard or mouse and exports JSONL, which lmms-eval-captions labels reads. Needs results "
        "with --log_samples, or with --build the folder of a benchmark built from your own clips, "
        "whose questions are checked.",
        example="lmms-eval-captions label results/mine --n 200 -o label.html",
    )
    command.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="FOLDER",
        help="folders given to lmms-eval as --output_path, or results files",
    )
    command.add_argument(
        "--build",
        type=Path,
        metavar="DATA/KIND",
        help="ask if the questions that lmms-eval-captions build wrote are good, before some are "
        "selected: once for each criterion",
    )
    command.add_argument(
        "--videos",
        type=Path,
        metavar="DIR",
        help="with --build: folder of the clips (default: the one that a complete build links)",
    )
    command.add_argument(
        "--limit",
        type=positive,
        metavar="N",
        help="with --build: ask about N questions, drawn at random (default: all)",
    )
    command.add_argument(
        "--pairs",
        action="store_true",
        help="ask which of two captioners' captions of a video is better, without their names",
    )
    command.add_argument(
        "--n", type=positive, default=200, help="how many are asked (default: 200)"
    )
    command.add_argument(
        "--tasks", metavar="NAMES", help="tasks, separated by commas (default: all)"
    )
    command.add_argument(
        "--by",
        metavar="NAMES",
        help="stratify: draw equally many of each captioner, task, verdict of the judge or group "
        "of a section of the breakdown, such as dimensions (default: at random from all)",
    )
    command.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    command.add_argument(
        "--frames",
        type=int,
        metavar="N",
        help="frames of each video, 0 for none (default: 4; with --build 8)",
    )
    command.add_argument(
        "--reveal",
        choices=("after", "demand", "never"),
        default="after",
        help="when the judge's verdict is shown: after the answer, then on demand, never "
        "(default: after)",
    )
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("label.html"),
        metavar="FILE",
        help="(default: label.html)",
    )


def _label(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.label.page import render
    from lmms_eval_captions.judges.errors import SettingsError
    from lmms_eval_captions.judges.files import write_atomically

    _check_source(arguments)
    title, page, next_step = (_graded if arguments.build is None else _built)(arguments)
    text = render(f"lmms-eval-captions: {title}", page.data)
    try:
        write_atomically(arguments.output, text.encode("utf-8"))
    except OSError as error:
        raise SettingsError(f"--output {arguments.output}: {error}") from error
    n_items = len(page.data["items"])  # type: ignore[arg-type] # a list
    size = f"{n_items} to label ({len(text) / 1e6:.1f} MB)"
    notes = (
        *page.notes,
        f"{arguments.output}: {size}. Open it in a browser; then {next_step}",
    )
    print("\n".join(notes))
    return 0


def _check_source(arguments: argparse.Namespace) -> None:
    from lmms_eval_captions.judges.errors import SettingsError

    is_build = arguments.build is not None
    if is_build == bool(arguments.folders):
        got = "both" if is_build else "neither"
        raise SettingsError(
            f"label: expected either folders of results or --build DATA/KIND, got {got}"
        )
    for name in ("pairs", "tasks", "by") if is_build else ("limit", "videos"):
        if getattr(arguments, name):
            other = "a page of results" if is_build else "--build"
            raise SettingsError(f"label --{name}: this goes with {other}; leave it out")


def _graded(arguments: argparse.Namespace) -> tuple[str, Page, str]:
    """Return the title of a page of results, the page, and the next command."""
    from lmms_eval_captions.analysis.captioners import captioners_of
    from lmms_eval_captions.analysis.label.results_pages import side_by_side_page, verdict_page
    from lmms_eval_captions.judges.settings import read_data_settings

    captioners = captioners_of(arguments.folders)
    make = side_by_side_page if arguments.pairs else verdict_page
    options = _options(arguments, n=arguments.n, n_frames=4, reveal=arguments.reveal)
    page = make(captioners, options, read_data_settings())
    title = "captions side by side" if arguments.pairs else "captions and the judge's questions"
    folders = " ".join(map(str, arguments.folders))
    return title, page, f"lmms-eval-captions labels EXPORTED.jsonl --against {folders}"


def _built(arguments: argparse.Namespace) -> tuple[str, Page, str]:
    """Return the same for a page of built questions."""
    from lmms_eval_captions.analysis.label.built import built_page, questions_to_check

    questions = questions_to_check(arguments.build, arguments.videos)
    n = arguments.limit or len(questions.rows)
    page = built_page(questions, _options(arguments, n=n, n_frames=8, reveal="never"))
    next_step = (
        f"lmms-eval-captions labels EXPORTED.jsonl --build {arguments.build} shows how far people "
        f"agree, and lmms-eval-captions build {questions.kind} ... --labels EXPORTED.jsonl keeps "
        "the questions that most of them found right"
    )
    return f"{questions.kind}: are these questions good?", page, next_step


def _options(arguments: argparse.Namespace, *, n: int, n_frames: int, reveal: str) -> PageOptions:
    from lmms_eval_captions.analysis.label.page import PageOptions

    return PageOptions(
        n=n,
        tasks=tuple(split_names(arguments.tasks)) or None,
        by=tuple(split_names(arguments.by)),
        seed=arguments.seed,
        n_frames=n_frames if arguments.frames is None else max(arguments.frames, 0),
        reveal=reveal,
    )


def add_labels(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``labels`` to the parser."""
    command = add_command(
        commands,
        "labels",
        _labels,
        help="agreement of people and judge, scores corrected by labels, Elo of captioners",
        description="Reads what pages of lmms-eval-captions label exported. Graded questions: "
        "agreement among annotators and with the judge, both scores next to each other, and the "
        "score corrected by the labels, with intervals over videos. Captions side by side: Elo, "
        "Bradley-Terry and their correlation with metrics.",
        example="lmms-eval-captions labels labels-*.jsonl --against results/mine",
    )
    command.add_argument("files", nargs="+", type=Path, metavar="FILE", help="exported JSONL files")
    command.add_argument(
        "--against",
        nargs="+",
        type=Path,
        default=[],
        metavar="FOLDER",
        help="results that the page was made of; for captions side by side they are needed for "
        "correlations only",
    )
    command.add_argument(
        "--build",
        type=Path,
        metavar="DATA/KIND",
        help="folder of the benchmark whose questions were checked: agreement by criterion, and "
        "how many questions are kept",
    )
    command.add_argument(
        "--annotators",
        type=positive,
        default=1,
        metavar="N",
        help="with --build: fewest people that a question needs (default: 1)",
    )
    command.add_argument(
        "--seed", type=int, default=0, help="seed of Elo's order of matches (default: 0)"
    )
    command.add_argument(
        "--format",
        choices=["text", "markdown", "latex", "json"],
        default="text",
        help="(default: text); json has all digits",
    )
    add_output(command)


def _labels(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.analysis.tables import as_json, render

    paths = [path.expanduser() for path in arguments.files]
    if arguments.build is None:
        reports = _reports_of_results(paths, arguments)
    else:
        reports = [_report_of_build(paths, arguments)]
    if arguments.format == "json":
        text = as_json({key: value for of in reports for key, value in of.document.items()})
    else:
        text = render([of.part for of in reports], arguments.format)
    write_output(text, arguments.output)
    return 0


def _reports_of_results(paths: list[Path], arguments: argparse.Namespace) -> list[Report]:
    from lmms_eval_captions.analysis.captioners import captioners_of
    from lmms_eval_captions.analysis.label.labels import read_labels
    from lmms_eval_captions.analysis.label.report import choices_report, verdicts_report
    from lmms_eval_captions.judges.errors import SettingsError

    labels = read_labels(paths)
    captioners = captioners_of(arguments.against) if arguments.against else []
    if len(labels.verdicts) and not captioners:
        raise SettingsError(
            "labels: expected --against with the results folder that the page was made of"
        )
    reports = []
    if len(labels.verdicts):
        reports.append(verdicts_report(labels.verdicts, captioners))
    if len(labels.choices):
        reports.append(choices_report(labels.choices, captioners, seed=arguments.seed))
    for note in labels.notes:
        print(f"note: {note}", file=sys.stderr)
    return reports


def _report_of_build(paths: list[Path], arguments: argparse.Namespace) -> Report:
    from lmms_eval_captions.analysis.label.built import built_report, questions_to_check
    from lmms_eval_captions.judges.errors import SettingsError

    if arguments.against:
        raise SettingsError("labels: expected --build or --against, got both; leave one out")
    questions = questions_to_check(arguments.build)
    return built_report(paths, questions, fewest=arguments.annotators)
