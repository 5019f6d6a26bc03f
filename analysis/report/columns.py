"""The verdict table as columns for the page: captions as JSON, their questions as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from lmms_eval_captions.analysis.parts import caption_scores
from lmms_eval_captions.analysis.task_table import TaskTable
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Kind = Literal["right", "partly", "missed", "wrong", "other"]
"""Meaning of a verdict: the caption answers the question; in part; does not; wrongly."""
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
    """One task of all captioners, a row per caption and a place per question."""

    task: str
    benchmark: Benchmark[Any, Any]
    tables: Sequence[TaskTable | None]
    keys: list[tuple[str, int]]
    """Video of each row, and how many captions of it came before."""
    first: NDArray[np.int64]
    """Place of each row's first question, with one more at the end."""
    texts: list[str]
    """Each question, empty if the judge's replies say what was asked."""
    places: NDArray[np.int64]
    """Shape (n_captioners, n_questions): the question's index in the caption; -1 if not asked."""
    groups: dict[str, tuple[list[str], NDArray[np.uint16]]]
    """Section to its groups, largest first after those that the benchmark names, and codes."""
    verdicts: list[list[NDArray[np.uint8]]]
    """Codes of each captioner and judge run."""


def kinds_of(benchmark: Benchmark[Any, Any]) -> dict[str, Kind]:
    """Return the labels of a benchmark's headline, and what they say."""
    kinds: dict[Kind, frozenset[object]] = {
        "right": benchmark.right, "missed": benchmark.missed, "wrong": benchmark.wrong,
    }  # fmt: skip
    otherwise: Kind = "partly" if any(kinds.values()) else "other"
    return {
        label: next((kind for kind, labels in kinds.items() if label in labels), otherwise)
        for label in benchmark.metrics[benchmark.headline].labels
    }


def columns_of(task: str, tables: Sequence[TaskTable | None]) -> TaskColumns:
    """Set the captioners' verdicts on the questions of a task next to each other."""
    import pandas as pd

    known = [table for table in tables if table is not None]
    benchmark = known[0].benchmark
    rows = pd.concat(
        [t.rows.assign(side=side) for side, t in enumerate(tables) if t is not None],
        ignore_index=True,
    )
    row = rows.groupby(["video", "copy"], sort=False).ngroup().to_numpy()
    captions = rows.loc[~pd.Series(row).duplicated(), ["video", "copy"]]
    is_asked = rows["question_index"].notna().to_numpy()
    asked, row = rows[is_asked], row[is_asked]
    # If the judge's replies say what is asked, no two captioners share a question.
    owner = 0 if benchmark.counts_ahead else asked["side"]
    text = asked["question"].fillna("") if benchmark.counts_ahead else ""
    index = asked["occurrence"] if benchmark.counts_ahead else asked["question_index"]
    keys = pd.DataFrame({"row": row, "owner": owner, "text": text, "index": index})
    met = keys.groupby(list(keys), sort=False).ngroup().to_numpy()
    is_first = ~pd.Series(met).duplicated().to_numpy()
    # Questions in the order of the rows, those of a row as they were met.
    order = np.argsort(row[is_first], kind="stable")
    renumbered = np.empty_like(order)
    renumbered[order] = np.arange(len(order))
    place = renumbered[met]
    n = len(order)
    first = np.searchsorted(row[is_first][order], np.arange(len(captions) + 1))
    texts = np.empty(n, object)
    texts[place] = keys["text"].to_numpy(object)
    places = np.full((len(tables), n), -1)
    places[asked["side"], place] = asked["question_index"].astype(int)
    column = known[0].head["values"][benchmark.headline]
    codes = _codes(asked[column], benchmark)
    verdicts = []
    for side, table in enumerate(tables):
        runs = []
        for run in range(0 if table is None else table.n_runs):
            mask = ((asked["side"] == side) & (asked["run"] == run)).to_numpy()
            of_run = np.full(n, NOT_ASKED, np.uint8)
            of_run[place[mask]] = codes[mask]
            runs.append(of_run)
        verdicts.append(runs)
    sections = dict.fromkeys([*benchmark.sections, *(s for t in known for s in t.head["sections"])])
    groups = {
        name: _groups(asked[name], place, n, benchmark.sections.get(name, ()))
        for name in sections if name in asked and asked[name].notna().any()
    }  # fmt: skip
    pairs = zip(captions["video"], captions["copy"], strict=True)
    return TaskColumns(
        task, benchmark, tables, [(video, int(copy)) for video, copy in pairs], first,
        texts.tolist(), places, groups, verdicts,
    )  # fmt: skip


def _codes(values: pd.Series[Any], benchmark: Benchmark[Any, Any]) -> NDArray[np.uint8]:
    labels = {label: code for code, label in enumerate(kinds_of(benchmark))}

    def code(value: Any) -> int:  # noqa: ANN401 - of any type that a column has
        if value is None or (isinstance(value, list) and None in value):
            return UNSCORED
        return labels.get(value, RATED) if isinstance(value, str) else RATED

    return np.array([code(value) for value in values.tolist()], np.uint8)


def _groups(
    names: pd.Series[Any], place: NDArray[np.int64], n: int, named: Sequence[str]
) -> tuple[list[str], NDArray[np.uint16]]:
    counts = names.value_counts()
    first = [name for name in named if name in counts.index]
    groups = [*first, *(name for name in counts.index if name not in first)][:NO_GROUP]
    codes = np.full(n, NO_GROUP, np.uint16)
    known = names.map({name: code for code, name in enumerate(groups)})
    is_known = known.notna().to_numpy()
    codes[place[is_known]] = known[is_known].astype(int)
    return groups, codes


@dataclass(slots=True)
class Columns:
    """Tasks collected for the page."""

    n_captioners: int
    tasks: list[TaskColumns] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Return tasks and rows as the page reads them."""
        rows: dict[str, list[Any]] = {"task": [], "video": [], "first": [], "n": []}
        sides: dict[str, list[list[Any]]] = {
            name: [[] for _ in range(self.n_captioners)] for name in ("state", *LENGTHS)
        }
        metrics = dict.fromkeys(name for of in self.tasks for name in of.benchmark.metrics)
        values = {name: [list[Any]() for _ in range(self.n_captioners)] for name in metrics}
        start = 0
        for number, of in enumerate(self.tasks):
            rows["task"] += [number] * len(of.keys)
            rows["video"] += [whole(video) for video, _ in of.keys]
            rows["first"] += (of.first[:-1] + start).tolist()
            rows["n"] += np.diff(of.first).tolist()
            start += int(of.first[-1])
            for side, table in enumerate(of.tables):
                state, lengths, scores = _captions(of, table)
                sides["state"][side] += state
                for name, column in lengths.items():
                    sides[name][side] += column
                for name, all_values in values.items():
                    all_values[side] += scores.get(name, [None] * len(of.keys))
        return {
            "tasks": [_task(of) for of in self.tasks],
            "n_questions": start,
            "rows": {**rows, **sides, "values": values},
        }

    def questions(self) -> bytes:
        """Return groups and verdicts of all questions, task by task, little endian."""
        pieces = []
        for of in self.tasks:
            pieces += [codes.astype("<u2").tobytes() for _, codes in of.groups.values()]
            pieces += [run.tobytes() for runs in of.verdicts for run in runs]
        return b"".join(pieces)


def _task(of: TaskColumns) -> dict[str, Any]:
    return {
        "name": of.task,
        "benchmark": of.benchmark.name,
        "n": int(of.first[-1]),
        "n_runs": [len(runs) for runs in of.verdicts],
        "labels": [{"name": name, "kind": kind} for name, kind in kinds_of(of.benchmark).items()],
        "sections": [
            {"name": name, "groups": list(map(whole, groups))}
            for name, (groups, _) in of.groups.items()
        ],
    }


def _captions(
    of: TaskColumns, table: TaskTable | None
) -> tuple[list[int], dict[str, list[int | None]], dict[str, list[float | None]]]:
    """Return the state, lengths and scores of one captioner's captions, a value per row."""
    if table is None:
        nothing: list[Any] = [None] * len(of.keys)
        return [_ABSENT] * len(of.keys), dict.fromkeys(LENGTHS, nothing), {}
    captions = table.captions()
    keys = zip(captions["video"], captions["copy"].astype(int), strict=True)
    place = {key: number for number, key in enumerate(keys)}
    at = [place.get(key, -1) for key in of.keys]
    is_missing = captions["is_dropped"] | captions["no_caption"].notna()
    states = np.where(is_missing, _NO_CAPTION, np.where(captions["is_empty"], _EMPTY, _JUDGED))
    state = [_ABSENT if number < 0 else int(states[number]) for number in at]
    lengths: dict[str, list[int | None]] = {}
    for name, column in LENGTHS.items():
        known = captions[column].dropna().to_dict() if column in captions else {}
        of_captions = [known.get(index) for index in captions.index]
        found = (of_captions[number] if number >= 0 else None for number in at)
        lengths[name] = [None if n is None else int(n) for n in found]
    scores = {}
    for metric in table.benchmark.metrics:
        own = [None if v is None else round(v, 4) for v in caption_scores(table, metric)]
        scores[metric] = [None if number < 0 else own[number] for number in at]
    return state, lengths, scores
