"""What a build says at its end."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import cast

from lmms_eval_captions.lmms_eval_tasks.commands.building.screen import of_stages
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Done


def test_what_was_dropped_adds_up() -> None:
    """Every reason is named: what came in is what is kept and what was dropped."""
    dropped = {f"form: fault {number}": number for number in range(1, 12)}
    head = {
        "stage": "form",
        "n_before": 100,
        "n_kept": 100 - sum(dropped.values()),
        "dropped": dropped,
        "requests": {"n_requests": 0, "failures": {}, "faults": {}, "reasons": []},
    }
    stages = [SimpleNamespace(head=head, is_new=True)]
    lines = "\n".join(of_stages(cast("list[Done]", stages)))
    counts = map(int, re.findall(r"^  form: (\d+) x", lines, re.MULTILINE))
    assert sum(counts) == sum(dropped.values())


def test_a_fault_is_told_once() -> None:
    """What a reply lacked is why its question was dropped; other faults have their own line."""
    head = {
        "stage": "questions",
        "n_before": 3,
        "n_kept": 9,
        "dropped": {"no readable reply: no JSON": 2},
        "requests": {
            "n_requests": 3,
            "failures": {"unreadable": 2},
            "faults": {"reply: no JSON": 2, "reply: cut, what came is taken": 1},
            "reasons": [],
        },
    }
    stages = [SimpleNamespace(head=head, is_new=True)]
    lines = [line for line in of_stages(cast("list[Done]", stages)) if line.startswith("  ")]
    assert lines == [
        "  questions: 2 x no readable reply: no JSON",
        "  questions: 1 x reply: cut, what came is taken",
    ]
