"""Commands ``label`` and ``labels``."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from lmms_eval_captions.analysis.captioners import captioners_of
from lmms_eval_captions.analysis.label.built import built_page, built_report, questions_to_check
from lmms_eval_captions.analysis.label.labels import read_labels
from lmms_eval_captions.analysis.label.page import Page, PageOptions, render
from lmms_eval_captions.analysis.label.report import Report, choices_report, verdicts_report
from lmms_eval_captions.analysis.label.results_pages import side_by_side_page, verdict_page
from lmms_eval_captions.cli.options import save, split_names, write_report
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import read_data_settings


def label(arguments: Namespace) -> int:
    """Write the page."""
    is_build = arguments.build is not None
    if is_build == bool(arguments.folders):
        got = "both" if is_build else "neither"
        raise SettingsError(
            f"label: expected either folders of results or --build DATA/KIND, got {got}"
        )
    for name in ("pairs", "tasks") if is_build else ("limit", "videos"):
        if getattr(arguments, name):
            other = "a page of results" if is_build else "--build"
            raise SettingsError(f"label --{name}: this goes with {other}; leave it out")
    title, page, next_step = (_built if is_build else _graded)(arguments)
    text = render(f"lmms-eval-captions: {title}", page.data)
    output = arguments.output or Path("label.html")
    save(text, output)
    n_items = len(page.data["items"])  # type: ignore[arg-type] # a list
    size = f"{n_items} to label ({len(text) / 1e6:.1f} MB)"
    for note in (*page.notes, f"{output}: {size}. Open it in a browser; then {next_step}"):
        print(note)
    return 0


def _graded(arguments: Namespace) -> tuple[str, Page, str]:
    """Return the title of a page of results, the page, and the next command."""
    captioners = captioners_of(arguments.folders)
    make = side_by_side_page if arguments.pairs else verdict_page
    options = _options(arguments, n=arguments.n, n_frames=4, reveal=arguments.reveal)
    page = make(captioners, options, read_data_settings())
    title = "captions side by side" if arguments.pairs else "captions and the judge's questions"
    against = "" if arguments.pairs else " --against " + " ".join(map(str, arguments.folders))
    return title, page, f"lmms-eval-captions labels EXPORTED.jsonl{against}"


def _built(arguments: Namespace) -> tuple[str, Page, str]:
    """Return the same for a page of built questions."""
    questions = questions_to_check(arguments.build, arguments.videos)
    n = arguments.limit or len(questions.rows)
    page = built_page(questions, _options(arguments, n=n, n_frames=8, reveal="never"))
    next_step = (
        f"lmms-eval-captions labels EXPORTED.jsonl --build {arguments.build} shows how far people "
        f"agree, and lmms-eval-captions build {questions.kind} ... --labels EXPORTED.jsonl keeps "
        "the questions that most of them found right"
    )
    return f"{questions.kind}: are these questions good?", page, next_step


def _options(arguments: Namespace, *, n: int, n_frames: int, reveal: str) -> PageOptions:
    return PageOptions(
        n=n,
        tasks=split_names(arguments.tasks),
        seed=arguments.seed,
        n_frames=n_frames if arguments.frames is None else arguments.frames,
        reveal=reveal,
    )


def labels(arguments: Namespace) -> int:
    """Report what people answered."""
    if arguments.build is None:
        reports = _reports_of_results(arguments)
    elif arguments.against:
        raise SettingsError("labels: expected --build or --against, got both; leave one out")
    else:
        questions = questions_to_check(arguments.build)
        reports = [built_report(arguments.files, questions, fewest=arguments.annotators)]
    document = {key: value for _, of in reports for key, value in of.items()}
    write_report([part for part, _ in reports], document, arguments)
    return 0


def _reports_of_results(arguments: Namespace) -> list[Report]:
    answers = read_labels(arguments.files)
    reports = []
    if len(answers.verdicts):
        if not arguments.against:
            raise SettingsError(
                "labels: expected --against with the results folder that the page was made of"
            )
        reports.append(verdicts_report(answers.verdicts, captioners_of(arguments.against)))
    if len(answers.choices):
        reports.append(choices_report(answers.choices, seed=arguments.seed))
    for note in answers.notes:
        print(f"note: {note}", file=sys.stderr)
    return reports
