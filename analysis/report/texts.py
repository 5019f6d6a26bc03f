"""The texts of a report, in blocks that the browser unpacks when it needs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lmms_eval_captions.analysis.report.rows import Row
from lmms_eval_captions.analysis.verdicts.alignment import Key
from lmms_eval_captions.analysis.verdicts.samples import (
    Logged,
    LoggedCaption,
    logged_captions,
)
from lmms_eval_captions.analysis.web_page.embedding import packed_json
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.files import whole
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

BLOCK_ROWS: Final = 64
"""Rows of a block."""
_SHOWN_ELSEWHERE: Final = frozenset(
    {
        "run", "reply", "reason", "cached", "usage", "question", "answer", "reference",
        "predicted_answer", "choice", "verdict", "category", "dimension", "sub_category",
        "distributions", "scoring", "tokenizer", "bleu", "meteor",
    }
)  # fmt: skip
"""Fields of a judgement that are no words of the judge, or stand in a column of their own."""

Said = dict[str, list[str | None]]
"""What a judge run said of each question of a row."""


@dataclass(slots=True)
class Blocks:
    """Collects the texts of rows."""

    packed: list[str] = field(default_factory=list)
    has_replies: bool = False
    """Whether any caption came with what its judge said."""
    _rows: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, row: Row, n_runs: Sequence[int], logged: Sequence[LoggedCaption | None]) -> None:
        """Add the next row.

        Args:
            row: The row.
            n_runs: Judge runs of each captioner.
            logged: Its caption in each captioner's sample log.
        """
        self.has_replies |= any(one is not None and one.judgements for one in logged)
        captions = [None if one is None else whole(one.text) for one in logged]
        said = [
            _said(row, captioner, n_runs[captioner], one) for captioner, one in enumerate(logged)
        ]
        gold = _gold(row, logged)
        asked = [whole(text or gold[q][0]) for q, text in enumerate(row.asked)]
        self._rows.append((captions, asked, [whole(answer) for _, answer in gold], said))
        if len(self._rows) == BLOCK_ROWS:
            self.flush()

    def flush(self) -> None:
        """Close the last block."""
        if self._rows:
            names = ("captions", "questions", "answers", "said")
            columns = zip(*self._rows, strict=True)
            self.packed.append(packed_json(dict(zip(names, map(list, columns), strict=True))))
            self._rows.clear()


@dataclass(slots=True)
class LostLogs:
    """Reads sample logs, and keeps what of them is not there."""

    _without: dict[str, list[str]] = field(default_factory=dict)
    """Captioner to its tasks that have no sample log."""
    _broken: list[str] = field(default_factory=list)

    def read(self, run: RunResults | None, captioner: str, task: str) -> dict[Key, LoggedCaption]:
        """The captions of a task by video, with how many of it stood before.

        Args:
            run: The captioner's run, ``None`` where it has not the task.
            captioner: Its name.
            task: One of ours.
        """
        found: dict[Key, LoggedCaption] = {}
        if run is None:
            return found
        if not run.has_samples(task):
            self._without.setdefault(captioner, []).append(task)
            return found
        n_met: dict[str, int] = defaultdict(int)
        try:
            for caption in logged_captions(run, task, benchmark_of_task(task)):
                found[caption.video_id, n_met[caption.video_id]] = caption
                n_met[caption.video_id] += 1
        except DataError as error:
            self._broken.append(f"{captioner}: {error}")
        return found

    def words(self) -> list[str]:
        """What is not there, and how to get it."""
        return [
            *(
                f"{captioner}: captions, gold answers and replies of {_few(tasks)} are not here: "
                "the run has no sample log of it. Run it again with --log_samples, which asks the "
                "judge nothing that it was asked before"
                for captioner, tasks in self._without.items()
            ),
            *self._broken,
        ]


def _few(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _said(row: Row, captioner: int, n_runs: int, logged: LoggedCaption | None) -> list[Said]:
    """What each judge run said, nothing where that is not logged."""
    of_runs: list[list[Mapping[str, Any]]] = [[] for _ in range(n_runs)]
    for judgement in () if logged is None else logged.judgements:
        run = judgement.get("run")
        if isinstance(run, int) and 0 <= run < n_runs:
            of_runs[run].append(judgement)
    record = row.records[captioner]
    # Of a caption that was not judged at all the record says why.
    why = list(record.reasons) if record is not None else []
    return [
        _columns(row.places[captioner], judgements, why[0] if len(why) == 1 else None)
        for judgements in of_runs
    ]


def _columns(places: Sequence[int | None], judgements: Sequence[Logged], why: str | None) -> Said:
    if not judgements:
        reasons = [None if place is None else whole(why) for place in places] if why else []
        return {"answer": [], "words": [], "reply": [], "reason": reasons}
    of_questions = [
        judgements[place] if place is not None and place < len(judgements) else {}
        for place in places
    ]
    return {
        "answer": [
            _text(said.get("predicted_answer", said.get("choice"))) for said in of_questions
        ],
        "words": [whole(_words(said)) for said in of_questions],
        "reply": [whole(str(said.get("reply", ""))) for said in of_questions],
        "reason": [_text(said.get("reason")) for said in of_questions],
    }


def _text(value: object) -> str | None:
    return None if value is None else whole(str(value))


def _words(said: Logged) -> str:
    """What else a judgement holds, such as grades, as people read it.

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
            words.append(f"{name} {' / '.join(_plain(one) for one in value)}")
        else:
            words.append(f"{name} {_plain(value)}")
    return ", ".join(words)


def _plain(value: object) -> str:
    if value is None:
        return "unreadable"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _gold(row: Row, logged: Sequence[LoggedCaption | None]) -> list[tuple[str, str]]:
    """The text and the gold answer of each question, as any sample log has them."""
    found = [("", "")] * len(row.asked)
    for one, places in zip(logged, row.places, strict=True):
        of_run = [] if one is None else [said for said in one.judgements if said.get("run") == 0]
        for question, place in enumerate(places):
            if place is not None and place < len(of_run):
                said = of_run[place]
                answer = said.get("answer", said.get("reference"))
                if not any(found[question]):
                    found[question] = str(said.get("question") or ""), str(answer or "")
    return found
