"""Gates: decide by the interval of the difference if a captioner may replace the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isnan
from typing import Final, Literal, NamedTuple

from lmms_eval_captions.analysis.captioners import common_names
from lmms_eval_captions.analysis.compare.comparison import Cell, Comparer, Document
from lmms_eval_captions.analysis.tables import interval_text
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.metrics.paired import Difference, videos_to_settle

Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]

_BOUND: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?"
_GATE: Final = re.compile(
    rf"\s*(?:(?P<name>\w+)\s*:)?\s*(?P<metric>\w+)\s*(?P<sign>>=|<=)\s*(?P<bound>{_BOUND})\s*"
)


class Gate(NamedTuple):
    """A bound on the difference of a metric, a captioner minus the first."""

    text: str
    name: str
    """Task or group; empty for the first that is compared and has the metric."""
    metric: str
    is_lower: bool
    """True if the difference must be at least the bound, else at most."""
    bound: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read a gate.

        Raises:
            SettingsError: If the text is none.

        >>> Gate.parse("vdc_camera:vdc_acc >= -0.5").bound
        -0.5
        """
        match = _GATE.fullmatch(text)
        if match is None:
            raise SettingsError(
                "--gate: expected [TASK:]METRIC>=BOUND or [TASK:]METRIC<=BOUND, such as "
                f"'vdc_acc>=-0.5' or 'vcapsbench:ir<=0.5', got {text!r:.80}"
            )
        is_lower, bound = match["sign"] == ">=", float(match["bound"])
        return cls(text.strip(), match["name"] or "", match["metric"], is_lower, bound)


def decide(comparer: Comparer, gates: Sequence[Gate], names: Sequence[str]) -> list[Document]:
    """Decide gates for each captioner except the first; return the decisions as JSON.

    GO if the whole interval keeps the bound, NO-GO if all of it breaks the bound. The interval is
    that of the one difference, as gates are stated beforehand. Numbers with warnings decide
    nothing. ``names`` are the tasks and groups that are compared.

    Raises:
        SettingsError: If a gate's metric or task is missing.
        DataError: If captions were judged in different ways.
    """
    return [decided for gate in gates for decided in _decide(comparer, gate, names)]


def exit_code(decided: Sequence[Document]) -> int:
    """Return 1 if any gate is broken, else 3 if any is open, else 0."""
    decisions = {of["decision"] for of in decided}
    return 1 if "NO-GO" in decisions else 3 if "INCONCLUSIVE" in decisions else 0


def _decide(comparer: Comparer, gate: Gate, names: Sequence[str]) -> Iterator[Document]:
    common, what = common_names(comparer.captioners), f"--gate {gate.text!r:.80}"
    if gate.name and gate.name not in common:
        raise SettingsError(
            f"{what}: expected any of {', '.join(common)}, which all results have, got "
            f"{gate.name!r:.80}"
        )
    wanted = [gate.name] if gate.name else names
    metrics = {name: comparer.aligned(name)[0][0].benchmark.metrics for name in wanted}
    name = next((name for name in wanted if gate.metric in metrics[name]), None)
    if name is None:
        known = dict.fromkeys(metric for of in metrics.values() for metric in of)
        raise SettingsError(
            f"{what}: expected any metric of {', '.join(known)}, got {gate.metric!r:.80}"
        )
    sides, counts, warnings = comparer.aligned(name)
    contrasts = comparer.contrasts(sides[0].benchmark).get(Cell(name, gate.metric))
    if contrasts is None:
        raise SettingsError(
            f"{what}: {gate.metric} cannot be computed of these results: see `lmms-eval-captions "
            "check`"
        )
    left_out = counts.left_out()
    for other in range(1, len(sides)):
        found = contrasts[0, other].difference
        decision: Decision = "INCONCLUSIVE" if warnings else _decision(gate, found)
        is_open = decision == "INCONCLUSIVE" and not warnings
        n_videos = videos_to_settle(found, margin=gate.bound) if is_open else None
        shown = interval_text(found.difference, found.low, found.high, sign="+")
        words = (
            f"{decision}: {gate.text} on {name}, {comparer.names[other]} minus "
            f"{comparer.names[0]}: {shown}{f' (left out: {left_out})' if left_out else ''}"
        )
        if warnings:
            words += f"; these numbers decide nothing: {'; '.join(warnings)}"
        elif not is_open:
            words += "."
        elif n_videos is None:
            words += f": {found.note or 'more videos would not settle it'}."
        else:
            words += (
                f": the interval contains the bound. About {n_videos:,} videos like these (now "
                f"{found.n_videos:,}) would settle it if the difference is as large as it seems."
            )
        yield {
            "gate": gate.text, "task": name, "captioner": comparer.names[other],
            "baseline": comparer.names[0], "decision": decision, "difference": found.difference,
            "low": found.low, "high": found.high, "n_videos": found.n_videos,
            "n_videos_to_settle": n_videos, "left_out": left_out, "words": words,
        }  # fmt: skip


def _decision(gate: Gate, found: Difference) -> Decision:
    low, high = found.low, found.high
    if low is None or high is None:
        if isnan(found.difference) or found.n_moved or found.n_videos < 2:
            return "INCONCLUSIVE"
        low = high = found.difference  # the captioners are identical
    sign = 1 if gate.is_lower else -1
    worst, best = sorted((sign * low, sign * high))
    if worst >= sign * gate.bound:
        return "GO"
    return "NO-GO" if best < sign * gate.bound else "INCONCLUSIVE"
