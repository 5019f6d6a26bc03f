"""Filters of questions: their form, blind check, similar questions, sighted check and choice.

Source: CapQuiz, section 3.2.2 and figures 6 and 7; AuroraCap, appendix L; VidCapBench, section 3.2.
The sighted check is ours, in place of the people who check in the papers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, product
from typing import Any, Final, Literal, TypeVar

from lmms_eval_captions.construction.media import text_after_frames
from lmms_eval_captions.construction.models import Question
from lmms_eval_captions.construction.people import PEOPLE
from lmms_eval_captions.construction.pipeline import BuildContext, Options, Row, Stage
from lmms_eval_captions.construction.replies import Clusters, read_clusters, read_option
from lmms_eval_captions.judges.endpoint.request import Asked, Reply
from lmms_eval_captions.judges.protocols.capquiz import LETTERS, N_OPTIONS, UNKNOWN

T = TypeVar("T")
Look = Literal["right", "wrong", "unknown"]
"""Result of a look at the frames: they show the answer, another one, or neither."""

BLIND: Final = "build_capquiz_blind"
CLUSTER: Final = "build_capquiz_cluster"
N_TRIALS: Final = 3
N_LOOKS: Final = 3
CHECKER: Final = "sighted check by a vision model (ours; the paper has people)"
MORE: Final = "more than are wanted of a clip"
_LEAST_RIGHT: Final = 2
_MAX_WORDS: Final = 40
"""Words of a short answer. Ours: the papers ask for a short sentence or phrase."""

_NEEDS_OPTIONS: Final = re.compile(
    r"\b(?:which|what)\b(?:\s+(?:one|ones|option|options|choice|choices|statement|statements"
    r"|answer|answers|description|descriptions|event|events|action|actions|object|objects))?"
    r"\s+(?:of|among|from)\s+(?:the\s+)?(?:following|these|those|options|choices|below|above)\b"
    r"|\bwhich\s+(?:statement|option|choice|answer|description)\b"
    r"|\b(?:best|most\s+accurately|correctly)\s+(?:describes|describe|summarizes|summarize)\b"
    r"|\bthe\s+following\b",
    re.IGNORECASE,
)
_COUNTERFACTUAL: Final = re.compile(
    r"\b(?:would|could|might)\s+(?:\w+\s+){0,3}?have\s+(?:happened|been|occurred|become|resulted|\w+ed)\b"
    r"|\bwhat\s+(?:would|could|might)\s+(?:\w+\s+){0,4}?\bif\b"
    r"|\bwhat\s+if\b|\bif\b[^?]{0,80}\bhad(?:\s+not|n't)\b|\bif\b[^?]{0,80}\bhad\s+\w+(?:ed|en|ne)\b",
    re.IGNORECASE,
)
_LETTERED: Final = re.compile(r"\(?([A-E])[.):]\s+(\S.*)", re.DOTALL)
_ABOUT_OPTIONS: Final = re.compile(
    r"\b(?:all|none|both|neither|any)\s+of\s+(?:the\s+)?(?:above|below|these|options|other)\b"
    r"|\b(?:cannot|can't|can\s+not|could\s+not)\s+be\s+(?:determined|told|known)\b",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(
    r"(?:\w+,?\s+){0,4}?(?:what|who|whom|whose|where|when|why|how|which)\b", re.IGNORECASE
)
"""Open questions, also after a few words, such as "In what way" and "At the end, who"."""


def same_words(text: str) -> str:
    """Return a text without differences of case, spaces and final punctuation."""
    return " ".join(text.split()).casefold().rstrip(".?! ")


def checked_rows(rows: Iterable[Row], fault: Callable[[Row], str | None]) -> list[Row]:
    """Return rows, dropped if they have a fault; those that were dropped before stay so."""
    return [
        row if "dropped" in row or (reason := fault(row)) is None else {**row, "dropped": reason}
        for row in rows
    ]


def quiz_fault(pair: Mapping[str, Any], categories: Collection[str]) -> str | None:
    """Return why a multiple-choice question is invalid (CapQuiz, figure 6).

    >>> quiz_fault({"category": "Entity", "question": "Which of these is red?",
    ...     "options": ["a", "b", "c", "d", "e"], "answer": "a"}, ["Entity"])
    'form: the question needs its options'
    """
    question, options, answer = pair["question"], pair["options"], pair["answer"]
    faults = {
        "a category that was not asked for": pair["category"] not in categories,
        "options that are no texts": not all(option.strip() for option in options),
        f"not {N_OPTIONS} options": len(options) != N_OPTIONS,
        "two options are the same": len({*map(same_words, [*options, UNKNOWN])}) <= N_OPTIONS,
        "an option about the others": any(map(_ABOUT_OPTIONS.search, options)),
        "the answer is none of the options": answer not in options,
        "the question needs its options": bool(_NEEDS_OPTIONS.search(question)),
        "about what did not happen": bool(_COUNTERFACTUAL.search(question)),
    }
    return next((f"form: {fault}" for fault, is_faulty in faults.items() if is_faulty), None)


def without_letters(pair: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question without the letters that a model put before its options and its answer.

    >>> options = ["A. red", "B. blue", "C. pink", "D. grey", "E. gold"]
    >>> made = without_letters({"options": options, "answer": "B"})
    >>> made["options"][:2], made["answer"]
    (['red', 'blue'], 'blue')
    """
    texts, answer = pair["options"], pair["answer"]
    lettered = [match for match in map(_LETTERED.fullmatch, texts) if match]
    if len(texts) != N_OPTIONS or "".join(m[1] for m in lettered) != LETTERS[:N_OPTIONS]:
        return dict(pair)
    plain = [match[2] for match in lettered]
    by_spelling = dict(zip([*texts, *LETTERS], [*plain, *plain], strict=False))
    return {**pair, "options": plain, "answer": by_spelling.get(answer, answer)}


def open_fault(question: str, answer: str) -> str | None:
    """Return why a question with an open answer is invalid."""
    if not is_question(question):
        return "form: no question"
    if not _OPEN.match(question):
        return "form: the question is not open"
    if yes_no_of(answer) in ("yes", "no"):
        return "form: the answer is yes or no alone"
    return "form: the answer is not short" if len(answer.split()) > _MAX_WORDS else None


def yes_no_fault(question: str, answer: str) -> str | None:
    """Return why a question with the answer yes or no is invalid."""
    if not is_question(question):
        return "form: no question"
    if answer not in ("yes", "no"):
        return "form: the answer is neither yes nor no"
    return "form: a star, which parts questions in the official file" if "*" in question else None


def is_question(text: str) -> bool:
    """Return whether a text ends with a question mark."""
    return text.rstrip(" \t\n\"'*").endswith(("?", "\uff1f", "\u061f"))


def yes_no_of(answer: str) -> str:
    """Return an answer as yes or no, or unchanged."""
    plain = same_words(answer.strip("\"'` ")).rstrip("!,")
    return plain if plain in ("yes", "no") else answer


def listed(options: Sequence[str]) -> str:
    r"""Return options with their letters, one per line.

    >>> listed(["red", "blue"])
    'A. red\nB. blue'
    """
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False))


def blind_check(context: BuildContext, rows: list[Row]) -> list[Row]:
    """Drop questions that all solvers answer without the clip, twice in three trials (figure 7).

    One to which a solver gave fewer than two readable replies is kept, counted and marked.
    """
    solvers = context.options.solvers
    n = len(rows) * len(solvers) * N_TRIALS
    prompt = context.prompts.load(BLIND)

    def trials() -> Iterator[Question[str]]:
        for row, solver, trial in product(rows, solvers, range(N_TRIALS)):
            options = list(row["options"])
            context.rng("blind", row["video"], row["question"], trial).shuffle(options)
            messages = prompt.render(question=row["question"], options=listed(options))
            read = partial(read_option, options=options)
            yield Question(model=solver, prompt=BLIND, messages=messages, read=read, seed=trial)

    chosen = iter(context.ask(trials(), n=n, what="blind check"))
    made: list[Row] = []
    for row in rows:
        by = {solver.name: [next(chosen).value for _ in range(N_TRIALS)] for solver in solvers}
        right = {name: options.count(row["answer"]) for name, options in by.items()}
        readable = {name: N_TRIALS - options.count(None) for name, options in by.items()}
        counts = {"n_right": sum(right.values()), "n_readable": sum(readable.values())}
        checked = {**row, "blind": {"right": right, **counts}}
        unread = [name for name, n_readable in readable.items() if n_readable < _LEAST_RIGHT]
        if min(right.values()) >= _LEAST_RIGHT:
            checked["dropped"] = "blind check: answered without the clip"
        elif unread:
            checked["blind"]["unread_by"] = unread
            context.tally.faults[
                "blind check: kept, as a solver gave too few readable replies"
            ] += 1
        made.append(checked)
    return made


def hardness(row: Row) -> float:
    """Return the share of right blind trials, in [0, 1]; 1 without a readable reply."""
    n: int = row["blind"]["n_readable"]
    return float(row["blind"]["n_right"]) / n if n else 1.0


def blind_accuracy(rows: Sequence[Row]) -> float:
    """Return the share of readable blind trials that were right; ``nan`` without any."""
    counts = [row["blind"] for row in rows if "blind" in row]
    n = sum(each["n_readable"] for each in counts)
    return sum(each["n_right"] for each in counts) / n if n else float("nan")


def grouped(rows: Sequence[Row], *keys: str) -> list[list[Row]]:
    """Return rows clip by clip, or by further keys, in their order."""
    names = keys or ("video",)
    return [list(group) for _, group in groupby(rows, lambda row: [row[name] for name in names])]


def drop_similar(
    context: BuildContext,
    rows: list[Row],
    *,
    order: Callable[[Row], Any],
    within: tuple[str, ...] = ("video",),
) -> list[Row]:
    """Drop questions that ask and answer the same as another one of the same clip (figure 7).

    The least by ``order`` stays. If no reply of the solver can be read, questions are compared by
    their words only, and counted. Ours: another answer to the same question is left to the sighted
    check.
    """
    groups = grouped(rows, *within)
    several = [group for group in groups if len(group) > 1]
    asked = iter(ask_groups(context, several, CLUSTER, read_clusters))
    made: list[Row] = []
    for group in groups:
        outcome = next(asked) if len(group) > 1 else None
        if outcome and outcome.value is None:
            context.tally.faults["groups of questions compared by their words only"] += 1
        by_model = outcome.value if outcome else None
        clusters: Clusters = by_model or (by_words(group, "question", "answer"),)
        stays = {
            index: min((group[place] for place in same), key=order)["id"]
            for cluster in clusters
            for same in cluster
            for index in same
        }
        for index, row in enumerate(group):
            same_as = stays.get(index, row["id"])
            fault = {"dropped": "the same as another question of its clip", "same_as": same_as}
            made.append(row if same_as == row["id"] else {**row, **fault})
    return made


def ask_groups(
    context: BuildContext,
    groups: Sequence[Sequence[Row]],
    prompt: str,
    read: Callable[[Reply, int], T | None],
) -> list[Asked[T]]:
    """Have the first solver group the questions of each clip by their indices, from 0 to ``n``."""
    solver, text = context.options.solvers[0], context.prompts.load(prompt)

    def question(rows: Sequence[Row]) -> Question[T]:
        keys, n = ("question", "answer"), len(rows)
        pairs = [{"index": i, **{key: row[key] for key in keys}} for i, row in enumerate(rows)]
        return Question(
            model=solver,
            prompt=prompt,
            messages=text.render(pairs=json.dumps(pairs, ensure_ascii=False, indent=0)),
            read=lambda reply: read(reply, n),
            max_tokens=max(256, 16 * n),
        )

    return context.ask(map(question, groups), n=len(groups), what=prompt)


def by_words(rows: Sequence[Row], *keys: str) -> tuple[tuple[int, ...], ...]:
    """Group the indices of questions with the same words.

    >>> by_words([{"q": "Is it red?"}, {"q": "Why?"}, {"q": "is it  Red?"}], "q")
    ((0, 2), (1,))
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(tuple(same_words(row[key]) for key in keys), []).append(index)
    return tuple(map(tuple, groups.values()))


def drop_repeated(rows: Sequence[Row], within: str = "video") -> list[Row]:
    """Drop questions with the words and the answer of an earlier one of the same clip.

    ``within`` is a further key that must be equal, such as the aspect.
    """
    seen: set[tuple[str, ...]] = set()

    def fault(row: Row) -> str | None:
        words = (same_words(str(row[name])) for name in ("question", "answer"))
        key = (row["video"], str(row[within]), *words)
        is_repeated = key in seen
        seen.add(key)
        return "form: the words of another question" if is_repeated else None

    return checked_rows(rows, fault)


AboutLook = tuple[Mapping[str, str], Callable[[Reply], str | None]]
"""Texts that fill the prompt of a look, and the reader of its reply."""
MakeLook = Callable[[BuildContext, Row, int], AboutLook]
"""Makes a look at a question by its number, from 0."""


def compared(said: str | None, answer: str) -> Look | None:
    """Return the result of a look from the viewer's reply and the right one."""
    if said is None or said in ("unknown", UNKNOWN):
        return None if said is None else "unknown"
    return "right" if said == answer else "wrong"


def sighted_stage(
    options: Options, what: str, prompt: str, look: MakeLook, rival: MakeLook | None = None
) -> Stage:
    """Return the stage that looks at each question; people's if their answers are given."""
    if options.labels:
        return PEOPLE

    def run(context: BuildContext, rows: list[Row]) -> list[Row]:
        checked = _confirmed(context, rows, prompt, look)
        return checked if rival is None else _without_rivals(context, checked, prompt, rival)

    does = f"drop {what} whose answer a vision model does not find in the frames (ours)"
    return Stage("sighted", does, run, ("viewer",), (prompt,), ("seed",))


def _confirmed(context: BuildContext, rows: list[Row], prompt: str, look: MakeLook) -> list[Row]:
    """Drop questions whose answer neither the first look nor most of three looks confirm."""
    reasons = {
        "wrong": "sighted check: the frames show another answer",
        "unknown": "sighted check: the frames do not show the answer",
    }
    all_looks = _looks(context, rows, prompt, look, lambda first: first != "right")
    made = list[Row]()
    for row, looks in zip(rows, all_looks, strict=True):
        checked = {**row, "check": {"by": CHECKER, "looks": looks}}
        if looks.count("right") * 2 <= len(looks):
            others = Counter(each for each in looks if each not in ("right", None))
            most = others.most_common(1)[0][0] if others else None
            checked["dropped"] = reasons.get(str(most), "sighted check: no readable reply")
        made.append(checked)
    return made


def _without_rivals(
    context: BuildContext, rows: list[Row], prompt: str, look: MakeLook
) -> list[Row]:
    """Drop questions for which three of four looks without the answer name the same option."""
    left = [row for row in rows if "dropped" not in row]
    all_looks = _looks(
        context, left, prompt, look, lambda first: first not in (UNKNOWN, None), n_looks=N_LOOKS + 1
    )
    rivals = {
        row["id"]: {"dropped": "sighted check: another option is right too", "rival": option}
        for row, looks in zip(left, all_looks, strict=True)
        for option, n in Counter(looks).items()
        if option not in (UNKNOWN, None) and n >= N_LOOKS
    }
    return [{**row, **rivals.get(row.get("id", ""), {})} for row in rows]


def _looks(
    context: BuildContext,
    rows: Sequence[Row],
    prompt: str,
    look: MakeLook,
    is_doubtful: Callable[[str | None], bool],
    n_looks: int = N_LOOKS,
) -> list[list[str | None]]:
    """Return the look at each question, or several looks if the first is doubtful."""
    viewers, text = context.options.viewers, context.prompts.load(prompt)

    def looks(of: Sequence[Row], numbers: Sequence[int]) -> list[list[str | None]]:
        context.expect(of)
        asked = iter(context.ask(questions(of, numbers), n=len(of) * len(numbers), what=prompt))
        return [[next(asked).value for _ in numbers] for _ in of]

    def questions(of: Sequence[Row], numbers: Sequence[int]) -> Iterator[Question[str]]:
        for row, number in product(of, numbers):
            slots, read = look(context, row, number)
            yield Question(
                model=viewers[number % len(viewers)],
                prompt=prompt,
                messages=text_after_frames(text.render(**slots), context.shown(row)),
                read=read,
                seed=number,
                # A request that equals the first one would get the same reply.
                temperature=0.7 if number and "options" not in slots else 0.0,
            )

    first = looks(rows, [0])
    doubtful = [row for row, [each] in zip(rows, first, strict=True) if is_doubtful(each)]
    further = iter(looks(doubtful, range(1, n_looks)))
    return [[each, *(next(further) if is_doubtful(each) else [])] for [each] in first]


def choose_balanced(
    context: BuildContext,
    rows: Sequence[Row],
    *,
    order: Callable[[Row], Any],
    balance: str | None = None,
    most: int | None = None,
) -> list[Row]:
    """Keep at most so many questions per clip, spread evenly over their categories.

    Each time the category with the fewest questions of all clips so far gives its next one, the
    least by ``order``. ``balance`` is a key whose values are balanced too, such as the answer.
    """
    taken: Counter[str] = Counter()
    values: Counter[str] = Counter()
    chosen: set[str] = set()

    def rank(row: Row) -> tuple[int, int]:
        return taken[row["category"]], values[row[balance]] if balance else 0

    for clip in grouped(rows):
        left = sorted(clip, key=order)
        for _ in range(min(most or context.options.per_video, len(clip))):
            row = min(left, key=rank)
            left.remove(row)
            taken[row["category"]] += 1
            values[row[balance] if balance else ""] += 1
            chosen.add(row["id"])
    return [row if row["id"] in chosen else {**row, "dropped": MORE} for row in rows]


def shortlist_stage(what: str, choose: Callable[..., list[Row]]) -> Stage:
    """Return the stage that keeps twice as many questions as may stay: looks cost most."""

    def run(context: BuildContext, rows: list[Row]) -> list[Row]:
        return choose(context, rows, most=2 * context.options.per_video)

    does = f"keep twice as many {what} per clip as may stay, as each is looked at (ours)"
    return Stage("shortlist", does, run, options=("per_video", "seed"))


def spread_answers(context: BuildContext, rows: Sequence[Row]) -> list[Row]:
    """Put right options equally often into each of the five positions (CapQuiz, figure 4c)."""
    rng = context.rng("places")
    places: list[int] = []
    made: list[Row] = []
    for row in rows:
        if "dropped" in row:
            made.append(row)
            continue
        if not places:
            places = list(range(N_OPTIONS))
            rng.shuffle(places)
        options = [option for option in row["options"] if option != row["answer"]]
        rng.shuffle(options)
        options.insert(places.pop(), row["answer"])
        made.append({**row, "options": options})
    return made
