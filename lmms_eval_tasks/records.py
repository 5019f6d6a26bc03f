"""One judged caption: what lmms-eval gathers, aggregates and writes into its samples.

lmms-eval knows only items: a dictionary for each metric of each caption, pickled between ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from lmms_eval_captions.judges.errors import Failure
from lmms_eval_captions.lmms_eval_tasks.judge_check import Evidence

Item = dict[str, object]
"""A caption's item of one metric, of JSON's types."""
Values = Sequence[Sequence[object]]
"""Values that a metric reads, shape (n_runs, n_values); ``None`` is unscored."""
Names = Sequence[Sequence[str | None]]
"""Name of each question's group, shape (n_runs, n_questions); ``None`` is in no group."""
Kind = Failure | Literal["missing", "empty", "not asked"]
"""Kind of reason of an unscored question: a failure of the judge, a caption that is missing or
without a word, or no score whatever the judge replies."""
KINDS: Final[tuple[Kind, ...]] = (*get_args(Failure), "missing", "empty", "not asked")

NOTHING_TO_JUDGE: Final = "the caption is empty"
NO_CAPTION: Final = "no caption: "
"""Beginning of the reason if a caption is not there."""

_HEAD: Final = (
    "task", "video_id", "judge", "runs", "protocol", "extras", "n_questions", "n_unscored",
    "n_empty", "reasons",
)  # fmt: skip
_HEAD_IF_ANY: Final = (
    "n_dropped", "no_caption", "questions", "n_population", "caption_digest", "suspicious",
)  # fmt: skip
"""Left out of an item if empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The asked questions of one caption, and what they stand for."""

    weights: list[float]
    """Shape (n_questions,): questions that each verdict stands for; 0 if it was not asked."""
    lam: float = 0.0
    """Trust in the cheap judge, in [0, 1]."""
    cheap: Mapping[str, Values] = field(default_factory=dict)
    """Values that each metric reads of the cheap judge's verdicts on all questions, in one judge
    run; empty without one."""

    @property
    def is_whole(self) -> bool:
        """True if all questions were asked."""
        return not self.cheap and all(weight == 1 for weight in self.weights)


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
    """1 where there is no caption and it is left out of the task, without questions and values."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why questions are unscored, to the number of them."""
    kinds: Mapping[Kind, int] = field(default_factory=dict)
    """The same by kind of reason."""
    no_caption: str | None = None
    """Why there is no caption, ``None`` where there is one."""
    questions: str = ""
    """Digest of the questions that were asked, see :func:`questions_digest`; empty without."""
    evidence: Evidence = field(default_factory=Evidence)
    """Counts of the judge's replies, from which doubts about it follow."""
    n_population: int = 0
    """All questions times judge runs, if a sample of them was asked (``n_questions``); else 0."""
    sample: Sample | None = None
    """``None`` if all questions were asked; ``values`` and ``groups`` are those of all anyway."""
    values: Mapping[str, Values] = field(default_factory=dict)
    """Metric to what it reads."""
    groups: Mapping[str, Names] = field(default_factory=dict)
    """Section of the breakdown to the group of each question."""
    asked: Sequence[str] = ()
    """Texts of the questions, shape (n_questions,); empty if only replies say what is asked."""
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


class PendingRecord(dict[str, object]):
    """An item that pickling (how ranks gather) and aggregating fill in place, with its record."""

    def __init__(self, judged: Callable[[], tuple[CaptionRecord, Item]]) -> None:
        super().__init__()
        self._judged: Callable[[], tuple[CaptionRecord, Item]] | None = judged
        self._record: CaptionRecord

    def wait(self) -> PendingRecord:
        """Fill the item; returns at once if that was done before."""
        if self._judged is not None:
            self._record, item = self._judged()
            self.update(item)
            self._judged = None
        return self

    @property
    def record(self) -> CaptionRecord:
        """The caption's record."""
        return self.wait()._record

    def __reduce__(self) -> tuple[Callable[..., Item], tuple[object, ...]]:
        return arrived, (self.record, dict(self))


def arrived(record: CaptionRecord, item: Item) -> PendingRecord:
    """Return a complete item."""
    return PendingRecord(lambda: (record, item)).wait()


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value
