"""Labels of exported files, a line of JSON each, and the judged pairs that they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pandas as pd

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.gradings import Grading, Label, grading_of
from lmms_eval_captions.analysis.label.sampling import judged_pairs, strata_of
from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.construction.people import PAGE_KIND, Exported, last_words
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

LEFT: Final = "left"
RIGHT: Final = "right"
TIE: Final = "tie"
_SCORE: Final = {LEFT: 1.0, TIE: 0.5, RIGHT: 0.0}
_KEY: Final = (
    "kind", "annotator", "task", "video_id", "captioner", "question_index", "question",
    "caption_digest",
)  # fmt: skip


class Labels(NamedTuple):
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
    lines, n_repeated = last_words(paths, _key)
    verdicts: list[dict[str, object]] = []
    choices: list[dict[str, object]] = []
    n_skipped = 0
    for line in lines:
        if line.row.get("kind") == PAGE_KIND:
            raise DataError(
                f"{line.where}: expected a label of results, got one of a question that was built; "
                f"give the build's folder, such as --build DATA/{line.row.get('benchmark')!s:.40}"
            )
        if line.row.get("label") is None:
            n_skipped += 1
            continue
        try:
            if line.row.get("kind") == "pair":
                choices.append(_choice(line.row))
            else:
                verdicts.append(_verdict(line.row))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            problem = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise DataError(
                f"{line.where}: expected a label as the page exports it: {problem}; export it again"
            ) from error
    if not verdicts and not choices:
        raise DataError(f"{', '.join(map(str, paths))}: expected labels, got none")
    n_changed = sum(bool(row["is_changed"]) for row in verdicts)
    notes = (
        (n_repeated, "line", "replaced by a later label of the same person on the same question"),
        (n_skipped, "question", "left out, as the person could not tell: this skews the numbers"),
        (n_changed, "label", "changed after the judge's verdict was seen, perhaps towards it"),
    )
    shown = [f"{plural(n, what)} {text}" for n, what, text in notes if n]
    return Labels(pd.DataFrame(verdicts), pd.DataFrame(choices), shown)


def _key(line: Exported) -> tuple[object, ...]:
    sides = sorted(str(line.row.get(side)) for side in (LEFT, RIGHT))
    return (*(str(line.row.get(name)) for name in _KEY), *sides)


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
    grading = None if benchmark is None else grading_of(benchmark)
    if grading is None:
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
        "label": _label(row["label"], grading),
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


@dataclass(frozen=True, slots=True)
class Domain:
    """Judged pairs of one captioner in one task, some of them labelled."""

    captioner: Captioner
    task: str
    table: TaskTable
    pairs: pd.DataFrame
    """See :func:`judged_pairs`."""
    labels: pd.DataFrame
    """See :class:`Labels`, with ``pair``: the pair's index in ``pairs``."""
    by: tuple[str, ...]
    """Names that the sample is stratified by."""

    def said(self, metric: str) -> list[tuple[object, ...] | None]:
        """Return what a metric reads of each label; ``None`` if the person did not say it."""
        benchmark = self.table.benchmark
        grading = grading_of(benchmark)
        assert grading is not None  # noqa: S101 - see read_labels
        labels = self.labels[["question", "answer"]].to_dict("records")
        judgements = map(grading.judgement, labels, self.labels["label"])
        records = (SimpleNamespace(**a | b) for a, b in zip(labels, judgements, strict=True))
        values = [tuple(benchmark.metrics[metric].values(record)) for record in records]
        return [None if None in read else read for read in values]


def domains_of(
    labels: pd.DataFrame, captioners: Sequence[Captioner]
) -> tuple[list[Domain], list[str]]:
    """Return the labels by captioner and task, and notes on labels that match nothing.

    Raises:
        DataError: If verdicts cannot be read, no label is of these runs, or samples that were
            drawn in different ways are mixed.
    """
    judged = {
        (captioner.name, task): (captioner, *judged_pairs(captioner, task))
        for task in labels["task"].unique()
        for captioner in captioners
        if task in captioner.runs
    }
    keys = ["task", "video", "question_index"]
    columns = ["captioner", *keys, "caption_digest", "question"]
    pairs = [of[columns].assign(pair=of.index) for *_, of in judged.values()]
    # A video may have several captions.
    candidates = pd.concat([pd.DataFrame(columns=[*columns, "pair"]), *pairs])
    found = labels.assign(label_index=range(len(labels))).merge(
        candidates, on=keys, suffixes=("", "_judged")
    )
    found["is_same"] = _is_same(found, "caption_digest")
    owners = _owners(labels, found, [captioner.name for captioner in captioners])
    only = {name: of[0] for name, of in owners.items() if len(of) == 1}
    is_own = found["captioner"].map(only) == found["captioner_judged"]
    matched = found[is_own & found["is_same"] & _is_same(found, "question")]
    matched = matched.drop_duplicates("label_index", keep="last")
    reasons = pd.Series("they are of other captions or questions", range(len(labels)))
    is_ambiguous = labels["captioner"].map(lambda name: len(owners[name]) > 1)
    reasons[is_ambiguous.to_numpy()] = "several captioners have these captions"
    reasons[~reasons.index.isin(found["label_index"])] = (
        "their task, video or question has no verdict in these results"
    )
    counts = reasons.drop(matched["label_index"]).value_counts()
    if matched.empty:
        raise DataError(
            f"labels: none is of these runs ({', '.join(counts.index)}); give the results that the "
            "page was made of as --against"
        )
    domains = []
    for key, own in matched.groupby(["captioner_judged", "task"]):
        captioner, table, of_task = judged[key]
        by = _design(key[1], of_task, own)
        domains.append(Domain(captioner, key[1], table, of_task, own, by))
    return domains, [f"{plural(n, 'label')} left out: {reason}" for reason, n in counts.items()]


def _is_same(found: pd.DataFrame, name: str) -> pd.Series[bool]:
    """Return if labels and pairs have the same text; an empty one is unknown."""
    ours, judged = found[name], found[f"{name}_judged"]
    return (ours == judged) | (ours == "") | (judged == "")


def _owners(
    labels: pd.DataFrame, found: pd.DataFrame, names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the captioners that a label's captioner can be: the one of that name, if there is one.

    After a folder was renamed it is who has its captions. Two captioners may have some captions in
    common, such as empty ones: more than half must be the same.
    """
    same = found[found["is_same"]]
    n_same = same.groupby(["captioner", "captioner_judged"])["label_index"].nunique()
    return {
        captioner: [captioner]
        if captioner in names
        else [name for name in names if 2 * n_same.get((captioner, name), 0) > n]
        for captioner, n in labels["captioner"].value_counts().items()
    }


def _design(task: str, pairs: pd.DataFrame, labels: pd.DataFrame) -> tuple[str, ...]:
    """Return what the sample is stratified by."""
    by, *others = labels["by"].unique()
    if others:
        names = sorted(f"by {'+'.join(by)}" if by else "at random" for by in [by, *others])
        raise DataError(
            f"labels of {task}: samples drawn {' and '.join(names)} cannot be weighted together; "
            "read the files one at a time"
        )
    # A pair must be weighted by the stratum that it was drawn from.
    current = pairs.loc[labels["pair"]].assign(captioner=labels["captioner"].to_numpy())
    strata = strata_of(current, by)
    for video, drawn, now in zip(labels["video"], labels["stratum"], strata, strict=True):
        if by and drawn not in (None, now):
            raise DataError(
                f"labels of {task}: {video!r:.80} was drawn as {drawn!r:.80} by {'+'.join(by)} and "
                f"is {now!r:.80} now; give the results that the page was made of as --against, not "
                "those of another judge run"
            )
    return tuple(by)
