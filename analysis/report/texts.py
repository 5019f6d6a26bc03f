"""Captions, questions and replies for the page, in blocks that the browser unpacks when needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from lmms_eval_captions.analysis.report.columns import TaskColumns
from lmms_eval_captions.analysis.web_page import Judgement, LoggedCaption, packed_json

BLOCK_ROWS: Final = 64
_SHOWN_ELSEWHERE: Final = frozenset(
    {
        "run", "reply", "reason", "cached", "usage", "question", "answer", "reference",
        "predicted_answer", "choice", "verdict", "category", "dimension", "sub_category",
        "distributions", "scoring", "tokenizer", "bleu", "meteor",
    }
)  # fmt: skip
"""Fields of a judgement that are not the judge's words, or have a column of their own."""

Row = tuple[list[str | None], list[str], list[str], list[Any]]
"""Captions, questions, gold answers, and what each captioner's judge runs said."""


def packed_blocks(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the rows in packed blocks."""
    rest = iter(rows)
    while block := list(islice(rest, BLOCK_ROWS)):
        columns = map(list, zip(*block, strict=True))
        names = ("captions", "questions", "answers", "said")
        yield packed_json(dict(zip(names, columns, strict=True)))


def text_rows(
    of: TaskColumns, logs: Sequence[Mapping[str, Sequence[LoggedCaption]]]
) -> Iterator[Row]:
    """Yield the texts of each caption of a task, from the captioners' sample logs."""
    for row, (video, copy) in enumerate(of.captions):
        logged = [next(iter(log.get(video, ())[copy : copy + 1]), None) for log in logs]
        places = range(of.first[row], of.first[row + 1])
        judged = [
            [_judgements(of, side, run, places, caption) for run in range(len(of.verdicts[side]))]
            for side, caption in enumerate(logged)
        ]
        first_runs = [runs[0] for runs in judged if runs]
        # The gold answer is the same for all captioners that were asked the question.
        golds: list[Judgement] = [
            next(filter(None, said), {}) for said in zip(*first_runs, strict=True)
        ]
        said = [
            [
                _said(of_run, [of.reasons.get((side, run, place)) for place in places])
                for run, of_run in enumerate(runs)
            ]
            for side, runs in enumerate(judged)
        ]
        asked = zip(of.texts[places.start : places.stop], golds, strict=True)
        questions = [text or str(gold.get("question") or "") for text, gold in asked]
        answers = [str(gold.get("answer", gold.get("reference")) or "") for gold in golds]
        yield [caption and caption.text for caption in logged], questions, answers, said


def _judgements(
    of: TaskColumns, side: int, run: int, places: range, caption: LoggedCaption | None
) -> list[Judgement]:
    """Return a judge run's judgement of each question of a row, empty if it has none."""
    of_run = [said for said in caption.judgements if said.get("run") == run] if caption else []
    indices = of.indices[side, places.start : places.stop].tolist()
    return [of_run[index] if 0 <= index < len(of_run) else {} for index in indices]


def _said(
    judgements: Sequence[Judgement], reasons: list[str | None]
) -> dict[str, list[str | None]]:
    answers = [said.get("predicted_answer", said.get("choice")) for said in judgements]
    columns: dict[str, list[str | None]] = {
        "answer": [None if answer is None else str(answer) for answer in answers],
        "words": list(map(_words, judgements)),
        "reply": [str(said.get("reply", "")) for said in judgements],
        "reason": reasons,
    }
    return {name: column if any(column) else [] for name, column in columns.items()}


def _words(said: Judgement) -> str:
    """Return the rest of a judgement, such as grades, for people.

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
            words += [f"{key} {_plain(number)}" for key, number in value.items()]
        elif isinstance(value, list):
            words.append(f"{name} {' / '.join(map(_plain, value))}")
        else:
            words.append(f"{name} {_plain(value)}")
    return ", ".join(words)


def _plain(value: object) -> str:
    if value is None:
        return "unreadable"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
