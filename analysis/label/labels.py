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
from lmms_eval_captions.analysis.gradings import Choice, Grading, Label, grading_of
from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.construction.people import PAGE_KIND, Exported, last_words
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks

LEFT: Final = "left"
RIGHT: Final = "right"
_SCORE: Final[Mapping[str | None, float]] = {LEFT: 1.0, RIGHT: 0.0, "tie": 0.5}
WHICH_IS_BETTER: Final = Grading(
    asks="Which caption describes the video better?",
    choices=(
        Choice(key="1", name=LEFT, text="The left one"),
        Choice(key="2", name=RIGHT, text="The right one"),
        Choice(key="0", name="tie", text="Neither: a tie"),
    ),
)
_TEXTS: Final = ("captioner", "question", "answer", "caption_digest")
_KEY: Final = (
    "kind", "annotator", "task", "video_id", "captioner", "question_index", "question",
    "caption_digest",
)  # fmt: skip


class Labels(NamedTuple):
    """Labels of some files, each person's last one on each question."""

    verdicts: pd.DataFrame
    """A row per graded question, with the columns of :func:`_verdict`."""
    choices: pd.DataFrame
    """A row per choice between captions, with the columns of :func:`_choice`: ``score`` is 1 for
    the first captioner by name, 0.5 for a tie, 0 for the second."""
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
    for where, row in lines:
        if row.get("kind") == PAGE_KIND:
            raise DataError(
                f"{where}: expected a label of results, got one of a question that was built; "
                f"give the build's folder, such as --build DATA/{row.get('benchmark')!s:.40}"
            )
        if row.get("label") is None:
            n_skipped += 1
            continue
        try:
            if row.get("kind") == "pair":
                choices.append(_choice(row))
            else:
                verdicts.append(_verdict(row))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            problem = f"it lacks {error}" if isinstance(error, KeyError) else error
            raise DataError(
                f"{where}: expected a label as the page exports it: {problem}; export it again"
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
    sides = (str(row[LEFT]), str(row[RIGHT]))
    first, second = sorted(sides)
    if first == second:
        raise ValueError(f"expected two captioners, got {first!r:.80} twice")
    score = _SCORE[_label(row["label"], WHICH_IS_BETTER).choice]
    return {
        "annotator": str(row["annotator"]),
        "task": str(row["task"]),
        "video": str(row["video_id"]),
        "first": first,
        "second": second,
        "score": score if sides == (first, second) else 1 - score,
    }


def _verdict(row: Mapping[str, Any]) -> dict[str, object]:
    benchmark = our_benchmarks().get(str(row["task"]))
    grading = None if benchmark is None else grading_of(benchmark)
    if grading is None:
        raise ValueError(f"people are not asked about the task {row['task']!r:.80}")
    return {
        "annotator": str(row["annotator"]),
        "task": str(row["task"]),
        "video": str(row["video_id"]),
        "question_index": int(row["question_index"]),
        **{name: str(row.get(name, "")) for name in _TEXTS},
        "label": _label(row["label"], grading),
        "is_changed": bool(row.get("changed_after_reveal")),
    }


def _label(label: Mapping[str, Any], grading: Grading) -> Label:
    choice = label.get("choice")
    names = [known.name for known in grading.choices]
    if names and choice not in names:
        raise ValueError(f"expected a choice of {', '.join(names)}, got {choice!r:.80}")
    ratings = {str(name): float(value) for name, value in dict(label.get("ratings") or {}).items()}
    for rating in grading.ratings:
        value = ratings.get(rating.name)
        if value is None and rating.is_optional:
            continue
        if value is None or not isfinite(value) or not rating.low <= value <= rating.high:
            expected = f"{rating.low:g} to {rating.high:g}"
            raise ValueError(f"expected {expected} for {rating.name!r}, got {value!r}")
    return Label(choice=None if choice is None else str(choice), ratings=ratings)


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

    def said(self, metric: str) -> list[tuple[object, ...] | None]:
        """Return what a metric reads of each label; ``None`` if the person did not say it."""
        benchmark = self.table.benchmark
        grading = grading_of(benchmark)
        assert grading is not None  # noqa: S101 - see _verdict
        labels = self.labels[["question", "answer"]].to_dict("records")
        judgements = map(grading.judgement, labels, self.labels["label"])
        records = (SimpleNamespace(**a | b) for a, b in zip(labels, judgements, strict=True))
        values = [tuple(benchmark.metrics[metric].values(record)) for record in records]
        return [None if None in read else read for read in values]


def judged_pairs(captioner: Captioner, task: str) -> tuple[TaskTable, pd.DataFrame]:
    """Return a task's verdicts and its pairs with a verdict in at least one judge run.

    Pairs have the table's columns, ``captioner`` and ``task``. A column of values holds a tuple per
    judge run with a verdict, each what metrics read of the pair; missing if no run has one.
    """
    (table,) = captioner.verdicts(task, sampled=False).tables
    asked, benchmark = table.asked(), table.benchmark
    keys = ["caption", "question_index"]
    pairs = asked.drop_duplicates(keys).set_index(keys, drop=False)
    for column in dict.fromkeys(table.head["values"].values()):
        values = asked[column].map(_tuple).dropna()
        pairs[column] = values.groupby([asked[key] for key in keys]).agg(list)
    pairs = pairs[pairs[table.head["values"][benchmark.headline]].notna()].reset_index(drop=True)
    return table, pairs.assign(
        captioner=captioner.name,
        task=task,
        question=pairs["question"].fillna(""),
        question_index=pairs["question_index"].astype(int),
    )


def _tuple(value: Any) -> tuple[object, ...] | None:  # noqa: ANN401 - of the file's types
    values = value if isinstance(value, list) else [value]
    return tuple(values) if values and None not in values else None


def domains_of(
    labels: pd.DataFrame, captioners: Sequence[Captioner]
) -> tuple[list[Domain], list[str]]:
    """Return the labels by captioner and task, and notes on labels that match nothing.

    A label is of the captioner that it names. If there is none of that name, as after a folder was
    renamed, it is of the one that has its caption, and most captions of that captioner's labels:
    some, such as empty ones, may be the same by chance.

    Raises:
        DataError: If verdicts cannot be read, or no label is of these runs.
    """
    judged = {
        (captioner.name, task): (captioner, task, *judged_pairs(captioner, task))
        for task in labels["task"].unique()
        for captioner in captioners
        if task in captioner.runs
    }
    keys, texts = ["task", "video", "question_index"], ["caption_digest", "question"]
    columns = ["captioner", *keys, *texts]
    pairs = [of[columns].assign(pair=of.index) for *_, of in judged.values()]
    # A video may have several captions.
    candidates = pd.concat([pd.DataFrame(columns=[*columns, "pair"]), *pairs])
    n_labels = labels.groupby("captioner")["task"].transform("size")
    found = labels.assign(label_index=range(len(labels)), n_labels=n_labels)
    found = found.merge(candidates, on=keys, suffixes=("", "_judged"))
    names = [captioner.name for captioner in captioners]
    is_own = ~found["captioner"].isin(names) | (found["captioner"] == found["captioner_judged"])
    for name in texts:
        said, judged_text = found[name], found[f"{name}_judged"]
        # An empty text is unknown.
        is_own &= (said == judged_text) | (said == "") | (judged_text == "")
    own = found[is_own].drop_duplicates(["label_index", "captioner_judged"], keep="last")
    n_same = own.groupby(["captioner", "captioner_judged"])["label_index"].transform("size")
    own = own[(2 * n_same > own["n_labels"]) | (own["captioner"] == own["captioner_judged"])]
    is_shared = own.duplicated("label_index", keep=False)
    reasons = pd.Series("they are of other captions or questions", range(len(labels)))
    reasons[own["label_index"][is_shared]] = "several captioners have these captions"
    reasons[~reasons.index.isin(found["label_index"])] = (
        "their task, video or question has no verdict in these results"
    )
    matched = own[~is_shared]
    counts = reasons.drop(matched["label_index"]).value_counts()
    if matched.empty:
        raise DataError(
            f"labels: none is of these runs ({', '.join(counts.index)}); give the results that the "
            "page was made of as --against"
        )
    by_task = matched.groupby(["captioner_judged", "task"])
    domains = [Domain(*judged[key], of_task) for key, of_task in by_task]
    return domains, [f"{plural(n, 'label')} left out: {reason}" for reason, n in counts.items()]
