"""Captions, questions and replies for the page, in blocks that the browser unpacks when needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from lmms_eval_captions.analysis.report.columns import TaskColumns
from lmms_eval_captions.analysis.report.sources import without_folders
from lmms_eval_captions.analysis.results_folder import RunResults
from lmms_eval_captions.analysis.tables import listed, plural
from lmms_eval_captions.analysis.web_page import packed_json
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole

BLOCK_ROWS: Final = 64
_SHOWN_ELSEWHERE: Final = frozenset(
    {
        "run", "reply", "reason", "cached", "usage", "question", "answer", "reference",
        "predicted_answer", "choice", "verdict", "category", "dimension", "sub_category",
        "distributions", "scoring", "tokenizer", "bleu", "meteor",
    }
)  # fmt: skip
"""Fields of a judgement that are not the judge's words, or have a column of their own."""

Judgement = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoggedCaption:
    """A caption of a sample log."""

    text: str
    judgements: Sequence[Judgement]
    """Judgements of all judge runs; those of a run in the order of the questions."""


@dataclass(slots=True)
class Texts:
    """Collects the texts of tasks."""

    blocks: list[str] = field(default_factory=list)
    has_replies: bool = False
    missing: list[str] = field(default_factory=list)
    """Missing parts, a sentence each."""
    _rows: list[list[Any]] = field(default_factory=list)
    _without: dict[str, list[str]] = field(default_factory=dict)
    """Captioner to its tasks without a sample log."""

    def add(
        self, of: TaskColumns, runs: Sequence[RunResults | None], captioners: Sequence[str]
    ) -> None:
        """Add the rows of a task."""
        logs = [self._log(of, run, name) for run, name in zip(runs, captioners, strict=True)]
        reasons = [_reasons(of, side) for side in range(len(logs))]
        for row, key in enumerate(of.keys):
            logged = [log.get(key) for log in logs]
            self.has_replies |= any(one is not None and one.judgements for one in logged)
            places = range(int(of.first[row]), int(of.first[row + 1]))
            gold = [_gold(of, place, logged) for place in places]
            self._rows.append(
                [
                    [None if one is None else whole(one.text) for one in logged],
                    [whole(of.texts[p] or text) for p, (text, _) in zip(places, gold, strict=True)],
                    [whole(answer) for _, answer in gold],
                    [
                        [_said(of, side, run, places, one, reasons[side]) for run in range(n_runs)]
                        for side, one in enumerate(logged)
                        for n_runs in (len(of.verdicts[side]),)
                    ],
                ]
            )
            if len(self._rows) == BLOCK_ROWS:
                self._flush()

    def close(self) -> None:
        """Close the last block, and name the missing logs."""
        self._flush()
        if self._without:
            few = [f"{name} ({plural(len(of), 'task')})" for name, of in self._without.items()]
            self.missing.append(
                f"No captions, gold answers and replies of {listed(few)}: run again with "
                "--log_samples, which asks the judge nothing that it was asked before."
            )

    def _flush(self) -> None:
        if self._rows:
            names = ("captions", "questions", "answers", "said")
            columns = map(list, zip(*self._rows, strict=True))
            self.blocks.append(packed_json(dict(zip(names, columns, strict=True))))
            self._rows.clear()

    def _log(
        self, of: TaskColumns, run: RunResults | None, captioner: str
    ) -> dict[tuple[str, int], LoggedCaption]:
        """Return the captions of a task by video and how many of it came before."""
        found: dict[tuple[str, int], LoggedCaption] = {}
        if run is None:
            return found
        if not run.has_samples(of.task):
            self._without.setdefault(captioner, []).append(of.task)
            return found
        n_met: Counter[str] = Counter()
        try:
            for video, caption in logged_captions(run, of.task, of.benchmark.headline):
                found[video, n_met[video]] = caption
                n_met[video] += 1
        except DataError as error:
            self.missing.append(f"{captioner}: {without_folders(str(error))}")
        return found


def logged_captions(
    run: RunResults, task: str, headline: str
) -> Iterator[tuple[str, LoggedCaption]]:
    """Yield the captions of a task that were judged, in the order of the log.

    Raises:
        DataError: If the run has no sample log of the task, or it cannot be read to its end.
    """
    for sample in run.samples(task):
        item = sample.get(headline)
        if isinstance(item, dict):
            said = item.get("judgements")
            judgements = (
                [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
            )
            yield str(item.get("video_id")), LoggedCaption(caption_of(sample), judgements)


def caption_of(sample: Mapping[str, Any]) -> str:
    """Return the caption of a sample of a log."""
    replies = sample.get("filtered_resps") or sample.get("resps") or ""
    while isinstance(replies, list):
        replies = replies[0] if replies else ""
    return str(replies)


def _reasons(of: TaskColumns, side: int) -> dict[tuple[str, int, int, int], str]:
    """Return why questions are unscored, by video, copy, judge run and question."""
    table = of.tables[side]
    if table is None or "reason" not in table.rows:
        return {}
    rows = table.rows[table.rows["reason"].notna() & table.rows["question_index"].notna()]
    columns = ("video", "copy", "run", "question_index", "reason")
    keyed = zip(*(rows[name].tolist() for name in columns), strict=True)
    return {(v, int(c), int(r), int(q)): reason for v, c, r, q, reason in keyed}


def _said(
    of: TaskColumns,
    side: int,
    run: int,
    places: range,
    logged: LoggedCaption | None,
    reasons: Mapping[tuple[str, int, int, int], str],
) -> dict[str, list[str | None]]:
    """Return what a judge run said of each question of a row."""
    judgements = [] if logged is None else [j for j in logged.judgements if j.get("run") == run]
    row = int(np.searchsorted(of.first, places.start, side="right")) - 1 if len(places) else 0
    video, copy = of.keys[row] if len(places) else ("", 0)
    found: dict[str, list[str | None]] = {"answer": [], "words": [], "reply": [], "reason": []}
    for place in places:
        index = int(of.places[side, place])
        said = judgements[index] if 0 <= index < len(judgements) else {}
        reason = said.get("reason") or reasons.get((video, copy, run, index))
        answer = said.get("predicted_answer", said.get("choice"))
        found["answer"].append(None if answer is None else whole(str(answer)))
        found["words"].append(whole(_words(said)))
        found["reply"].append(whole(str(said.get("reply", ""))))
        found["reason"].append(None if reason is None else whole(str(reason)))
    return {name: column if any(column) else [] for name, column in found.items()}


def _words(said: Judgement) -> str:
    """Return what else a judgement holds, such as grades, for people.

    >>> _words({"verdict": "yes", "score": 4.0, "asks": ["no", "no", None]})
    'score 4, asks no / no / unreadable'
    >>> _words({"numbers": {"accuracy": 35.5}})
    'accuracy 35.5'
    """
    words = []
    for name, value in said.items():
        if name in _SHOWN_ELSEWHERE or value is None:
            continue
        if isinstance(value, dict):
            words += [f"{key} {_plain(one)}" for key, one in value.items()]
        elif isinstance(value, list):
            words.append(f"{name} {' / '.join(map(_plain, value))}")
        else:
            words.append(f"{name} {_plain(value)}")
    return ", ".join(words)


def _plain(value: object) -> str:
    if value is None:
        return "unreadable"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _gold(of: TaskColumns, place: int, logged: Sequence[LoggedCaption | None]) -> tuple[str, str]:
    """Return the text and the gold answer of a question, as any sample log has them."""
    for side, one in enumerate(logged):
        index = int(of.places[side, place])
        first = [] if one is None else [j for j in one.judgements if j.get("run") == 0]
        if 0 <= index < len(first):
            answer = first[index].get("answer", first[index].get("reference"))
            return str(first[index].get("question") or ""), str(answer or "")
    return "", ""
