"""What a reader of shares of stable questions must know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lmms_eval_captions.analysis.stability.opinions import Opinions
from lmms_eval_captions.analysis.verdicts.likeness import differences
from lmms_eval_captions.metrics.agreement import UNKNOWN, unstable_that_pass

FAIR_RUNS: Final = 3
"""Judge runs of each captioner's captions on which VidCapBench's split rests (section 3.2)."""
FAIR_CAPTIONERS: Final = 5
"""Captioners on which it rests."""
_FLIP: Final = 0.1


def judges_of(opinions: Opinions) -> list[str]:
    """The judges of all captions, as they are shown."""
    captions = (c for of in opinions.verdicts for task in of.tasks for c in task.captions)
    return list(dict.fromkeys(caption.judge for caption in captions))


def notes_of(opinions: Opinions) -> Iterator[str]:
    """What limits these shares, a sentence each."""
    n_captioners, n_runs = len(opinions.captioners), opinions.n_runs
    if n_runs < 2:
        yield (
            "1 judge run cannot tell whether a verdict is stable: set "
            f"LMMS_CAPTIONS_JUDGE_RUNS={FAIR_RUNS} and score the same captions again, which asks "
            "only what was not asked before"
        )
    elif n_runs < FAIR_RUNS or n_captioners < FAIR_CAPTIONERS:
        yield too_few(n_runs, n_captioners)
    of_each = {max(_n_runs(opinions, place)) for place in range(n_captioners)}
    if len(of_each) > 1:
        yield f"the captioners have {_listed(of_each)} judge runs: the first {n_runs} are compared"
    for field, values in _differences(opinions).items():
        said = (f"{v} for {n}" for n, v in zip(opinions.captioners, values, strict=True))
        yield f"the captioners were not judged alike: {field} is {', '.join(said)}"
    n_unknown = int((opinions.headline == UNKNOWN).any(axis=0).sum())
    if n_unknown and n_runs > 1:
        yield (
            f"{n_unknown:,} of {len(opinions.asked):,} questions are not known to be stable or not "
            "for every captioner: one was not asked, or has a run without a verdict; they are in "
            "no share"
        )
    if opinions.n_empty:
        are = "is" if opinions.n_empty == 1 else "are"
        yield (
            f"{opinions.n_empty:,} of the captions {are} empty; what a benchmark gives them by "
            "definition is the same in every run"
        )


def too_few(n_runs: int, n_captioners: int) -> str:
    """How far fewer judge runs or captioners than the paper's can be trusted."""
    here, there = (
        100 * unstable_that_pass(_FLIP, n_runs=runs, n_captioners=captioners)
        for runs, captioners in ((n_runs, n_captioners), (FAIR_RUNS, FAIR_CAPTIONERS))
    )
    return (
        f"{_number(n_captioners, 'captioner')} with {_number(n_runs, 'judge run')} are few to call "
        f"a question stable: VidCapBench's split rests on {FAIR_CAPTIONERS} with {FAIR_RUNS} each. "
        f"Where a judge gives the other of two verdicts one time in ten, a question passes as "
        f"stable with a chance of {here:.0f} % here, {there:.0f} % there"
    )


def _differences(opinions: Opinions) -> dict[str, list[str]]:
    """In what the ways of judging differ that moves a score, but for the number of runs."""
    found: dict[str, list[str]] = {}
    for of_task in zip(*(verdicts.tasks for verdicts in opinions.verdicts), strict=False):
        found |= differences(of_task)
    return {field: values for field, values in found.items() if field != "runs"}


def _n_runs(opinions: Opinions, captioner: int) -> Iterator[int]:
    headline = opinions.benchmark.headline
    for task in opinions.verdicts[captioner].tasks:
        yield from (len(caption.values[headline]) for caption in task.captions)


def _number(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _listed(numbers: set[int]) -> str:
    *others, last = map(str, sorted(numbers))
    return f"{', '.join(others)} and {last}"
