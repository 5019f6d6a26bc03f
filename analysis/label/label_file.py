"""What pages export, read back: a line of JSON for each label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.label.side_by_side import LEFT, RIGHT, TIE
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import PAGE_KIND
from lmms_eval_captions.lmms_eval_tasks.commands.exported import Exported, last_words
from lmms_eval_captions.lmms_eval_tasks.grading import Grading, Label
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

_SCORE: Final = {LEFT: 1.0, TIE: 0.5, RIGHT: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLabel:
    """What a person said of one question and caption."""

    annotator: str
    captioner: str
    task: str
    video_id: str
    place: int
    """The question's, from 0."""
    question: str
    answer: str
    """The gold answer."""
    caption_digest: str
    label: Label
    by: tuple[str, ...]
    """What the sample was stratified by; empty where it was not."""
    stratum: str | None
    """The stratum that its pair was drawn from, ``None`` where that is not said."""
    is_changed: bool
    """Whether it was changed after the judge's verdict was seen."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceLabel:
    """Which of two captioners' captions of a video a person chose."""

    annotator: str
    task: str
    video_id: str
    captioners: tuple[str, str]
    score: float
    """1 where the first was chosen, 0.5 for a tie, 0 where the second was."""


@dataclass(slots=True)
class Labels:
    """All labels of some files, each person's last word on each question."""

    verdicts: list[VerdictLabel] = field(default_factory=list)
    choices: list[ChoiceLabel] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_labels(paths: Sequence[Path]) -> Labels:
    """The labels of files, each line of which a page has exported.

    Raises:
        DataError: If a file or a line of it cannot be read; the text names the line.
    """
    lines, n_repeated = last_words(paths, _key)
    labels = Labels()
    skipped = 0
    for line in lines:
        where, row = line.where, line.row
        if row.get("kind") == PAGE_KIND:
            raise DataError(
                f"{where}: expected a label of results, got one of a question that was built; give "
                f"the folder of the build, such as --build DATA/{row.get('benchmark')!s:.40}"
            )
        if row.get("label") is None:
            skipped += 1
        elif row.get("kind") == "pair":
            labels.choices.append(_read(_choice, row, where))
        else:
            labels.verdicts.append(_read(_verdict, row, where))
    _note(labels, n_repeated, skipped)
    if not labels.verdicts and not labels.choices:
        raise DataError(f"{', '.join(map(str, paths))}: there is no label in it")
    return labels


def _note(labels: Labels, repeated: int, skipped: int) -> None:
    changed = sum(label.is_changed for label in labels.verdicts)
    if repeated:
        labels.notes.append(
            f"{repeated} lines say again what the same person said before: the last word counts"
        )
    if skipped:
        labels.notes.append(
            f"{skipped} questions could not be told: they are left out, which skews the numbers if "
            "they are harder than others"
        )
    if changed:
        labels.notes.append(
            f"{changed} labels were changed after the judge's verdict was seen: they may lean "
            "towards it"
        )


def _key(line: Exported) -> tuple[object, ...]:
    """What tells who labelled what."""
    row = line.row
    names = (
        "kind", "annotator", "task", "video_id", "captioner", "question_index", "caption_digest",
    )  # fmt: skip
    sides = sorted(str(row.get(side)) for side in (LEFT, RIGHT))
    return (*(str(row.get(name)) for name in names), *sides)


def _read(read: Callable[[Mapping[str, Any]], Any], row: Mapping[str, Any], where: str) -> Any:  # noqa: ANN401
    try:
        return read(row)
    except KeyError as error:
        raise DataError(f"{where}: the label lacks {error}; export it again") from error
    except _NotAsExportedError as error:
        raise DataError(f"{where}: the label {error}; export it again") from error
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise DataError(f"{where}: the label cannot be read ({error}); export it again") from error


class _NotAsExportedError(ValueError):
    """A label is not one that a page gives."""


def _choice(row: Mapping[str, Any]) -> ChoiceLabel:
    choice = row["label"]["choice"]
    if choice not in _SCORE:
        raise _NotAsExportedError(
            f"has the choice {choice!r:.80}, expected any of {', '.join(_SCORE)}"
        )
    if row[LEFT] == row[RIGHT]:
        raise _NotAsExportedError(f"is a choice between two captions of {row[LEFT]!r:.80}")
    return ChoiceLabel(
        annotator=str(row["annotator"]),
        task=str(row["task"]),
        video_id=str(row["video_id"]),
        captioners=(str(row[LEFT]), str(row[RIGHT])),
        score=_SCORE[choice],
    )


def _verdict(row: Mapping[str, Any]) -> VerdictLabel:
    task = str(row["task"])
    benchmark = our_benchmarks().get(task)
    if benchmark is None or benchmark.grading is None:
        raise _NotAsExportedError(f"is of {task!r:.80}, which people are not asked about")
    design = dict(row.get("design") or {})
    return VerdictLabel(
        annotator=str(row["annotator"]),
        captioner=str(row.get("captioner", "")),
        task=task,
        video_id=str(row["video_id"]),
        place=int(row["question_index"]),
        question=str(row.get("question", "")),
        answer=str(row.get("answer", "")),
        caption_digest=str(row.get("caption_digest", "")),
        label=_label(row["label"], benchmark.grading),
        by=_by(design),
        stratum=None if design.get("stratum") is None else str(design["stratum"]),
        is_changed=bool(row.get("changed_after_reveal")),
        seconds=float(row.get("seconds") or 0.0),
    )


def _by(design: Mapping[str, Any]) -> tuple[str, ...]:
    by = design.get("by") or []
    if not isinstance(by, list):
        raise _NotAsExportedError(f"has a sample stratified by {by!r:.80}, expected a list")
    return tuple(map(str, by))


def _label(label: Mapping[str, Any], grading: Grading) -> Label:
    choice = label.get("choice")
    names = [known.name for known in grading.choices]
    if names and choice not in names:
        raise _NotAsExportedError(
            f"has the choice {choice!r:.80}, expected any of {', '.join(names)}"
        )
    ratings = {str(name): float(value) for name, value in dict(label.get("ratings") or {}).items()}
    for rating in grading.ratings:
        value = ratings.get(rating.name)
        if value is None and rating.is_optional:
            continue
        if value is None or not isfinite(value) or not rating.low <= value <= rating.high:
            raise _NotAsExportedError(
                f"has {value!r} for {rating.name!r}, expected {rating.low:g} to {rating.high:g}"
            )
    return Label(choice=None if choice is None else str(choice), ratings=ratings)
