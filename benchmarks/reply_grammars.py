"""Replies made up with a known verdict, with noise in their free text, or without a verdict.

Each grammar writes the verdicts of one reader in the forms that its prompt asks for and that judges
use in their place. A mark such as ``<S>`` in a form stands for what a verdict is written with.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hard_replies import MENU, Reader, Reading

Fields = dict[str, str]
"""Mark of a form to what it is written as."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """How one reader's replies are written."""

    draw: Callable[[random.Random], tuple[Reading, Fields]]
    """A verdict and how its parts are written."""
    stated: tuple[str, ...]
    """Forms that state a verdict beyond doubt: two of them that differ contradict."""
    plain: tuple[str, ...]
    """Further forms with one verdict, clear where they are all of a reply."""
    free: tuple[str, ...]
    """Forms with a field of free text: ``<J>`` as JSON, ``<R>`` as Python, ``<T>`` as one line."""
    unclear: Callable[[random.Random], tuple[str, tuple[Reading, ...]]]
    """A reply without a single verdict, and the readings that a person may yet defend."""

    def valid(self, rng: random.Random) -> tuple[str, Reading]:
        """A reply and its verdict."""
        reading, fields = self.draw(rng)
        return fill(rng.choice(self.stated + self.plain), fields), reading

    def with_free_text(self, rng: random.Random, noise: str) -> tuple[str, Reading]:
        """A reply whose free text holds noise, and its verdict."""
        reading, fields = self.draw(rng)
        line = " ".join(noise.split())
        form = fill(rng.choice(self.free), fields)
        for mark, text in (("<J>", json.dumps(noise)), ("<R>", repr(noise)), ("<T>", line)):
            form = form.replace(mark, text)
        return form, reading

    def contradiction(self, rng: random.Random) -> str:
        """Two verdicts that differ, each on lines of its own."""
        reading, fields = self.draw(rng)
        while True:
            other, other_fields = self.draw(rng)
            if other != reading:
                break
        first, second = rng.choice(self.stated), rng.choice(self.stated)
        return fill(first, fields) + rng.choice(_BETWEEN) + fill(second, other_fields)


def fill(form: str, fields: Fields) -> str:
    """A form with its marks replaced."""
    for mark, text in fields.items():
        form = form.replace(mark, text)
    return form


_BETWEEN: Final = ("\n", "\n\n", "\nWait, on reflection:\n", "\n\nNote:\n", "\n---\n")


def _vdc(rng: random.Random) -> tuple[Reading, Fields]:
    pred = rng.choice(("yes", "no"))
    score = rng.choice(("0", "1", "2", "3", "4", "5", "4.8", "2.5", "3.25"))
    written = rng.choice((pred, pred.capitalize(), pred.upper()))
    return (pred, float(score)), {"<P>": written, "<S>": score}


def _vdc_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    pred, a, b = rng.choice(("yes", "no")), rng.randint(0, 4), rng.randint(1, 9)
    score, readable = rng.choice(_numbers(a, b, highest=5))
    form = rng.choice(("{'pred': '<P>', 'score': <S>}", "pred: <P>, score: <S>", "<P>, <S>"))
    allowed = () if readable is None else ((pred, readable),)
    return fill(form, {"<P>": pred, "<S>": score}), allowed


def _numbers(a: int, b: int, *, highest: int) -> tuple[tuple[str, float | None], ...]:
    """What is written in place of a number, and what it may be taken for."""
    return (
        (f"{a}-{a + 1}", None),
        (f"{a} to {a + 1}", None),
        (f"{a} or {a + 1}", None),
        (f"{a},{b}", a + b / 10),
        (f".{b}", b / 10 if b / 10 <= highest else None),
        (f"-{b + 1}", None),
        (f"{highest + b}", None),
        (f"{highest}.{b}", None),
        (f"{a}/{highest + 3}", None),
        (f"{a} out of {highest + 3}", None),
        (f"{a} -> {a + 1}", float(a + 1)),
    )


_GRADES: Final = {"correct": "2", "partial": "1", "neutral": "0", "wrong": "-1"}


def _grade(rng: random.Random) -> tuple[Reading, Fields]:
    label = rng.choice(tuple(_GRADES))
    return label, {"<S>": _GRADES[label]}


def _grade_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    a, b = rng.randint(0, 1), rng.randint(1, 9)
    score, readable = rng.choice(_numbers(a, b, highest=2))
    by_number = {float(number): label for label, number in _GRADES.items()}
    form = rng.choice(('{"score": <S>, "analysis": "Hm."}', "Score: <S>", "The score is <S>."))
    allowed = () if readable not in by_number else (by_number[readable],)
    return fill(form, {"<S>": score}), allowed


_LABELS: Final = ("yes", "no", "unanswerable")


def _label(rng: random.Random) -> tuple[Reading, Fields]:
    label = rng.choice(_LABELS)
    return label, {"<L>": rng.choice((label, label.capitalize(), label.upper()))}


def _label_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    first, second = rng.sample(_LABELS, 2)
    form, corrected = rng.choice(_TWO)
    form = rng.choice((f"{form}@@@Hm.", f"The answer is {form}.", form))
    return fill(form, {"<1>": first, "<2>": second}), (second,) if corrected else ()


_TWO: Final = (
    ("<1> or <2>", False),
    ("<1> and <2>", False),
    ("<1>/<2>", False),
    ("<1>, <2>", False),
    ("<1> -> <2>", True),
    ("<1>? No, <2>", True),
    ("either <1> or <2>", False),
)


def _letter(rng: random.Random) -> tuple[Reading, Fields]:
    index = rng.randrange(len(MENU))
    letter = "ABCDEF"[index]
    return letter, {"<L>": letter, "<O>": MENU[index]}


def _letter_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    first, second = rng.sample("ABCDEF", 2)
    form, corrected = rng.choice(_TWO)
    form = rng.choice((form, f"The answer is {form}.", f"Answer: {form}"))
    return fill(form, {"<1>": first, "<2>": second}), (second,) if corrected else ()


def _overall(rng: random.Random) -> tuple[Reading, Fields]:
    score = str(rng.choice((rng.randint(0, 100), 5, 59, 100)))
    return (float(score),), {"<S>": score}


def _overall_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    score, readable = rng.choice(_numbers(rng.randint(1, 98), rng.randint(1, 9), highest=100))
    form = rng.choice(("The final score is $<S>$.", "The final score is <S>.", "Final score: <S>"))
    return fill(form, {"<S>": score}), () if readable is None else ((readable,),)


def _four(rng: random.Random) -> tuple[Reading, Fields]:
    scores = [rng.randint(0, 100) for _ in range(4)]
    return tuple(map(float, scores)), {
        f"<{mark}>": str(score) for mark, score in zip("ABCD", scores, strict=True)
    }


def _four_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    reading, fields = _four(rng)
    score, readable = rng.choice(_numbers(rng.randint(1, 98), rng.randint(1, 9), highest=100))
    place = rng.randrange(4)
    text = fill(rng.choice(_FOUR[:2]), fields | {f"<{'ABCD'[place]}>": score})
    if readable is None or not isinstance(reading, tuple):
        return text, ()
    numbers = [float(number) for number in reading]
    numbers[place] = readable
    return text, (tuple(numbers),)


_FOUR: Final = (
    "The Accuracy score is α<A>α. The Completeness score is β<B>β. "
    "The Conciseness score is ψ<C>ψ. The Relevance score is δ<D>δ.",
    "The Accuracy score is <A>. The Completeness score is <B>. "
    "The Conciseness score is <C>. The Relevance score is <D>.",
    "Accuracy: α<A>α\nCompleteness: β<B>β\nConciseness: ψ<C>ψ\nRelevance: δ<D>δ",
    "Accuracy: <A>\nCompleteness: <B>\nConciseness: <C>\nRelevance: <D>",
)


def _three(rng: random.Random) -> tuple[Reading, Fields]:
    ratings = [rng.randint(1, 5) for _ in range(3)]
    return tuple(map(float, ratings)), {
        f"<{mark}>": str(rating) for mark, rating in zip("ABC", ratings, strict=True)
    }


def _three_unclear(rng: random.Random) -> tuple[str, tuple[Reading, ...]]:
    _, fields = _three(rng)
    rating, _ = rng.choice(_numbers(rng.randint(1, 4), rng.randint(1, 9), highest=5))
    return fill(_THREE[0], fields | {f"<{rng.choice('ABC')}>": rating}), ()


_RATINGS: Final = '{"trustworthiness": <A>, "coverage": <B>, "overall": <C>}'
_THREE: Final = (
    f'{{"analysis": "It misses 2 of 3 dogs.", "scores": {_RATINGS}}}',
    f'```json\n{{"analysis": "It misses 2 of 3 dogs.", "scores": {_RATINGS}}}\n```',
    f'{{\n  "analysis": "Fine.",\n  "scores": {_RATINGS}\n}}',
)
_ONE_OBJECT: Final = '{"pred": "<P>", "score": <S>}'

GRAMMARS: Final[dict[Reader, Grammar]] = {
    "vdc": Grammar(
        _vdc,
        ("{'pred': '<P>', 'score': <S>}", _ONE_OBJECT, f"```json\n{_ONE_OBJECT}\n```"),
        (
            "Pred: <P>\nScore: <S>",
            "pred: <P>, score: <S>",
            "<P>, <S>",
            "{'score': <S>, 'pred': '<P>'}",
            f'{{"result": {_ONE_OBJECT}}}',
            f"Sure! Here it is:\n{_ONE_OBJECT}\n\nThe two answers were compared.",
        ),
        (
            '{"pred": "<P>", "score": <S>, "reason": <J>}',
            '{"reason": <J>, "pred": "<P>", "score": <S>}',
            "{'pred': '<P>', 'score': <S>, 'reason': <R>}",
            "{'reason': <R>, 'pred': '<P>', 'score': <S>}",
        ),
        _vdc_unclear,
    ),
    "vidcapbench": Grammar(
        _grade,
        ('{"score": <S>, "analysis": "It was compared."}', "Score: <S>", "The score is <S>."),
        ("<S>", "**Score: <S>**\n\nIt was compared.", r"\boxed{<S>}", '{"score": "<S>"}'),
        (
            '{"score": <S>, "analysis": <J>}',
            '{"analysis": <J>, "score": <S>}',
            "{'score': <S>, 'analysis': <R>}",
            "{'analysis': <R>, 'score': <S>}",
        ),
        _grade_unclear,
    ),
    "vcapsbench": Grammar(
        _label,
        ("<L>@@@The caption was read.", "The answer is <L>.", "Answer: <L>"),
        ("<L>", "**<L>**@@@The caption was read.", "<L>\n@@@\nThe caption was read.", "<L>."),
        ("<L>@@@<T>", "**<L>**@@@<T>"),
        _label_unclear,
    ),
    "capquiz": Grammar(
        _letter,
        ("<L>", "(<L>)", "**<L>**", "The answer is <L>.", "Answer: <L>"),
        (
            "<L>. <O>",
            "<O>",
            "Because the caption says so, the answer is <L>.",
            "Every car was looked at.\n\n<L>",
        ),
        ('{"answer": "<L>", "explanation": <J>}',),
        _letter_unclear,
    ),
    "gveval_overall": Grammar(
        _overall,
        ("The final score is $<S>$.", "Final score: <S>", "The final score is <S>."),
        (
            "$<S>$",
            "**The final score is $<S>$.**",
            "The final score is $<S>$ out of 100.",
            "It misses 2 of 3 dogs. The final score is $<S>$.",
            "The sign says $5. The final score is $<S>$.",
            "Final score: <S>/100",
        ),
        ('{"reason": "It misses 2 of 3 dogs.", "final score": <S>}',),
        _overall_unclear,
    ),
    "gveval_accr": Grammar(
        _four,
        _FOUR,
        ("α<A>α β<B>β ψ<C>ψ δ<D>δ", f"It misses 2 of 3 dogs. {_FOUR[0]}"),
        (f"It shows 2 dogs, 3 cats and 1 of 4 cars. {_FOUR[0]}",),
        _four_unclear,
    ),
    "video_rating": Grammar(
        _three,
        _THREE,
        (
            f'{{"scores": {_RATINGS}}}',
            f"Step 1: 2 dogs run for 5 s.\n\n{_THREE[0]}",
            f"Trustworthiness: <A>/5\nCoverage: <B>/5\n\n{_THREE[0]}",
        ),
        (
            f'{{"analysis": <J>, "scores": {_RATINGS}}}',
            f'{{"scores": {_RATINGS}, "analysis": <J>}}',
        ),
        _three_unclear,
    ),
}
