"""Labels found again among the pairs of the runs that they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.label.label_file import VerdictLabel
from lmms_eval_captions.lmms_eval_tasks.commands.label.pairs import Pair, judged_pairs, verdicts_of
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.verdicts.captioners import Captioner

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
    for label in labels:
        candidates = {
            name: places[name, label.task, label.video_id, label.place]
            for name in (captioner.name for captioner in captioners)
            if (name, label.task, label.video_id, label.place) in places
        }
        captioner = _captioner(label, candidates)
        if captioner in candidates:
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


def _captioner(label: VerdictLabel, candidates: Mapping[str, Pair]) -> str:
    """Whose caption a label is of, or why it is nobody's."""
    if not candidates:
        return "their task, video or question has no verdict there"
    digest = label.caption_digest
    same = [
        name
        for name, pair in candidates.items()
        if not digest or not pair.record.caption_digest or pair.record.caption_digest == digest
    ]
    if not same:
        return "they are of other captions"
    name = label.captioner if label.captioner in same else same[0]
    if len(same) > 1 and name != label.captioner:
        return f"several captioners may be meant by {label.captioner!r:.80}"
    if label.question and candidates[name].question not in ("", label.question):
        return "they are of other questions"
    return name


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
