"""Gates: whether a captioner may take the place of the first, by the interval of the difference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Final, Literal

from lmms_eval_captions.analysis.compare.comparison import Comparer
from lmms_eval_captions.analysis.compare.rows import row_of
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.metrics.paired import Difference, videos_to_settle

Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]

EXIT_CODES: Final[dict[Decision, int]] = {"GO": 0, "NO-GO": 1, "INCONCLUSIVE": 3}
_GATE: Final = re.compile(
    r"\s*(?:(?P<name>\w+)\s*:)?\s*(?P<metric>\w+)\s*(?P<sign>>=|<=)\s*(?P<bound>[-+.\w]+)\s*"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """A bound on the difference of a metric, the captioner's less the first one's."""

    text: str
    name: str
    """Task or group; empty for the first that is compared and has the metric."""
    metric: str
    is_lower: bool
    """Whether the difference must be at least the bound; else at most."""
    bound: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """The gate that a text is.

        Raises:
            SettingsError: If it is none.

        >>> Gate.parse("vdc_camera:vdc_acc >= -0.5").bound
        -0.5
        """
        match = _GATE.fullmatch(text)
        try:
            bound = float(match["bound"]) if match else float("nan")
        except ValueError:
            bound = float("nan")
        if match is None or not isfinite(bound):
            raise SettingsError(
                "--gate: expected [TASK:]METRIC>=BOUND or [TASK:]METRIC<=BOUND, such as "
                f"'vdc_acc>=-0.5' or 'vcapsbench:ir<=0.5', got {text!r:.80}"
            )
        return cls(text.strip(), match["name"] or "", match["metric"], match["sign"] == ">=", bound)


@dataclass(frozen=True, slots=True)
class Decided:
    """What a gate says of one captioner."""

    gate: Gate
    name: str
    """Task or group that was looked at."""
    other: int
    """Place of the captioner."""
    difference: Difference
    decision: Decision
    n_videos: int | None
    """Videos that would settle it, were the difference what it seems now; ``None`` where it is
    settled or that cannot be told."""
    left_out: str = ""
    """What was not compared, such as captions that not all have, else empty."""
    why: str = ""
    """Why nothing can be decided whatever the interval, else empty."""


def decide(comparer: Comparer, gates: Sequence[Gate], names: Sequence[str]) -> list[Decided]:
    """What gates say of each captioner but the first.

    GO where the whole interval keeps the bound, NO-GO where all of it breaks the bound. Numbers
    that must not be used decide nothing.

    Args:
        comparer: The captioners.
        gates: All that must be kept.
        names: Tasks and groups that are compared.

    Raises:
        SettingsError: If a gate's metric or task is not there.
        DataError: As :meth:`Comparer.aligned`.
    """
    return [
        decided
        for gate in gates
        for decided in _decide(comparer, gate, _name(comparer, gate, names))
    ]


def exit_code(decided: Sequence[Decided]) -> int:
    """1 where any gate is broken, else 3 where any is open, else 0."""
    decisions = {one.decision for one in decided}
    worst: Decision = next((d for d in ("NO-GO", "INCONCLUSIVE") if d in decisions), "GO")
    return EXIT_CODES[worst]


def _name(comparer: Comparer, gate: Gate, names: Sequence[str]) -> str:
    """The task or group that a gate is about."""
    common = [
        n for n in comparer.captioners[0].runs if all(n in c.runs for c in comparer.captioners)
    ]
    if gate.name and gate.name not in common:
        raise SettingsError(
            f"--gate {gate.text!r:.80}: expected any of {', '.join(common)}, which all results "
            f"have, got {gate.name!r:.80}"
        )
    asked = [gate.name] if gate.name else names
    known = {name: comparer.aligned(name)[0].verdicts[0].benchmark.metrics for name in asked}
    for name in asked:
        if gate.metric in known[name]:
            return name
    metrics = dict.fromkeys(metric for of_name in known.values() for metric in of_name)
    raise SettingsError(
        f"--gate {gate.text!r:.80}: expected any metric of {', '.join(metrics)}, got "
        f"{gate.metric!r:.80}"
    )


def _decide(comparer: Comparer, gate: Gate, name: str) -> list[Decided]:
    aligned, warnings = comparer.aligned(name)
    row = row_of(aligned.verdicts, gate.metric)
    if row is None:
        raise SettingsError(
            f"--gate {gate.text!r:.80}: {gate.metric} cannot be computed of these results: see "
            "`lmms-eval-captions check`"
        )
    decided = []
    for place, contrast in enumerate(row.contrasts, start=1):
        found = contrast.difference
        decision: Decision = "INCONCLUSIVE" if warnings else _decision(gate, found)
        is_open = decision == "INCONCLUSIVE" and not warnings
        n_videos = videos_to_settle(found, margin=gate.bound) if is_open else None
        left_out, why = aligned.counts.words(), "; ".join(warnings)
        decided.append(Decided(gate, name, place, found, decision, n_videos, left_out, why))
    return decided


def _decision(gate: Gate, found: Difference) -> Decision:
    if isnan(found.difference):
        return "INCONCLUSIVE"
    low, high = found.low, found.high
    if low is None or high is None:
        if found.n_moved or found.n_videos < 2:
            return "INCONCLUSIVE"
        low = high = found.difference  # the captioners are identical
    if not gate.is_lower:
        low, high = -high, -low
    bound = gate.bound if gate.is_lower else -gate.bound
    if low >= bound:
        return "GO"
    return "NO-GO" if high < bound else "INCONCLUSIVE"
