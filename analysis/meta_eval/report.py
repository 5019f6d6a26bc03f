"""What ``meta-eval`` reports: a row for each metric, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.metrics.correlation import annotator_tau

SEED: Final = 0
"""Seed of the intervals' draws, the same for every row."""
PAPER: Final = {
    "BLEU-1": "40.7 / 41.2", "BLEU-4": "34.0 / 34.4", "ROUGE-L": "39.8 / 40.2",
    "METEOR": "45.4 / 45.9", "CIDEr": "37.3 / 37.7",
    "G-VEval ref_only avg": "60.4 / 61.1", "G-VEval ref_free avg": "59.6 / 60.3",
    "G-VEval combined avg": "62.9 / 63.7",
    "G-VEval ref_only accuracy": "60.4", "G-VEval ref_only completeness": "54.2",
    "G-VEval ref_only conciseness": "55.2", "G-VEval ref_only relevance": "52.5",
    "G-VEval ref_free accuracy": "55.3", "G-VEval ref_free completeness": "49.7",
    "G-VEval ref_free conciseness": "62.2", "G-VEval ref_free relevance": "53.4",
    "G-VEval combined accuracy": "61.4", "G-VEval combined completeness": "57.6",
    "G-VEval combined conciseness": "58.5", "G-VEval combined relevance": "53.0",
}  # fmt: skip
"""What the paper prints, tau-b / tau-c x 100. Source: G-VEval, Tables 4 and 5 (tau-b alone)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one metric agrees with the annotators, correlations in percent."""

    metric: str
    rating: str
    """Which of the annotators' ratings it is compared with."""
    n_items: int
    """Candidates that the metric has a value for."""
    tau_b: float
    interval_b: tuple[float, float]
    tau_c: float
    interval_c: tuple[float, float]
    paper: str = ""
    note: str = ""
    """Why there is no correlation, or what must be known about it."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How well the annotators agree among themselves, correlations in percent."""

    rating: str
    tau_b: float
    tau_c: float

    @classmethod
    def of(
        cls, rating: str, ratings: Sequence[Sequence[float]], *, are_known: bool = True
    ) -> Ceiling:
        """That of some ratings, see :func:`annotator_tau`."""
        tau_b, tau_c = (
            100 * annotator_tau(ratings, variant=v, are_known=are_known) for v in ("b", "c")
        )
        return cls(rating, tau_b, tau_c)

    def shown(self) -> str:
        """Both correlations; nothing where there is one annotator."""
        return "" if isnan(self.tau_b) else f"{self.tau_b:.1f} / {self.tau_c:.1f}"


@dataclass(frozen=True, slots=True)
class Report:
    """All rows, and what they were computed with."""

    title: str
    """What was rated, in a few words."""
    counting: str
    """What Kendall's tau is of."""
    n_ratings: int
    n_resamples: int
    rows: tuple[Agreement, ...]
    ceilings: tuple[Ceiling, ...]
    """For each rating that a row is about."""
    notes: tuple[str, ...]
    """Signatures, and what could not be computed."""

    def to_json(self) -> dict[str, object]:
        """Everything, for a file."""
        return asdict(self)


def table(report: Report) -> str:
    """The report as text: a line for each row, then the notes."""
    head = ("metric", "rating", "n", "tau-b", "95%", "tau-c", "95%", "annotators b / c",
            "paper b / c", "")  # fmt: skip
    among = {ceiling.rating: ceiling.shown() for ceiling in report.ceilings}
    lines = [head] + [
        (
            row.metric,
            row.rating,
            str(row.n_items),
            f"{row.tau_b:.1f}",
            "[{:.1f}, {:.1f}]".format(*row.interval_b),
            f"{row.tau_c:.1f}",
            "[{:.1f}, {:.1f}]".format(*row.interval_c),
            among.get(row.rating, ""),
            row.paper,
            row.note,
        )
        for row in report.rows
    ]
    text = [
        f"{report.title}, {report.n_ratings:,} ratings. Kendall's tau x 100 with "
        f"{report.counting};",
        f"95% intervals from {report.n_resamples:,} draws of the candidates (seed {SEED}); "
        "annotators: how well one of them agrees with another.",
        "",
    ]
    return "\n".join([*text, *text_table(lines), "", *report.notes]).rstrip()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often one metric prefers the right caption of a pair, in percent."""

    metric: str
    n_pairs: int
    """Pairs that the metric has both values of."""
    accuracy: float
    interval: tuple[float, float]
    n_ties: int
    """Pairs with two equal values, which count as wrong."""
    paper: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PairReport:
    """All rows of pairs, and what they were computed with."""

    n_pairs: int
    n_references: int
    rows: tuple[Accuracy, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Everything, for a file."""
        return asdict(self)


def pair_table(report: PairReport) -> str:
    """The report as text: a line for each metric, then the notes."""
    lines = [("metric", "pairs", "accuracy", "95%", "ties", "paper", "")] + [
        (
            row.metric,
            f"{row.n_pairs:,}",
            f"{row.accuracy:.1f}",
            "[{:.1f}, {:.1f}]".format(*row.interval),
            f"{row.n_ties:,}",
            row.paper,
            row.note,
        )
        for row in report.rows
    ]
    text = [
        f"FOIL: {report.n_pairs:,} pairs, {report.n_references} reference(s). Share in % in which "
        "the right caption has the higher value; a tie is wrong.",
        "",
    ]
    return "\n".join([*text, *text_table(lines), "", *report.notes]).rstrip()
