"""What ``build clips`` prints at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.balance import bin_of, edges_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.rows import CLIPS
from lmms_eval_captions.lmms_eval_tasks.table_formats import Part, Table, as_text

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.clips import Options, Outcome

_NAMED: Final = 10
"""Videos that cannot be read and are named."""


def report(outcome: Outcome, options: Options, output: Path) -> str:
    """The counts of a run, and why videos could not be read."""
    fates = Counter(row.fate for row in outcome.rows)
    counts = [
        ("videos", outcome.n_sources),
        ("scenes", outcome.n_scenes),
        ("too short", fates["too short"]),
        ("still", fates["still"]),
        ("unreadable", fates["unreadable"]),
        ("left out by --n", fates["left out"]),
        *_kept(outcome, options),
        ("clips", fates["kept"]),
    ]
    rows = [(name, str(count)) for name, count in counts]
    unread = [f"{row.source}: {row.reason}" for row in outcome.rows if row.fate == "unreadable"]
    more = [f"and {len(unread) - _NAMED} more, see {CLIPS}"] if len(unread) > _NAMED else []
    ending = f"{output / CLIPS} says what became of every part." + _advice(fates)
    table = Table(("", "number"), rows)
    return as_text([Part(f"Clips in {output}", (), (table,), [*unread[:_NAMED], *more, ending])])


def _kept(outcome: Outcome, options: Options) -> Iterator[tuple[str, int]]:
    """Clips by their length."""
    edges_s = edges_of(options.lengths.min_s, options.lengths.max_s)
    kept = Counter(bin_of(row.length_s, edges_s) for row in outcome.rows if row.is_kept)
    for place, (low_s, high_s) in enumerate(pairwise(edges_s)):
        yield f"of {low_s:g} to {high_s:g} s", kept[place]


def _advice(fates: Counter[str]) -> str:
    if fates["kept"]:
        return ""
    return " No clip came of it: lower --min-s or --still-below, or give other videos."
