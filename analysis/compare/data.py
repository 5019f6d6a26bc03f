"""What ``compare`` found, for programs: JSON, and CSV with a line for each number."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Final

from lmms_eval_captions.analysis.compare.comparison import Compared
from lmms_eval_captions.analysis.compare.gate import Decided, exit_code
from lmms_eval_captions.analysis.compare.lead import Lead
from lmms_eval_captions.analysis.compare.report import gate_sentence, summaries
from lmms_eval_captions.analysis.compare.rows import Row
from lmms_eval_captions.analysis.verdicts.captioners import Captioner

Document = dict[str, Any]

_COLUMNS: Final = (
    "task", "section", "group", "metric", "higher_is_better", "captioner", "value", "low", "high",
    "n_videos", "note", "baseline", "difference", "difference_low", "difference_high", "p",
    "p_holm", "outcome", "difference_note",
)  # fmt: skip


def as_json(
    compared: Sequence[Compared],
    left_out: Sequence[str],
    decided: Sequence[Decided],
    captioners: Sequence[Captioner],
) -> str:
    """Everything that was found, without ``NaN``: that is ``null``."""
    names = [captioner.name for captioner in captioners]
    document: Document = {
        "baseline": names[0],
        "captioners": [
            {"name": captioner.name, "results": str(captioner.run.path)} for captioner in captioners
        ],
        "compared": [_document(one, names) for one in compared],
        "left_out": list(left_out),
        "gates": [_gate(one, names) for one in decided],
    }
    if decided:
        document["exit_code"] = exit_code(decided)
    return json.dumps(_plain(document), indent=1, ensure_ascii=False) + "\n"


def as_csv(compared: Sequence[Compared], captioners: Sequence[Captioner]) -> str:
    """A line for each captioner of each row: its value, and its difference to the first."""
    names = [captioner.name for captioner in captioners]
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in compared:
        for row in _all_rows(one):
            writer.writerows(_plain(line) for line in _lines(one, row, names))
    return text.getvalue()


def _document(one: Compared, names: Sequence[str]) -> Document:
    return {
        "task": one.name,
        "benchmark": one.benchmark.name,
        "headline": one.benchmark.headline,
        "summary": summaries(one, names),
        "judge": one.judge,
        "warnings": list(one.warnings),
        "counts": asdict(one.counts),
        "rows": [line for row in _all_rows(one) for line in _lines(one, row, names)],
        "pairs": [
            {"captioner": names[pair.other], "baseline": names[0], **asdict(pair)}
            for pair in one.pairs
        ],
        "lead": None if one.lead is None else _lead(one.lead, names),
        "lengths": [
            {"captioner": name, **asdict(length)}
            for name, length in zip(names, one.lengths, strict=True)
        ],
    }


def _lead(lead: Lead, names: Sequence[str]) -> Document:
    return {
        "captioner": names[lead.first],
        "is_real": all(ahead.is_real for ahead in lead.over),
        "over": [{"captioner": names[ahead.other], **asdict(ahead)} for ahead in lead.over],
    }


def _gate(one: Decided, names: Sequence[str]) -> Document:
    return {
        "gate": one.gate.text,
        "task": one.name,
        "captioner": names[one.other],
        "baseline": names[0],
        "decision": one.decision,
        "difference": one.difference.difference,
        "low": one.difference.low,
        "high": one.difference.high,
        "n_videos": one.difference.n_videos,
        "n_videos_to_settle": one.n_videos,
        "left_out": one.left_out,
        "words": gate_sentence(one, names),
    }


def _all_rows(one: Compared) -> Iterator[Row]:
    yield from one.overall
    for rows in one.sections.values():
        yield from rows


def _lines(one: Compared, row: Row, names: Sequence[str]) -> Iterator[Document]:
    section, group = row.group or ("overall", "all")
    for place, (name, value) in enumerate(zip(names, row.values, strict=True)):
        line = dict.fromkeys(_COLUMNS)
        line.update({
            "task": one.name, "section": section, "group": group, "metric": row.metric,
            "higher_is_better": one.benchmark.metrics[row.metric].higher_is_better,
            "captioner": name, "value": value.value, "low": value.low, "high": value.high,
            "n_videos": value.n_videos, "note": value.note,
        })  # fmt: skip
        if place:
            contrast = row.contrasts[place - 1]
            found = contrast.difference
            line.update({
                "baseline": names[0], "difference": found.difference, "difference_low": found.low,
                "difference_high": found.high, "p": found.p_value, "p_holm": contrast.p_value,
                "outcome": contrast.outcome, "difference_note": found.note,
            })  # fmt: skip
        yield line


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON's types
    """A document with ``None`` in the place of what JSON has no number for."""
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return None if isinstance(value, float) and not isfinite(value) else value
