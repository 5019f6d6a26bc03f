"""Gates: decide by the interval of the difference if a captioner may replace the first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, Literal, NamedTuple

from lmms_eval_captions.analysis.captioners import common_names
from lmms_eval_captions.analysis.compare.comparison import Cell, Comparer, Document
from lmms_eval_captions.analysis.tables import interval_text
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.metrics.paired import Difference, videos_to_settle

Decision = Literal["GO", "NO-GO", "INCONCLUSIVE"]

_BOUND: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?"
_GATE: Final = re.compile(rf"\s*(?:(\w+)\s*:)?\s*(\w+)\s*(>=|<=)\s*({_BOUND})\s*")


class Gate(NamedTuple):
    """A bound on the difference of a metric, a captioner minus the first."""

    text: str
    name: str
    """Task or group; empty for the first that is compared and has the metric."""
    metric: str
    sign: int
    """1 if the difference must be at least the bound, -1 for at most."""
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
        sign = 1 if match[3] == ">=" else -1
        return cls(text.strip(), match[1] or "", match[2], sign, float(match[4]))


def exit_code(decided: Sequence[Document]) -> int:
    """Return 1 if any gate is broken, else 3 if any is open, else 0."""
    decisions = {of["decision"] for of in decided}
    return 1 if "NO-GO" in decisions else 3 if "INCONCLUSIVE" in decisions else 0


def decide(comparer: Comparer, gate: Gate, names: Sequence[str]) -> Iterator[Document]:
    """Decide a gate for each captioner except the first; yield the decisions as JSON.

    GO if the whole interval keeps the bound, NO-GO if all of it breaks the bound. The interval is
    that of the one difference, as gates are stated beforehand. Numbers with warnings decide
    nothing. ``names`` are the tasks and groups that are compared.

    Raises:
        SettingsError: If a gate's metric or task is missing.
        DataError: If captions were judged in different ways.
    """
    common, what = common_names(comparer.captioners), f"--gate {gate.text!r:.80}"
    wanted = [gate.name] if gate.name in common else names
    metrics = {name: comparer.aligned(name)[0][0].benchmark.metrics for name in wanted}
    own = [name for name in wanted if gate.name in ("", name) and gate.metric in metrics[name]]
    if not own:
        known, got = common, gate.name
        if gate.name in ("", *common):
            got, known = gate.metric, list(dict.fromkeys(chain(*metrics.values())))
        raise SettingsError(f"{what}: expected any of {', '.join(known)}, got {got!r:.80}")
    name = own[0]
    sides, counts, warnings = comparer.aligned(name)
    contrasts = comparer.contrasts(sides[0].benchmark).get(Cell(name, gate.metric))
    if contrasts is None:
        raise SettingsError(
            f"{what}: {gate.metric} cannot be computed of these results: see `lmms-eval-captions "
            "check`"
        )
    left_out = counts.left_out()
    for place, captioner in enumerate(comparer.names[1:], 1):
        found = contrasts[0, place].difference
        decision: Decision = "INCONCLUSIVE" if warnings else _decision(gate, found)
        n_videos, end = None, "."
        if warnings:
            end = f"; these numbers decide nothing: {'; '.join(warnings)}"
        elif decision == "INCONCLUSIVE":
            n_videos = videos_to_settle(found, margin=gate.bound)
            end = f": {found.note or 'more videos would not settle it'}."
            if n_videos is not None:
                end = (
                    f": the interval contains the bound. About {n_videos:,} videos like these "
                    f"(now {found.n_videos:,}) would settle it if the difference is as large as it "
                    "seems."
                )
        shown = interval_text(found.difference, found.low, found.high, sign="+")
        yield {
            "gate": gate.text, "task": name, "captioner": captioner,
            "baseline": comparer.names[0], "decision": decision, "difference": found.difference,
            "low": found.low, "high": found.high, "n_videos": found.n_videos,
            "n_videos_to_settle": n_videos, "left_out": left_out,
            "words": f"{decision}: {gate.text} on {name}, {captioner} minus {comparer.names[0]}: "
            f"{shown}{f' (left out: {left_out})' if left_out else ''}{end}",
        }  # fmt: skip


def _decision(gate: Gate, found: Difference) -> Decision:
    if found.p_value is None:
        return "INCONCLUSIVE"
    # Captioners that are identical have no interval.
    ends = (found.difference if end is None else end for end in (found.low, found.high))
    worst, best = sorted(gate.sign * (end - gate.bound) for end in ends)
    return "GO" if worst >= 0 else "NO-GO" if best < 0 else "INCONCLUSIVE"
