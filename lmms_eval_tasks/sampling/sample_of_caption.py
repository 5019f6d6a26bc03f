"""Which of a caption's questions were asked, and what each of them stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Of one caption, as its record's ``sample`` holds it."""

    weights: Sequence[float]
    """Shape (n_questions,): how many questions each stands for; 0 where it was not asked, 1 where
    it stands for itself alone."""
    strata: Sequence[int]
    """Shape (n_questions,): the stratum that it was drawn in, -1 for none."""
    rank: int
    """The process whose strata these are."""
    lam: float = 0.0
    """Trust in the cheap judge, in [0, 1]."""
    cheap: Mapping[str, Values] = field(default_factory=dict)
    """Metric to what it reads of the cheap judge's verdicts on all questions, in one judge run;
    empty without one."""

    @property
    def n_asked(self) -> int:
        """Questions that were asked."""
        return sum(weight > 0 for weight in self.weights)

    @property
    def is_whole(self) -> bool:
        """Whether every question stands for itself, as without a sample, and nothing is kept."""
        return not self.cheap and all(weight == 1 for weight in self.weights)

    def to_item(self) -> Item:
        """As records hold it."""
        return asdict(self)

    @classmethod
    def of(cls, record: CaptionRecord) -> Sample | None:
        """That of a record, ``None`` where every question was asked.

        Raises:
            TypeError: If it is not what :meth:`to_item` makes.
        """
        return cls(**cast("dict[str, Any]", record.sample)) if record.sample else None

    def of_metric(self, name: str) -> Sample:
        """The same, with what this metric reads alone."""
        return replace(
            self, cheap={metric: v for metric, v in self.cheap.items() if metric == name}
        )
