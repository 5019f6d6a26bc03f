"""Commands that read finished runs: ``compare``, ``report``, ``agree`` and ``stability``."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

import lmms_eval_captions.analysis.agree.agreement as agreement
import lmms_eval_captions.analysis.agree.report as agree_report
import lmms_eval_captions.analysis.compare.paper as papers
import lmms_eval_captions.analysis.compare.report as compare_report
import lmms_eval_captions.analysis.report.report as reports
import lmms_eval_captions.analysis.stability.report as stability_report
from lmms_eval_captions.analysis.captioners import Captioner, captioners_of, names_to_show
from lmms_eval_captions.analysis.compare.comparison import Comparer, compare_all
from lmms_eval_captions.analysis.compare.gate import Gate, decide, exit_code
from lmms_eval_captions.analysis.stability import stability as stabilities
from lmms_eval_captions.analysis.stability.split import split_all
from lmms_eval_captions.analysis.tables import Part
from lmms_eval_captions.cli.options import save, split_names, write_report
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import SAMPLE, read_data_settings


def compare(arguments: Namespace) -> int:
    """Compare captioners, or fill the table of a paper."""
    gates = [Gate.parse(text) for text in arguments.gate]
    captioners = captioners_of(arguments.folders)
    names = split_names(arguments.tasks)
    if not arguments.paper and len(captioners) > 1:
        return _comparison(captioners, names, gates, arguments)
    for option, is_set in (("--gate", gates), ("--group", arguments.group)):
        if is_set:
            raise SettingsError(
                f"{option}: expected results of two captioners and no --paper, got "
                f"{len(captioners)}"
            )
    options = papers.Options(
        arguments.intervals, arguments.mean, arguments.published, arguments.force
    )
    filled = papers.fill_tables(captioners, names)
    # Scores by the offline stand-in are refused in every format.
    parts = [papers.part_of(one, captioners, options) for one in filled]
    numbers = papers.documents(filled)
    write_report(parts, numbers.to_dict("records"), arguments, numbers)
    return 0


def _comparison(
    captioners: Sequence[Captioner],
    names: Sequence[str],
    gates: Sequence[Gate],
    arguments: Namespace,
) -> int:
    shown = names_to_show(captioners, names)
    comparer = Comparer(captioners, arguments.across_judges)
    compared, left_out = compare_all(comparer, shown, arguments.group, is_wanted=bool(names))
    of_names = [one.name for one in compared]
    decided = [decision for gate in gates for decision in decide(comparer, gate, of_names)]
    words = [str(one["words"]) for one in decided]
    parts = list(map(compare_report.part_of, compared))
    if len(compared) + len(left_out) > 1:
        parts.insert(0, compare_report.overview(compared, comparer.names, left_out))
    if decided:
        parts.append(Part("Gates", words))
    if arguments.format == "csv":
        sys.stderr.writelines(f"{of}\n" for of in words)
    document = compare_report.document(compared, left_out, decided, captioners)
    rows = pd.DataFrame([row for one in document["compared"] for row in one["rows"]])
    write_report(parts, document, arguments, rows)
    return exit_code(decided)


def report(arguments: Namespace) -> int:
    """Write the page of a run or several."""
    settings = read_data_settings()
    if arguments.videos is not None:
        settings = replace(settings, data=str(arguments.videos))
        if settings.data != SAMPLE and not arguments.videos.is_dir():
            raise SettingsError(f"--videos {settings.data}: no such folder")
    page = reports.make_report(
        arguments.folders,
        settings,
        tasks=split_names(arguments.tasks),
        n_frames=arguments.frames,
        n_framed=arguments.framed,
    )
    output = arguments.output or Path("report.html")
    save(page.html, output)
    for note in page.notes:
        print(note)
    print(f"{output} ({len(page.html) / 1e6:.1f} MB): open it in a browser")
    return 1 if page.is_empty else 0


def agree(arguments: Namespace) -> int:
    """Compare judges of the same captions."""
    several = agreement.agree(arguments.folders, tasks=arguments.tasks)
    parts = [part for found in several for part in agree_report.parts_of(found)]
    write_report(parts, agree_report.documents(several), arguments)
    return 0


def stability(arguments: Namespace) -> int:
    """Measure how often the judge repeats its verdicts, and split the questions by it."""
    several = stabilities.stability(arguments.folders, split_names(arguments.tasks))
    splits = []
    if arguments.split is not None:
        only = tuple(arguments.only)
        splits = split_all(several, read_data_settings(), arguments.split, only=only)
    documents = [stabilities.document_of(repeated) for repeated in several]
    parts = list(map(stability_report.part_of, documents))
    parts += map(stability_report.part_of_split, splits)
    write_report(parts, {"stability": documents, "splits": splits}, arguments)
    return 0
