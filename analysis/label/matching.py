"""Labels matched with the judged pairs that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.pairs import judged_pairs, strata_of
from lmms_eval_captions.analysis.tables import plural
from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.judges.errors import DataError

if TYPE_CHECKING:
    import pandas as pd


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
        values = []
        for label in self.labels.itertuples():
            logged = {"question": label.question, "answer": label.answer}
            judgement = {**logged, **benchmark.grading.judgement(logged, label.label)}  # type: ignore[union-attr] # read_labels
            read = tuple(benchmark.metrics[metric].values(SimpleNamespace(**judgement)))
            values.append(None if None in read else read)
        return values


def domains_of(
    labels: pd.DataFrame, captioners: Sequence[Captioner]
) -> tuple[list[Domain], list[str]]:
    """Return the labels by captioner and task, and notes on labels that match nothing.

    Raises:
        DataError: If verdicts cannot be read, no label is of these runs, or samples that were
            drawn in different ways are mixed.
    """
    import pandas as pd

    judged = {
        (captioner.name, task): (captioner, *judged_pairs(captioner, task))
        for task in labels["task"].unique()
        for captioner in captioners
        if task in captioner.runs
    }
    keys = ["task", "video", "question_index"]
    columns = ["captioner", *keys, "caption_digest", "question"]
    pairs = [of[columns].assign(pair=of.index) for *_, of in judged.values()]
    # Of a video's captions the last one counts.
    candidates = pd.concat([pd.DataFrame(columns=[*columns, "pair"]), *pairs])
    candidates = candidates.drop_duplicates(["captioner", *keys], keep="last")
    found = labels.assign(label_index=range(len(labels))).merge(
        candidates, on=keys, suffixes=("", "_judged")
    )
    found["is_same"] = _is_same(found, "caption_digest")
    owners = _owners(labels, found, [captioner.name for captioner in captioners])
    only = {name: of[0] for name, of in owners.items() if len(of) == 1}
    is_own = found["captioner"].map(only) == found["captioner_judged"]
    matched = found[is_own & found["is_same"] & _is_same(found, "question")]
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
    n_same = found.groupby(["captioner", "captioner_judged"])["is_same"].sum()
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
