"""The verdict table as columns for the page: captions as JSON, their questions as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lmms_eval_captions.analysis.parts import caption_scores, ordered_groups
from lmms_eval_captions.analysis.report.runs import View
from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

RATED: Final = 253
"""Code of a question that has numbers and no label."""
UNSCORED: Final = 254
NOT_ASKED: Final = 255
NO_GROUP: Final = 65_535
_JUDGED, _EMPTY, _NO_CAPTION, _ABSENT = range(4)
LENGTHS: Final = {"words": "n_words", "tokens": "n_tokens"}
"""Measures of a caption's length and their columns: words, and T5 tokens if they were counted."""


@dataclass(frozen=True, slots=True)
class TaskColumns:
    """One task of all captioners: rows are captions, places are questions."""

    task: str
    view: View
    """Any task or group that shows it."""
    captions: pd.MultiIndex
    """Video of each row, and the number of its captions in earlier rows."""
    first: list[int]
    """Place of each row's first question, with one more at the end."""
    texts: list[str]
    """Each question, empty if the judge's replies say what was asked."""
    indices: NDArray[np.int64]
    """Shape (n_captioners, n_questions): the question's index in the caption; -1 if not asked."""
    groups: dict[str, tuple[list[str], NDArray[np.uint16]]]
    """Section to its groups and each question's code."""
    verdicts: list[NDArray[np.uint8]]
    """Codes of each captioner, shape (n_runs, n_questions)."""
    reasons: dict[tuple[int, int, int], str]
    """Captioner, judge run and place of an unscored question to the reason."""


def kinds_of(benchmark: Benchmark[Any, Any]) -> dict[str, str]:
    """Return the headline's labels: a right, partly right, missed, wrong or other answer."""
    kinds = {"right": benchmark.right, "missed": benchmark.missed, "wrong": benchmark.wrong}
    otherwise = "partly" if any(kinds.values()) else "other"
    return {
        label: next((kind for kind, labels in kinds.items() if label in labels), otherwise)
        for label in benchmark.metrics[benchmark.headline].labels
    }


def columns_of(task: str, view: View) -> TaskColumns:
    """Set the captioners' verdicts on the questions of a task next to each other."""
    import pandas as pd

    tables, benchmark = view.tables(task), view.benchmark
    known = [table for table in tables if table is not None]
    rows = pd.concat(
        [t.rows.assign(side=side) for side, t in enumerate(tables) if t is not None],
        ignore_index=True,
    )
    rows["row"] = rows.groupby(["video", "copy"], sort=False).ngroup()
    captions = pd.MultiIndex.from_frame(rows.drop_duplicates("row")[["video", "copy"]])
    asked = rows[rows["question_index"].notna()].sort_values("row", kind="stable")
    asked = asked.assign(
        text=asked["question"].fillna("") if benchmark.counts_ahead else "",
        code=_codes(asked[known[0].head["values"][benchmark.headline]], benchmark),
    )
    # If the judge's replies say what is asked, no two captioners share a question.
    own = ["text", "occurrence"] if benchmark.counts_ahead else ["side", "question_index"]
    asked["place"] = asked.groupby(["row", *own], sort=False).ngroup()
    questions, last = asked.drop_duplicates("place"), asked.groupby("place").last()
    n = len(questions)
    side, run, place = (asked[name].to_numpy(int) for name in ("side", "run", "place"))
    indices = np.full((len(tables), n), -1)
    indices[side, place] = asked["question_index"]
    verdicts = []
    for number, table in enumerate(tables):
        codes = np.full((0 if table is None else table.n_runs, n), NOT_ASKED, np.uint8)
        is_own = side == number
        codes[run[is_own], place[is_own]] = asked["code"][is_own]
        verdicts.append(codes)
    groups = {}
    for name in dict.fromkeys(chain(benchmark.sections, *(t.head["sections"] for t in known))):
        if name in asked and asked[name].notna().any():
            names = list(ordered_groups(asked[name], benchmark.sections.get(name, ())))
            # Without a group the code is -1, which becomes NO_GROUP.
            groups[name] = names, pd.Categorical(last[name], names).codes.astype(np.uint16)
    return TaskColumns(
        task=task,
        view=view,
        captions=captions,
        first=np.searchsorted(questions["row"], np.arange(len(captions) + 1)).tolist(),
        texts=questions["text"].tolist(),
        indices=indices,
        groups=groups,
        verdicts=verdicts,
        reasons=asked.set_index(["side", "run", "place"])["reason"].dropna().to_dict(),
    )


def _codes(values: Iterable[Any], benchmark: Benchmark[Any, Any]) -> list[int]:
    labels = {label: code for code, label in enumerate(kinds_of(benchmark))}
    return [
        UNSCORED if value is None or (isinstance(value, list) and None in value)
        else labels.get(value, RATED) if isinstance(value, str) else RATED
        for value in values
    ]  # fmt: skip


def tasks_document(tasks: Sequence[TaskColumns], n_captioners: int) -> dict[str, Any]:
    """Return tasks and rows as the page reads them."""
    import pandas as pd

    metrics = list(dict.fromkeys(name for of in tasks for name in of.view.benchmark.metrics))
    columns: dict[str, list[list[Any]]] = {name: [] for name in ("state", *LENGTHS, *metrics)}
    for side in range(n_captioners if tasks else 0):
        values = pd.concat([_captions(of, of.view.tables(of.task)[side]) for of in tasks])
        values = values.reindex(columns=list(columns)).convert_dtypes().astype(object)
        for name, column in values.where(values.notna(), None).items():
            columns[name].append(column.tolist())
    n_questions = [n for of in tasks for n in np.diff(of.first).tolist()]
    return {
        "tasks": [
            {
                "name": of.task,
                "n": of.first[-1],
                "n_runs": list(map(len, of.verdicts)),
                "labels": [
                    {"name": n, "kind": kind} for n, kind in kinds_of(of.view.benchmark).items()
                ],
                "sections": [{"name": n, "groups": groups} for n, (groups, _) in of.groups.items()],
            }
            for of in tasks
        ],
        "n_questions": sum(n_questions),
        "rows": {
            "task": [number for number, of in enumerate(tasks) for _ in of.captions],
            "video": [video for of in tasks for video, _ in of.captions],
            "first": list(accumulate(n_questions, initial=0))[:-1],
            "n": n_questions,
            **{name: columns[name] for name in ("state", *LENGTHS)},
            "values": {name: columns[name] for name in metrics},
        },
    }


def question_bytes(tasks: Sequence[TaskColumns]) -> bytes:
    """Return groups and verdicts of all questions, task by task, little endian."""
    pieces = []
    for of in tasks:
        pieces += [codes.astype("<u2").tobytes() for _, codes in of.groups.values()]
        pieces += [runs.tobytes() for runs in of.verdicts]
    return b"".join(pieces)


def _captions(of: TaskColumns, table: TaskTable | None) -> pd.DataFrame:
    """Return the state, lengths and scores of a captioner's captions, a row each."""
    import pandas as pd

    if table is None:
        return pd.DataFrame({"state": _ABSENT}, of.captions)
    captions = table.captions().set_index(["video", "copy"])
    is_missing = captions["is_dropped"] | captions["no_caption"].notna()
    scores = {name: caption_scores(table, name) for name in of.view.benchmark.metrics}
    values = pd.DataFrame(scores, captions.index, dtype=float).round(4)
    values["state"] = np.where(
        is_missing, _NO_CAPTION, np.where(captions["is_empty"], _EMPTY, _JUDGED)
    )
    for name, column in LENGTHS.items():
        if column in captions:
            values[name] = captions[column]
    return values.reindex(of.captions).fillna({"state": _ABSENT})
