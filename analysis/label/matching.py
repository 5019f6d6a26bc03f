"""Labels matched with the judged pairs that they are of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.analysis.captioners import Captioner
from lmms_eval_captions.analysis.label.pairs import judged_pairs, strata_of
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
    """What the sample is stratified by."""

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
    judged = {
        (captioner.name, task): (captioner, *judged_pairs(captioner, task))
        for task in labels["task"].unique()
        for captioner in captioners
        if task in captioner.runs
    }
    rows = {
        (*key, row.video, row.question_index): row
        for key, (*_, pairs) in judged.items()
        for row in pairs.itertuples()
    }
    names = [captioner.name for captioner in captioners]
    candidates = [
        {
            name: rows[name, label.task, label.video, label.question_index]
            for name in names
            if (name, label.task, label.video, label.question_index) in rows
        }
        for label in labels.itertuples()
    ]
    meant = _meant(labels, candidates, names)
    places: dict[tuple[str, str], dict[int, int]] = {}
    reasons: Counter[str] = Counter()
    for place, (label, of_label) in enumerate(zip(labels.itertuples(), candidates, strict=True)):
        owner = _owner(label, of_label, meant[label.captioner])
        if owner in of_label:
            places.setdefault((owner, label.task), {})[place] = of_label[owner].Index
        else:
            reasons[owner] += 1
    if not places:
        raise DataError(
            f"labels: none is of these runs ({', '.join(reasons)}); give the results that the page "
            "was made of as --against"
        )
    domains = []
    for key, matched in sorted(places.items()):
        captioner, table, pairs = judged[key]
        own = labels.iloc[list(matched)].assign(pair=list(matched.values()))
        domains.append(Domain(captioner, key[1], table, pairs, own, _design(key[1], pairs, own)))
    return domains, [f"{n} labels are left out: {reason}" for reason, n in reasons.items()]


def _meant(
    labels: pd.DataFrame, candidates: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> dict[str, list[str]]:
    """Return the captioners that a label's captioner can be: the one of that name, if there is one.

    After a folder was renamed it is who has its captions. Two captioners may have some captions in
    common, such as empty ones: more than half must be the same.
    """
    n_same: Counter[tuple[str, str]] = Counter()
    for label, of_label in zip(labels.itertuples(), candidates, strict=True):
        for name, pair in of_label.items():
            n_same[label.captioner, name] += _is_same_caption(label, pair)
    return {
        captioner: [captioner]
        if captioner in names
        else [name for name in names if 2 * n_same[captioner, name] > n]
        for captioner, n in Counter(labels["captioner"]).items()
    }


def _is_same_caption(label: Any, pair: Any) -> bool:  # noqa: ANN401 - rows
    digests = label.caption_digest, pair.caption_digest
    return not all(digests) or digests[0] == digests[1]


def _owner(label: Any, candidates: Mapping[str, Any], meant: Sequence[str]) -> str:  # noqa: ANN401
    """Return whose caption a label is of, or why it is nobody's."""
    if not candidates:
        return "their task, video or question has no verdict in these results"
    if len(meant) > 1:
        return f"several captioners may be meant by {label.captioner!r:.80}"
    own = [name for name in meant if name in candidates]
    if not own or not _is_same_caption(label, candidates[own[0]]):
        return "they are of other captions"
    if label.question and candidates[own[0]].question not in ("", label.question):
        return "they are of other questions"
    return own[0]


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
