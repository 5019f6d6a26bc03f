"""Labels found again among the pairs of the runs that they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

from lmms_eval_captions.analysis.label.label_file import VerdictLabel
from lmms_eval_captions.analysis.label.pairs import Pair, judged_pairs, verdicts_of
from lmms_eval_captions.analysis.verdicts.captioners import Captioner
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

Key = tuple[str, int]
"""Video and place of the question."""


@dataclass(frozen=True, slots=True)
class Domain:
    """One task of one captioner: all its pairs, and the labels of some."""

    captioner: str
    task: str
    captions: Sequence[CaptionRecord]
    """All captions, also those that nothing is asked about."""
    pairs: Sequence[Pair]
    labels: Mapping[Key, Sequence[VerdictLabel]]
    """By pair, one of each annotator."""
    by: tuple[str, ...]
    """What the sample was stratified by."""

    @property
    def annotators(self) -> list[str]:
        """Everyone who gave a label."""
        return sorted({label.annotator for some in self.labels.values() for label in some})

    def labelled(self, pair: Pair) -> Sequence[VerdictLabel]:
        """The labels of a pair, none where it has none."""
        return self.labels.get((pair.record.video_id, pair.place), ())


def domains_of(
    labels: Sequence[VerdictLabel], captioners: Sequence[Captioner]
) -> tuple[list[Domain], list[str]]:
    """The labels by captioner and task, and what is said of those that could not be found.

    Raises:
        DataError: If verdicts cannot be read, no label is of these runs, or samples that were
            drawn in different ways are mixed.
    """
    tasks = list(dict.fromkeys(label.task for label in labels))
    verdicts = {
        (captioner.name, task): verdicts_of(captioner, task)
        for task in tasks
        for captioner in captioners
        if task in captioner.runs
    }
    pairs = {key: judged_pairs(key[0], of_run) for key, of_run in verdicts.items()}
    places = {
        (name, task, pair.record.video_id, pair.place): pair
        for (name, task), of_run in pairs.items()
        for pair in of_run
    }
    found: dict[tuple[str, str], dict[Key, list[VerdictLabel]]] = {}
    reasons: Counter[str] = Counter()
    names = [captioner.name for captioner in captioners]
    of_labels = [
        {
            name: places[name, label.task, label.video_id, label.place]
            for name in names
            if (name, label.task, label.video_id, label.place) in places
        }
        for label in labels
    ]
    meant = _meant(labels, of_labels, names)
    for label, candidates in zip(labels, of_labels, strict=True):
        captioner = _captioner(label, candidates, meant[label.captioner])
        if captioner in candidates:
            _check_stratum(label, candidates[captioner])
            of_pair = found.setdefault((captioner, label.task), {})
            of_pair.setdefault((label.video_id, label.place), []).append(label)
        else:
            reasons[captioner] += 1
    if not found:
        why = ", ".join(reasons)
        raise DataError(f"labels: none is of these runs ({why}); give the page's own as --against")
    domains = [
        Domain(*key, verdicts[key].captions, pairs[key], of_pairs, _design(key[1], of_pairs))
        for key, of_pairs in sorted(found.items())
    ]
    return domains, [f"{n} labels are left out: {reason}" for reason, n in reasons.items()]


def _meant(
    labels: Sequence[VerdictLabel],
    of_labels: Sequence[Mapping[str, Pair]],
    names: Sequence[str],
) -> dict[str, list[str]]:
    """The captioners that a label's captioner may be: that of its name, else who has its captions.

    A folder may have been renamed. Some captions are the same for two captioners, such as empty
    ones: more than half of them must be.
    """
    same: Counter[tuple[str, str]] = Counter()
    for label, candidates in zip(labels, of_labels, strict=True):
        for name, pair in candidates.items():
            same[label.captioner, name] += _is_same_caption(label, pair)
    n_labels = Counter(label.captioner for label in labels)
    return {
        captioner: [captioner]
        if captioner in names
        else [name for name in names if 2 * same[captioner, name] > n]
        for captioner, n in n_labels.items()
    }


def _is_same_caption(label: VerdictLabel, pair: Pair) -> bool:
    digests = label.caption_digest, pair.record.caption_digest
    return not all(digests) or digests[0] == digests[1]


def _captioner(label: VerdictLabel, candidates: Mapping[str, Pair], meant: Sequence[str]) -> str:
    """Whose caption a label is of, or why it is nobody's."""
    if not candidates:
        return "their task, video or question has no verdict there"
    if len(meant) > 1:
        return f"several captioners may be meant by {label.captioner!r:.80}"
    same = [name for name in meant if name in candidates]
    if not same or not _is_same_caption(label, candidates[same[0]]):
        return "they are of other captions"
    if label.question and candidates[same[0]].question not in ("", label.question):
        return "they are of other questions"
    return same[0]


def _check_stratum(label: VerdictLabel, pair: Pair) -> None:
    """Raise where a pair is weighed by another stratum than it was drawn from."""
    stratum = replace(pair, captioner=label.captioner).stratum(label.by)
    if label.by and label.stratum not in (None, stratum):
        raise DataError(
            f"labels of {label.task}: {label.video_id!r:.80} was drawn as {label.stratum!r:.80} by "
            f"{'+'.join(label.by)} and is {stratum!r:.80} now; give the results that the page was "
            "made of as --against, not those of another judging"
        )


def _design(task: str, labels: Mapping[Key, Sequence[VerdictLabel]]) -> tuple[str, ...]:
    designs = {label.by for some in labels.values() for label in some}
    if len(designs) > 1:
        shown = " and ".join(sorted(f"by {'+'.join(by)}" if by else "at random" for by in designs))
        raise DataError(
            f"labels of {task}: samples drawn {shown} cannot be weighed together; read the files "
            "one at a time"
        )
    return next(iter(designs))


def values_of(label: VerdictLabel, pair: Pair, metric: str) -> tuple[object, ...] | None:
    """What a metric reads of a label, ``None`` where the person did not say it."""
    logged = {"question": label.question, "answer": label.answer}
    said = pair.benchmark.grading.judgement(logged, label.label)  # type: ignore[union-attr] # read_labels
    values = tuple(pair.benchmark.metrics[metric].values(SimpleNamespace(**{**logged, **said})))
    return None if None in values else values


def consensus(of_runs: Sequence[tuple[object, ...]]) -> tuple[object, ...]:
    """What the judge said in most of its runs, of equally many what it said first."""
    return Counter(of_runs).most_common(1)[0][0]
