"""What ``agree`` finds out, as records that tables and files are made of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite

from lmms_eval_captions.metrics.clusters import Slope
from lmms_eval_captions.metrics.intervals import Interval
from lmms_eval_captions.metrics.paired import Difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far raters say the same of the same units."""

    measure: str
    """``verdict`` for labels, else the metric of these numbers."""
    n_units: int
    """Questions times judge runs of which all raters said something."""
    n_unscored: int
    """Those of which at least one said nothing."""
    same: float | None
    """Share of the units of which all said the same, ``None`` without units."""
    kappa: Interval | None = None
    """Cohen's, of two raters' labels."""
    ac1: Interval | None = None
    """Gwet's, of labels."""
    alpha: Interval
    """Krippendorff's, nominal for labels and interval for numbers."""
    correlation: Interval | None = None
    """Pearson's, of two raters' numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How often one judge said one thing where the reference said another."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """A row for each label of the reference, a column for each of the other judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniency:
    """A metric under both judges over a part of the captions and questions."""

    section: str
    group: str
    metric: str
    n_units: int | None
    """Questions times judge runs; ``None`` where the agreement on them is not shown."""
    agreement: Interval | None
    """Kappa of labels, alpha of numbers, of these units."""
    reference: float
    other: float
    difference: Difference
    """The judge's value less that of the reference."""
    p_holm: float | None = None
    """Of a group: its p-value after Holm's correction over the section's groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The captioners under both judges by a metric."""

    metric: str
    reference: tuple[tuple[str, float], ...]
    """Captioners with their scores under the reference, the best first."""
    other: tuple[tuple[str, float], ...]
    tau_b: float
    """Rank correlation of the scores, in [-1, 1]; ``nan`` where all scores of a judge are equal."""
    swaps: tuple[Swap, ...]
    """Pairs of captioners that the judges order differently."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Two captioners whom two judges order differently."""

    captioners: tuple[str, str]
    """The reference's better one first."""
    reference: Difference
    """The first's score less the second's under the reference."""
    other: Difference

    @property
    def is_real(self) -> bool:
        """Whether both differences are more than what other videos would change."""
        return all(
            each.p_value is not None and each.p_value < _LEVEL
            for each in (self.reference, self.other)
        )


_LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a judge cost in the runs that are looked at, over all their tasks."""

    usd: float | None
    """US dollars of all calls, ``None`` where a price is not known."""
    n_calls: int
    n_unpaid: int
    """Replies that cost nothing here: earlier runs had paid for them, or an identical request."""
    usd_per_1000_verdicts: float | None
    """Dollars of 1,000 questions in one judge run if every reply is paid for, at what a call cost;
    ``None`` where no call was priced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFindings:
    """One judge by itself."""

    name: str
    n_runs: int
    n_captions: int
    price: Price
    own_runs: tuple[Agreement, ...]
    """Of its judge runs with one another; empty where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFindings:
    """A judge beside the reference."""

    reference: str
    other: str
    captioners: tuple[str, ...]
    """Those whose captions both judged."""
    n_captions: int
    n_videos: int
    left_out: dict[str, int]
    """What was left out, to the number of it."""
    agreements: tuple[Agreement, ...]
    confusion: Confusion | None
    leniency: tuple[Leniency, ...]
    """The first rows are those of all captions, one for each metric."""
    n_groups_left_out: int
    """Groups that have too few questions or are too many to show."""
    slope: Slope | None
    """Of the difference of the captions' scores, judge less reference, for 100 words more."""
    ranking: Ranking | None
    """``None`` for one captioner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All that is found out about the judges of one benchmark."""

    benchmark: str
    headline: str
    tasks: tuple[str, ...]
    captioners: tuple[str, ...]
    judges: tuple[JudgeFindings, ...]
    pairs: tuple[PairFindings, ...]
    """The reference with every other judge."""
    others: tuple[tuple[str, str, Agreement], ...]
    """Every two judges of which none is the reference, by what they say first."""
    together: tuple[Agreement, ...]
    """All judges at once; empty for fewer than three."""
    conclusions: tuple[str, ...]
    """A line for each judge."""

    def to_json(self) -> dict[str, object]:
        """Everything, of JSON's types: what has no value is null."""
        document = _plain(asdict(self))
        if not isinstance(document, dict):
            raise TypeError("findings are an object")
        return document


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return value
