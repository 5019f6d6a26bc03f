"""What ``meta-eval`` reports: a row for each metric, beside what the paper prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

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
class Report:
    """All rows, and what they were computed with."""

    n_items: int
    n_ratings: int
    n_resamples: int
    rows: tuple[Agreement, ...]
    notes: tuple[str, ...]
    """Signatures, and what could not be computed."""

    def to_json(self) -> dict[str, object]:
        """Everything, for a file."""
        return asdict(self)


def table(report: Report) -> str:
    """The report as text: a line for each row, then the notes."""
    head = ("metric", "rating", "n", "tau-b", "95%", "tau-c", "95%", "paper b / c", "")
    lines = [head] + [
        (
            row.metric,
            row.rating,
            str(row.n_items),
            f"{row.tau_b:.1f}",
            "[{:.1f}, {:.1f}]".format(*row.interval_b),
            f"{row.tau_c:.1f}",
            "[{:.1f}, {:.1f}]".format(*row.interval_c),
            row.paper,
            row.note,
        )
        for row in report.rows
    ]
    text = [
        f"MSVD-Eval: {report.n_items} candidates, {report.n_ratings} ratings. Kendall's tau x 100 "
        "with every rating, not their mean;",
        f"95% intervals from {report.n_resamples:,} draws of the candidates (seed {SEED}).",
        "",
    ]
    return "\n".join([*text, *text_table(lines), "", *report.notes]).rstrip()
