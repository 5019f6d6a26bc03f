"""Labels of exported files: a line of JSON each, as pages write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.construction.exported import Exported, last_words
from lmms_eval_captions.construction.people import PAGE_KIND
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

if TYPE_CHECKING:
    import pandas as pd

LEFT: Final = "left"
RIGHT: Final = "right"
TIE: Final = "tie"
_SCORE: Final = {LEFT: 1.0, TIE: 0.5, RIGHT: 0.0}
_KEY: Final = (
    "kind", "annotator", "task", "video_id", "captioner", "question_index", "caption_digest",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of some files, each person's last one on each question."""

    verdicts: pd.DataFrame
    """A row per graded question, with the columns of :func:`_verdict`: ``label`` is a ``Label``,
    ``by`` what the sample is stratified by."""
    choices: pd.DataFrame
    """A row per choice between captions, with the columns of :func:`_choice`: ``score`` is 1 for
    the first captioner, 0.5 for a tie, 0 for the second."""
    notes: list[str]


def read_labels(paths: Sequence[Path]) -> Labels:
    """Read the labels of files that pages exported.

    Raises:
        DataError: If a file or a line cannot be read; the message names the line.
    """
    import pandas as pd

    lines, n_repeated = last_words(paths, _key)
    rows: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    n_skipped = 0
    for line in lines:
        if line.row.get("kind") == PAGE_KIND:
            raise DataError(
                f"{line.where}: expected a label of results, got one of a question that was built; "
                f"give the build's folder, such as --build DATA/{line.row.get('benchmark')!s:.40}"
            )
        if line.row.get("label") is None:
            n_skipped += 1
        else:
            is_choice = line.row.get("kind") == "pair"
            rows[is_choice].append(_read(line, is_choice=is_choice))
    if not any(rows.values()):
        raise DataError(f"{', '.join(map(str, paths))}: expected labels, got none")
    n_changed = sum(bool(row["is_changed"]) for row in rows[False])
    notes = (
        (n_repeated, "line", "replaced by a later label of the same person on the same question"),
        (n_skipped, "question", "left out, as the person could not tell: this skews the numbers"),
        (n_changed, "label", "changed after the judge's verdict was seen, perhaps towards it"),
    )
    return Labels(
        pd.DataFrame(rows[False]),
        pd.DataFrame(rows[True]),
        [f"{plural(n, what)} {text}" for n, what, text in notes if n],
    )


def _key(line: Exported) -> tuple[object, ...]:
    sides = sorted(str(line.row.get(side)) for side in (LEFT, RIGHT))
    return (*(str(line.row.get(name)) for name in _KEY), *sides)


def _read(line: Exported, *, is_choice: bool) -> dict[str, object]:
    try:
        return _choice(line.row) if is_choice else _verdict(line.row)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else error
        raise DataError(
            f"{line.where}: expected a label as the page exports it: {problem}; export it again"
        ) from error


def _choice(row: Mapping[str, Any]) -> dict[str, object]:
    if row[LEFT] == row[RIGHT]:
        raise ValueError(f"expected two captioners, got {row[LEFT]!r:.80} twice")
    return {
        "annotator": str(row["annotator"]),
        "task": str(row["task"]),
        "video": str(row["video_id"]),
        "first": str(row[LEFT]),
        "second": str(row[RIGHT]),
        "score": _SCORE[_one_of(row["label"]["choice"], _SCORE)],
    }


def _verdict(row: Mapping[str, Any]) -> dict[str, object]:
    task = str(row["task"])
    benchmark = our_benchmarks().get(task)
    if benchmark is None or benchmark.grading is None:
        raise ValueError(f"people are not asked about the task {task!r:.80}")
    design = dict(row.get("design") or {})
    by = design.get("by") or []
    if not isinstance(by, list):
        raise TypeError(f"expected a list as 'by', got {by!r:.80}")
    stratum = design.get("stratum")
    return {
        "annotator": str(row["annotator"]),
        "captioner": str(row.get("captioner", "")),
        "task": task,
        "video": str(row["video_id"]),
        "question_index": int(row["question_index"]),
        "question": str(row.get("question", "")),
        "answer": str(row.get("answer", "")),
        "caption_digest": str(row.get("caption_digest", "")),
        "label": _label(row["label"], benchmark.grading),
        "by": tuple(map(str, by)),
        "stratum": None if stratum is None else str(stratum),
        "is_changed": bool(row.get("changed_after_reveal")),
        "seconds": float(row.get("seconds") or 0.0),
    }


def _label(label: Mapping[str, Any], grading: Grading) -> Label:
    choice = label.get("choice")
    if grading.choices:
        _one_of(choice, [known.name for known in grading.choices])
    ratings = {str(name): float(value) for name, value in dict(label.get("ratings") or {}).items()}
    for rating in grading.ratings:
        value = ratings.get(rating.name)
        if value is None and rating.is_optional:
            continue
        if value is None or not isfinite(value) or not rating.low <= value <= rating.high:
            expected = f"{rating.low:g} to {rating.high:g}"
            raise ValueError(f"expected {expected} for {rating.name!r}, got {value!r}")
    return Label(choice=None if choice is None else str(choice), ratings=ratings)


def _one_of(choice: Any, names: Any) -> Any:  # noqa: ANN401 - of JSON's types
    if choice not in list(names):
        raise ValueError(f"expected a choice of {', '.join(names)}, got {choice!r:.80}")
    return choice
