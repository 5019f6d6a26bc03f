"""The table of a run: a line for each task and group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.summary.text import WIDTH, with_interval
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

_GAP: Final = 2
_SHARES: Final = ("empty", "missing", "dropped")
"""Captions that say nothing, are not there, or were left out."""


def table_lines(tasks: Mapping[str, Mapping[str, Any]], width: int = WIDTH) -> list[str]:
    """The lines of all tasks and groups that have a metric, the headline first.

    The other metrics stand behind it, as many as there is room for: ``judging.json`` has them all.

    Args:
        tasks: Those of a judging document.
        width: Columns at most.
    """
    shown = {name: task for name, task in tasks.items() if task["metrics"]}
    shares = [share for share in _SHARES if _is_shown(share, shown)]
    names = _indented(shown)
    rows = [
        [
            names[name],
            _value(task, _headline(task), has_interval=True),
            f"{task['captions']:,}",
            f"{task['unscored']['n']:,}/{task['unscored']['of']:,}",
            *(f"{task[share]['n']:,}" for share in shares),
        ]
        for name, task in shown.items()
    ]
    rows.insert(0, ["task", "score +- 95%", "captions", "unscored", *shares])
    columns = list(zip(*rows, strict=True))
    used = sum(max(map(len, column)) + _GAP for column in columns)
    others = [_others(task, width - used) for task in shown.values()]
    others.insert(0, "others" if any(others) else "")
    for row, cell in zip(rows, others, strict=True):
        row.insert(2, cell)
    return text_table(rows, n_left=3, gap=" " * _GAP)


def _is_shown(share: str, tasks: Mapping[str, Mapping[str, Any]]) -> bool:
    return share == "empty" or any(task[share]["n"] for task in tasks.values())


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


def _value(task: Mapping[str, Any], name: str, *, has_interval: bool = False) -> str:
    """A metric as shown: ``N/A`` where it cannot be computed here, ``nan`` without a score."""
    metric = task["metrics"][name]
    value, error = metric["value"], metric["standard_error"]
    if value is None:
        is_unavailable = name in Signature.parse(task["signature"] or "").unavailable
        return f"{name} {'N/A' if is_unavailable else 'nan'}"
    return f"{name} {with_interval(value, error if has_interval else None)}"
