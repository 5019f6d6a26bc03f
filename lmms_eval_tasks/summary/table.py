"""The table of a run: a line for each task and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.measured import Measured
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.summary.text import WIDTH
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

_GAP: Final = 2
_JUDGE_WIDTH: Final = 21
_SHARES: Final = ("missing", "dropped")
"""Captions that are not there, or were left out."""
JUDGE_RUNS: Final = "judge runs"
"""Header of what several judge runs tell of the judge."""


def table_lines(tasks: Mapping[str, Mapping[str, Any]], width: int = WIDTH) -> list[str]:
    """The lines of all tasks and groups that have a metric, the headline first.

    The other metrics stand behind it, as many as there is room for: ``judging.json`` has them all.

    Args:
        tasks: Those of a judging document.
        width: Columns at most.
    """
    shown = {name: task for name, task in tasks.items() if task["metrics"]}
    shares = [share for share in _SHARES if any(task[share]["n"] for task in shown.values())]
    has_runs = any(headline_of(task).judge_part for task in shown.values())
    names = _indented(shown)
    rows = [
        [
            names[name],
            _value(task, _headline(task)),
            *([headline_of(task).judge_part] if has_runs else []),
            _share(task["unscored"]),
            _share(task["empty"]),
            *(f"{task[share]['n']:,}" for share in shares),
            _judge(task["judge"]),
        ]
        for name, task in shown.items()
    ]
    runs = [JUDGE_RUNS] if has_runs else []
    rows.insert(0, ["task", "score [95%]", *runs, "unscored", "empty", *shares, "judge"])
    columns = list(zip(*rows, strict=True))
    used = sum(max(map(len, column)) + _GAP for column in columns)
    others = [_others(task, width - used) for task in shown.values()]
    others.insert(0, "others" if any(others) else "")
    for row, cell in zip(rows, others, strict=True):
        row.insert(2, cell)
    if not any(others):
        rows = [[*row[:2], *row[3:]] for row in rows]
    return text_table(rows, n_left=3 if any(others) else 2, gap=" " * _GAP)


def headline_of(task: Mapping[str, Any]) -> Measured:
    """The metric of a task that is shown first."""
    return Measured.read(task["metrics"][_headline(task)])


def _share(share: Mapping[str, int]) -> str:
    return f"{share['n']:,}/{share['of']:,}"


def _judge(label: str) -> str:
    """A judge in a few characters: the title has all of it.

    >>> _judge("meta-llama/Llama-3.1-8B-Instruct"), _judge("lexical (smoke test, not a score)")
    ('Llama-3.1-8B-Instruct', 'lexical')
    """
    name = label.partition(" ")[0].rpartition("/")[2]
    return name if len(name) <= _JUDGE_WIDTH else f"{name[: _JUDGE_WIDTH - 2]}.."


def _indented(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Names of tasks, those of a group's under the group."""
    groups: list[Sequence[str]] = [task["tasks"] for task in tasks.values() if task["tasks"]]
    return {
        name: "  " * sum(name in group for group in groups if not task["tasks"]) + name
        for name, task in tasks.items()
    }


def _headline(task: Mapping[str, Any]) -> str:
    """The metric that is shown first."""
    metrics: list[str] = list(task["metrics"])
    return next((name for name in metrics if name == task["headline"]), metrics[0])


def _others(task: Mapping[str, Any], width: int) -> str:
    """The other metrics, as many as there is room for."""
    text = ""
    for name in task["metrics"]:
        if name != _headline(task):
            longer = f"{text}  {_value(task, name)}" if text else _value(task, name)
            if len(longer) > width:
                break
            text = longer
    return text


def _value(task: Mapping[str, Any], name: str) -> str:
    """A metric as shown: ``N/A`` where it cannot be computed here, ``nan`` without a score."""
    measured = Measured.read(task["metrics"][name])
    if measured.value is None:
        is_unavailable = name in Signature.parse(task["signature"] or "").unavailable
        return f"{name} {'N/A' if is_unavailable else 'nan'}"
    return f"{name} {measured}" if name == _headline(task) else f"{name} {measured.value:.2f}"
