"""One judged caption: what lmms-eval gathers, aggregates and writes into its samples.

lmms-eval knows only items: a dictionary for each metric of each caption, which ranks send one
another as they are. The headline's item holds the whole record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

Item = dict[str, object]
"""A caption's item of one metric, of JSON's types."""
Values = Sequence[Sequence[object]]
"""Values that a metric reads, shape (n_runs, n_values); ``None`` is unscored."""
Names = Sequence[Sequence[str | None]]
"""Name of each question's group, shape (n_runs, n_questions); ``None`` is in no group."""

V = TypeVar("V")

NOTHING_TO_JUDGE: Final = "the caption is empty"
NO_CAPTION: Final = "no caption: "
"""Beginning of the reason if a caption is not there."""
RECORD: Final = "record"
"""Key of the headline's item that holds the record."""

_HEAD: Final[Mapping[str, type]] = {
    "task": str, "video_id": str, "judge": str, "runs": int, "protocol": int, "extras": dict,
    "n_questions": int, "n_unscored": int, "n_empty": int, "reasons": dict,
}  # fmt: skip
_HEAD_IF_ANY: Final[Mapping[str, type]] = {
    "n_dropped": int, "no_caption": str, "questions": str, "evidence": dict, "n_population": int,
    "caption_digest": str, "suspicious": str,
}  # fmt: skip
"""Left out of an item if empty."""
_WHOLE: Final = (
    "values", "groups", "asked", "unscored_because", "tokens", "n_words", "sample", "fields",
)  # fmt: skip


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
    """Questions times judge runs without a verdict."""
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
    """Digest of the questions that were asked, see :func:`questions_digest`; empty where
    there are none."""
    evidence: Mapping[str, object] = field(default_factory=dict)
    """Evidence about the judge, see :class:`judge_doubts.Evidence`; empty where none
    was asked."""
    n_population: int = 0
    """Questions times judge runs that there are, where a sample of them was asked (``n_questions``
    then counts those); else 0."""
    sample: Mapping[str, object] = field(default_factory=dict)
    """Which questions were asked, and what they stand for, as :class:`sampling.weights.Sample`
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
    """Digest of the caption, empty without one."""
    suspicious: str = ""
    """Beginning of a caption that cannot be one, such as an error of an API, else empty."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the benchmark."""

    def head(self) -> Item:
        """Return what every item of the caption begins with."""
        head = {name: _plain(getattr(self, name)) for name in _HEAD}
        return head | {name: _plain(v) for name in _HEAD_IF_ANY if (v := getattr(self, name))}

    def whole(self, metrics: Iterable[str]) -> Item:
        """Return all else, for the headline's item.

        Args:
            metrics: Those whose values are written; the others read the same.
        """
        whole = {name: _plain(getattr(self, name)) for name in _WHOLE}
        return whole | {"values": {name: self.values[name] for name in metrics}}

    @classmethod
    def read(cls, item: Mapping[str, object], **values: str) -> CaptionRecord:
        """Read what the item of a metric holds of the record.

        Args:
            item: Complete.
            values: Metric to the item's key of what the metric reads.

        Raises:
            TypeError: If a part is missing or of another type.
        """
        return cls(
            **_head_of(item),
            values={metric: _get(item, name, list) for metric, name in values.items()},
            sample=_get(item, "sample", dict) if "sample" in item else {},
            fields=_get(item, "fields", dict) if "fields" in item else {},
        )

    @classmethod
    def read_whole(cls, item: Mapping[str, object]) -> CaptionRecord:
        """Read the record of a headline's item.

        Raises:
            TypeError: If a part is missing or of another type.
        """
        whole = _get(item, RECORD, dict)
        return cls(**_head_of(item), **{name: whole[name] for name in _WHOLE})


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


def _head_of(item: Mapping[str, object]) -> dict[str, Any]:
    kinds = {**_HEAD, **{name: of for name, of in _HEAD_IF_ANY.items() if name in item}}
    return {name: _get(item, name, kind) for name, kind in kinds.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _get(item: Mapping[str, object], name: str, kind: type[V]) -> V:
    value = item.get(name)
    if not isinstance(value, kind):
        raise TypeError(f"expected {name!r} of type {kind.__name__} in a record, got {value!r:.80}")
    return value
