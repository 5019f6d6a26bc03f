"""The blind check: who answers without the clip answers from patterns of text.

Source: CapQuiz, section 3.2.2 (two solvers, three trials with the options shuffled, out where both
are right at least twice) and figure 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.protocols.capquiz import LETTERS
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.verdicts import read_letter
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Wanted, Work
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

N_TRIALS: Final = 3
_LEAST_RIGHT: Final = 2
PROMPT: Final = "build_capquiz_blind"


def blind_check(work: Work, rows: list[Row]) -> list[Row]:
    """Questions with what the solvers answered, dropped where all of them know the answer.

    A trial without a readable reply is not right. A question to which a solver gave fewer than two
    readable replies stays: it is not known to be solvable. Such questions are counted, and named
    in their rows (``unread_by``).
    """
    solvers = work.options.solvers
    asked = work.ask(_trials(work, rows), n=len(rows) * len(solvers) * N_TRIALS, what="blind check")
    chosen = iter(asked)
    made: list[Row] = []
    for row in rows:
        by = {solver.name: [next(chosen).value for _ in range(N_TRIALS)] for solver in solvers}
        right = {name: answers.count(row["answer"]) for name, answers in by.items()}
        readable = sum(answer is not None for answers in by.values() for answer in answers)
        checked = {
            **row,
            "blind": {"right": right, "n_right": sum(right.values()), "n_readable": readable},
        }
        unread = [
            name
            for name, answers in by.items()
            if sum(answer is not None for answer in answers) < _LEAST_RIGHT
        ]
        if min(right.values()) >= _LEAST_RIGHT:
            checked["dropped"] = "blind check: answered without the clip"
        elif unread:
            checked["blind"]["unread_by"] = unread
            work.tally.faults["blind check: kept, as a solver gave too few readable replies"] += 1
        made.append(checked)
    return made


def hardness(row: Row) -> float:
    """How often solvers were right without the clip; the hardest question has the least.

    One that no solver gave a readable reply to is not known to be hard: 1.
    """
    n: int = row["blind"]["n_readable"]
    return float(row["blind"]["n_right"]) / n if n else 1.0


def is_unread(row: Row) -> bool:
    """Whether a solver gave too few readable replies to tell if a question needs the clip."""
    return "unread_by" in row["blind"]


def _trials(work: Work, rows: list[Row]) -> Iterator[Wanted[str]]:
    for row in rows:
        for solver in work.options.solvers:
            for trial in range(N_TRIALS):
                yield _wanted(work, row, solver, trial)


def _wanted(work: Work, row: Row, solver: Model, trial: int) -> Wanted[str]:
    options = list(row["options"])
    work.rng("blind", row["video"], row["question"], trial).shuffle(options)
    messages = work.prompts.load(PROMPT).render(question=row["question"], options=listed(options))
    wrong = next(k for k, option in enumerate(options) if option != row["answer"])
    return Wanted(
        model=solver,
        prompt=PROMPT,
        messages=messages,
        read=partial(read_option, options=tuple(options)),
        typical=lambda: LETTERS[wrong],
        seed=trial,
    )


def listed(options: Sequence[str]) -> str:
    r"""Options as they are shown, a line each.

    >>> listed(["red", "blue"])
    'A. red\nB. blue'
    """
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False))


def read_option(reply: Reply, options: tuple[str, ...]) -> str | None:
    """The option that a reply chooses by its letter, ``None`` where it chooses none."""
    letter = read_letter(reply, options)
    return None if letter is None else options[LETTERS.index(letter)]


def blind_accuracy(rows: Sequence[Row]) -> float:
    """Share of readable blind trials that were right, over questions; ``nan`` without any."""
    counts: list[Mapping[str, Any]] = [row["blind"] for row in rows if "blind" in row]
    n = sum(each["n_readable"] for each in counts)
    return sum(each["n_right"] for each in counts) / n if n else float("nan")
