"""Names of judges and captioners by which a reader tells them apart."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from itertools import takewhile
from typing import Final

from lmms_eval_captions.analysis.agree.judged import (
    NOT_OF_JUDGE,
    Judge,
    JudgedRun,
    fields_of,
)
from lmms_eval_captions.lmms_eval_tasks.signature import SERVED

_WORDS: Final = re.compile(r"[^-_/ ]+")
"""Words of a folder's name."""


def name_judges(judges: Sequence[Judge]) -> None:
    """Make the judges' names different, by the fields that differ, else by their folders."""
    for name in dict.fromkeys(judge.name for judge in judges):
        alike = [judge for judge in judges if judge.name == name]
        if len(alike) == 1:
            continue
        details = [_details(next(iter(judge.runs.values()))) for judge in alike]
        differing = [
            key
            for key in dict.fromkeys(key for fields in details for key in fields)
            if len({fields.get(key) for fields in details}) > 1
        ]
        words = [
            ", ".join(f"{key} {fields[key]}" for key in differing if key in fields)
            for fields in details
        ]
        for judge, text in zip(alike, words, strict=True):
            is_clear = words.count(text) == 1
            shown = text if is_clear else next(iter(judge.runs.values())).name
            judge.name = f"{name} ({shown or 'plain'})"


def _details(run: JudgedRun) -> dict[str, str]:
    """What sets a judge apart from others of its name."""
    left_out = NOT_OF_JUDGE - {SERVED, "runs"} | {"judge"}
    fields: dict[str, str] = {}
    for task in run.tasks.values():
        fields.update(fields_of(task, left_out))
    return fields


def captioner_names(runs: Sequence[JudgedRun], captioners: Sequence[int]) -> list[str]:
    """Names of the captioners, all different.

    What all of a captioner's folders are called, as ``compare`` calls it; else their models'
    folders; where these are the same, what the names of a captioner's folders have in common; else
    the first folder's name.
    """
    owned: list[list[JudgedRun]] = [[] for _ in range(max(captioners) + 1)]
    for run, place in zip(runs, captioners, strict=True):
        owned[place].append(run)
    for names in (
        [_same({run.name.rpartition("/")[2] for run in own}) for own in owned],
        [own[0].folder.name for own in owned],
        [_common([run.name for run in own]) for own in owned],
    ):
        if len(set(names)) == len(names) and all(names):
            return names
    return [own[0].name for own in owned]


def _same(names: Set[str]) -> str:
    """The name that all are, else nothing."""
    return next(iter(names)) if len(names) == 1 else ""


def _common(names: Sequence[str]) -> str:
    """The words that some names begin with, else those that they end with.

    >>> _common(["qwen-by-gpt-4o", "qwen-by-gemma"]), _common(["gpt-4o_qwen_7b", "gemma_qwen_7b"])
    ('qwen-by', 'qwen_7b')
    """
    words = [_WORDS.findall(name) for name in names]
    n_first = _n_leading(words)
    n_last = 0 if n_first else _n_leading([own[::-1] for own in words])
    places = [match.span() for match in _WORDS.finditer(names[0])]
    shown = places[:n_first] or places[len(places) - n_last :]
    return names[0][shown[0][0] : shown[-1][1]] if shown else ""


def _n_leading(words: Sequence[Sequence[str]]) -> int:
    """How many words all lists begin with."""
    same = takewhile(lambda column: len(set(column)) == 1, zip(*words, strict=False))
    return len(list(same))
