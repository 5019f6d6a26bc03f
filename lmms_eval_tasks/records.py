"""One judged caption: what lmms-eval gathers, aggregates and writes into its samples.

lmms-eval knows items alone: a dictionary for each metric of each caption, which ranks send one
another as they are. :meth:`CaptionRecord.head` and what :mod:`hooks` adds to it are the only
place that makes an item, :meth:`CaptionRecord.read` the only one that reads it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast

Item = dict[str, object]
"""A caption's item of one metric, of JSON's types."""
Values = Sequence[Sequence[object]]
"""What a metric reads, shape (n_runs, n_values); ``None`` is unscored."""
Names = Sequence[Sequence[str | None]]
"""Name of each question's group, shape (n_runs, n_questions); ``None`` is in no group."""

V = TypeVar("V")

_HEAD: Final = (
    "task", "video_id", "judge", "runs", "protocol", "extras", "n_questions", "n_unscored",
    "n_empty", "n_dropped", "reasons", "no_caption", "questions", "evidence", "n_population",
)  # fmt: skip
_KEPT: Final = (
    "values", "groups", "asked", "n_words", "caption_digest", "sample", "unscored_because",
    "tokens",
)  # fmt: skip
"""What :meth:`CaptionRecord.kept` adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionRecord:
    """One judged caption."""

    task: str
    video_id: str
    judge: str
    """The judge as it is shown beside a score."""
    runs: int
    """Judge runs, 0 where the settings could not be used."""
    protocol: int
    extras: Mapping[str, str]
    """Further fields of the signature."""
    n_questions: int
    """Questions times judge runs."""
    n_unscored: int
    """Those without a verdict."""
    n_empty: int = 0
    """1 where the caption has no word, else 0."""
    n_dropped: int = 0
    """1 where there is no caption and it is left out of the task, else 0: it has no questions then,
    and no values, not even empty ones of each judge run."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why questions are unscored, to the number of them."""
    no_caption: str | None = None
    """Why there is no caption, ``None`` where there is one."""
    questions: str = ""
    """What stands for the questions that were asked, see :func:`questions_digest`; empty where
    there are none."""
    evidence: Mapping[str, object] = field(default_factory=dict)
    """What the judgements say of the judge, see :class:`judge_doubts.Evidence`; empty where none
    was asked."""
    n_population: int = 0
    """Questions times judge runs that there are, where a sample of them was asked (``n_questions``
    then counts those); else 0."""
    sample: Mapping[str, object] = field(default_factory=dict)
    """Which questions were asked, and what they stand for, as :class:`.sample_of_caption.Sample`
    writes it; empty where all were. ``values`` and ``groups`` hold a place for every question."""
    values: Mapping[str, Values] = field(default_factory=dict)
    """Metric to what it reads."""
    groups: Mapping[str, Names] = field(default_factory=dict)
    """Section of the breakdown to the group of each question."""
    asked: Sequence[str] = ()
    """The text of each question, shape (n_questions,), by which two captions of a video are
    compared; empty where the judge's replies say what is asked."""
    unscored_because: Names = ()
    """Reason for each question without a verdict, else ``None``, shape (n_runs, n_questions); empty
    if all are scored."""
    tokens: Sequence[Sequence[Sequence[int]]] = ()
    """Input and output tokens of each question, shape (n_runs, n_questions, 2); empty if the judge
    reported none."""
    n_words: int | None = None
    """Words of the caption, ``None`` where there is none."""
    caption_digest: str = ""
    """What stands for the caption, empty where there is none."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """What else the benchmark keeps of a caption."""

    def head(self) -> Item:
        """What every item of the caption begins with."""
        return {
            "task": self.task,
            "video_id": self.video_id,
            "judge": self.judge,
            "runs": self.runs,
            "protocol": self.protocol,
            "extras": dict(self.extras),
            "n_questions": self.n_questions,
            "n_unscored": self.n_unscored,
            "n_empty": self.n_empty,
            **({"n_dropped": self.n_dropped} if self.n_dropped else {}),
            **({} if self.no_caption is None else {"no_caption": self.no_caption}),
            "reasons": dict(self.reasons),
            **({"questions": self.questions} if self.questions else {}),
            **({"evidence": dict(self.evidence)} if self.evidence else {}),
            **({"n_population": self.n_population} if self.n_population else {}),
        }

    def kept(self, metrics: Iterable[str]) -> Item:
        """What lmms-eval gathers and saves for the breakdown: all that metrics read, once.

        Args:
            metrics: Those whose values are written, the others read the same.
        """
        return {
            **self.head(),
            "values": {name: self.values[name] for name in metrics},
            "groups": self.groups,
            "asked": self.asked,
            **({"unscored_because": self.unscored_because} if self.unscored_because else {}),
            **({"tokens": self.tokens} if self.tokens else {}),
            "n_words": self.n_words,
            "caption_digest": self.caption_digest,
            **({"sample": self.sample} if self.sample else {}),
            **self.fields,
        }

    @classmethod
    def read(cls, item: Mapping[str, object], **values: str) -> CaptionRecord:
        """The record of an item, with what the item holds of it.

        Args:
            item: An item of any metric, complete.
            values: Metric to the item's field that holds what the metric reads.

        Raises:
            TypeError: If a field is missing or of another type.
        """
        stored = item.get("values", {})
        return cls(
            task=_get(item, "task", str),
            video_id=_get(item, "video_id", str),
            judge=_get(item, "judge", str),
            runs=_get(item, "runs", int),
            protocol=_get(item, "protocol", int),
            extras=_get(item, "extras", dict),
            n_questions=_get(item, "n_questions", int),
            n_unscored=_get(item, "n_unscored", int),
            n_empty=_get(item, "n_empty", int),
            n_dropped=_get(item, "n_dropped", int) if "n_dropped" in item else 0,
            reasons=_get(item, "reasons", dict),
            no_caption=_get(item, "no_caption", str) if "no_caption" in item else None,
            questions=_get(item, "questions", str) if "questions" in item else "",
            evidence=_get(item, "evidence", dict) if "evidence" in item else {},
            n_population=_get(item, "n_population", int) if "n_population" in item else 0,
            sample=_get(item, "sample", dict) if "sample" in item else {},
            values={
                **cast("dict[str, Values]", stored),
                **{metric: _get(item, name, list) for metric, name in values.items()},
            },
            groups=cast("dict[str, Names]", item.get("groups", {})),
            asked=cast("Sequence[str]", item.get("asked", ())),
            unscored_because=cast("Names", item.get("unscored_because", ())),
            tokens=cast("Sequence[Sequence[Sequence[int]]]", item.get("tokens", ())),
            n_words=cast("int | None", item.get("n_words")),
            caption_digest=cast("str", item.get("caption_digest", "")),
            fields={name: value for name, value in item.items() if name not in (*_HEAD, *_KEPT)},
        )


class PendingRecord(dict[str, object]):
    """An item that the judgements of its caption fill in place.

    Pickling (how ranks gather) and aggregating wait for them; until then it is empty.
    """

    def __init__(self, resolve: Callable[[], Item]) -> None:
        super().__init__()
        self._resolve: Callable[[], Item] | None = resolve

    def wait(self) -> PendingRecord:
        """Fill the item; returns at once where that was done before."""
        if self._resolve is not None:
            self.update(self._resolve())
            self._resolve = None
        return self

    def __reduce__(self) -> tuple[Callable[..., Item], tuple[object, ...]]:
        return dict, (dict(self.wait()),)


def resolve(items: Iterable[Item]) -> list[Item]:
    """Wait for every item; those that came from other ranks are complete already."""
    return [item.wait() if isinstance(item, PendingRecord) else item for item in items]


def _get(item: Mapping[str, object], name: str, kind: type[V]) -> V:
    value = item.get(name)
    if not isinstance(value, kind):
        raise TypeError(f"expected {name!r} of type {kind.__name__} in a record, got {value!r:.80}")
    return value
