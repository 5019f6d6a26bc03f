"""A number with how sure it is, as our files hold it and as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.metrics.intervals import Interval

CI_LOW: Final = "ci_low"
CI_HIGH: Final = "ci_high"
CI_NOTE: Final = "ci_note"
_JUDGE_SHARE: Final = "judge_share"
_DEVIATION: Final = "std"
BESIDE: Final = tuple(f"_{name}" for name in (CI_LOW, CI_HIGH, CI_NOTE, _JUDGE_SHARE, _DEVIATION))
"""How the names end of what stands beside a metric in a flat table, and is none."""
_Z_95: Final = 1.96
"""Standard errors on each side of a value that an earlier version showed as its interval."""
_ROUNDING: Final = 1e-9
"""A smaller standard error is one of 0."""

Figure = float | int | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric of a task or a group."""

    value: float | None = None
    """Mean over judge runs; ``None`` where it has no value."""
    standard_error: float | None = None
    """Over videos, in the metric's unit."""
    low: float | None = None
    high: float | None = None
    """Ends of its 95% interval in the metric's unit; ``None`` where it has none."""
    note: str = ""
    """Why it has none, or what must be known of it; else empty."""
    deviation: float | None = None
    """Of judge runs around their mean; ``None`` with one run."""
    judge_share: float | None = None
    """Part of the interval's variance that is the judge's, in [0, 1]; ``None`` with one run."""

    @classmethod
    def of(cls, found: Interval, bounds: tuple[float, float], deviation: float | None) -> Measured:
        """A metric by the interval of its share of the way from its lowest to its highest value.

        Args:
            found: The interval.
            bounds: The metric's lowest and highest value.
            deviation: See :attr:`deviation`.
        """
        lowest, highest = bounds

        def scaled(share: float | None, start: float = lowest) -> float | None:
            if share is None or not isfinite(share):
                return None
            return start + (highest - lowest) * share

        return cls(
            value=scaled(found.value),
            standard_error=scaled(found.standard_error, 0.0),
            low=scaled(found.low),
            high=scaled(found.high),
            note=found.note,
            deviation=deviation,
            judge_share=found.judge_share,
        )

    @classmethod
    def none(cls, why: str) -> Measured:
        """No interval, and why."""
        return cls(value=None, note=f"no interval: {why}")

    @classmethod
    def read(cls, figures: Mapping[str, object]) -> Measured:
        """The metric of a judging document, also of an earlier version's."""
        value, error = _number(figures.get("value")), _number(figures.get("standard_error"))
        low, high = _number(figures.get(CI_LOW)), _number(figures.get(CI_HIGH))
        if CI_LOW not in figures and value is not None and error is not None and error > _ROUNDING:
            low, high = value - _Z_95 * error, value + _Z_95 * error
        return cls(
            value=value,
            standard_error=error,
            low=low,
            high=high,
            note=str(figures.get(CI_NOTE) or ""),
            deviation=_number(figures.get(_DEVIATION)),
            judge_share=_number(figures.get(_JUDGE_SHARE)),
        )

    def beside(self, metric: str = "", *, has_runs: bool) -> dict[str, Figure]:
        """What files hold of it beside the value and the standard error.

        Args:
            metric: Name of the metric, in a table of several.
            has_runs: Whether the judge judged several times.
        """
        figures = {
            **({_DEVIATION: self.deviation} if has_runs else {}),
            CI_LOW: self.low,
            CI_HIGH: self.high,
            **({_JUDGE_SHARE: self.judge_share} if has_runs else {}),
            **({CI_NOTE: self.note} if self.note else {}),
        }
        return {f"{metric}_{name}" if metric else name: one for name, one in figures.items()}

    def __str__(self) -> str:
        """The value, with its 95% interval where it has one.

        >>> str(Measured(value=54.166, low=50.0, high=58.5)), str(Measured(value=54.166))
        ('54.17 [50.00, 58.50]', '54.17')
        """
        if self.value is None:
            return "nan"
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def judge_part(self) -> str:
        """What several judge runs tell of the judge, empty with one run.

        >>> Measured(value=54.166, deviation=0.312, judge_share=0.123).judge_part
        '0.31 (12%)'
        """
        if self.deviation is None:
            return ""
        share = "" if self.judge_share is None else f" ({self.judge_share:.0%})"
        return f"{self.deviation:.2f}{share}"

    @property
    def judge_words(self) -> str:
        """The same in words.

        >>> Measured(value=54.166, deviation=0.312, judge_share=0.123).judge_words
        "standard deviation 0.31; 12% of the interval's variance is the judge's"
        """
        words = [
            *([f"standard deviation {self.deviation:.2f}"] if self.deviation is not None else []),
            *(
                [f"{self.judge_share:.0%} of the interval's variance is the judge's"]
                if self.judge_share is not None
                else []
            ),
        ]
        return "; ".join(words)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
