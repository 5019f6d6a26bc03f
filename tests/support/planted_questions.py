"""Knowledge of a scripted model about clips: objects, their colours, and planted faults.

Everything follows from an object's name and the seed, so that a server that is started again says
the same. An object is named in every question about it: "object 3fa2b1-7c-017" is the 17th that the
writer 7c asks about in the clip 3fa2b1.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

T = TypeVar("T")

Fate = Literal["wrong", "unstable", "contradicted", "one road", "sound"]
Road = Literal["frames", "caption"]
Malformation = Literal[
    "six options", "no answer", "two the same", "needs options", "counterfactual"
]

COLOURS: Final = (
    "red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "brown", "grey", "black",
    "white",
)  # fmt: skip
N_OPTIONS: Final = 5
NAME: Final = re.compile(r"object ([0-9a-f]{6}-[0-9a-f]{2}-[0-9]{3,})")
MALFORMATIONS: Final[dict[Malformation, str]] = {
    "six options": "form: not 5 options",
    "no answer": "form: the answer is none of the options",
    "two the same": "form: two options are the same",
    "needs options": "form: the question needs its options",
    "counterfactual": "form: about what did not happen",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of questions with a planted fault, and how often scripted models slip."""

    blind: float = 0.2
    """Answered without the clip."""
    wrong: float = 0.1
    """The writer's answer is another one than what is seen."""
    unstable: float = 0.15
    """The judge's verdict differs from seed to seed."""
    contradicted: float = 0.1
    """One road says yes, the other no."""
    one_road: float = 0.1
    """Only one road saw it."""
    duplicate: float = 0.1
    """Asks in other words what another question of the clip asks."""
    malformed: float = 0.05
    slips: float = 0.03


SOUND: Final = (
    "What colour is object {} in the clip?",
    "Which colour does object {} have once the door has opened?",
    "What colour had object {} before the others were moved?",
    "Of what colour is object {}, which stands among these boxes?",
)
AGAIN: Final = (
    "In part {0} of the clip, which colour has object {1}?",
    "Seen at {0}, what is the colour of object {1}?",
)
"""Stems that name a place of their own, and ask what another question asks."""
NEEDS_OPTIONS: Final = (
    "Which of the following best describes object {}?",
    "Which of these colours does object {} have?",
    "Which statement about object {} is true?",
    "What is the colour of object {}, among the following?",
)
COUNTERFACTUAL: Final = (
    "What colour would object {} have been if nobody had painted it?",
    "What if object {} had not been turned around?",
    "What would have happened to object {} if the door had stayed shut?",
    "If the lamp had broken, which colour would object {} show?",
)


def draw(*about: object) -> float:
    """A number in [0, 1) that is the same for the same things, and else independent."""
    text = "\0".join(map(str, about)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48


def chosen(choices: Sequence[T], *about: object) -> T:
    """One of several, each equally likely."""
    return choices[int(draw(*about) * len(choices))]


def pool_of(name: str) -> str:
    """Two hexadecimal digits for a writer, or for an aspect."""
    return hashlib.blake2b(name.encode(), digest_size=1).hexdigest()


def names_in(text: str) -> list[str]:
    """The objects that a text names, in order."""
    return NAME.findall(text)


def colour_in(text: str) -> str:
    """The last colour that a text names; empty without one."""
    named = re.findall(rf"\b(?:{'|'.join(COLOURS)})\b", text)
    return named[-1] if named else ""


@dataclass(frozen=True, slots=True)
class Planted:
    name: str
    shares: Shares
    seed: int

    @property
    def is_blind(self) -> bool:
        return self._draw("blind") < self.shares.blind

    def fate(self, kind: str) -> Fate:
        shares = self.shares
        fates: dict[Fate, float] = {"wrong": shares.wrong}
        if kind == "vidcapbench":
            fates["unstable"] = shares.unstable
        elif kind == "vcapsbench":
            fates |= {"contradicted": shares.contradicted, "one road": shares.one_road}
        left = self._draw("fate")
        for fate, share in fates.items():
            left -= share
            if left < 0:
                return fate
        return "sound"

    @property
    def colour(self) -> str:
        return chosen(COLOURS, self.seed, "colour", self.name)

    @property
    def options(self) -> tuple[str, ...]:
        """Five colours, the right one among them."""
        others = [colour for colour in COLOURS if colour != self.colour]
        others.sort(key=lambda colour: self._draw("options", colour))
        first = int(self._draw("place") * N_OPTIONS)
        return (*others[:first], self.colour, *others[first : N_OPTIONS - 1])

    def answer(self, kind: str) -> str:
        """The colour that writers say."""
        if self.fate(kind) != "wrong":
            return self.colour
        others = [colour for colour in self.options if colour != self.colour]
        return chosen(others, self.seed, "wrong", self.name)

    @property
    def road(self) -> Road:
        """The road that sees it where only one does, or that is right where both differ."""
        return "frames" if self._draw("road") < 0.5 else "caption"

    @property
    def asked_colour(self) -> str:
        """The colour that yes-no questions ask for."""
        return self.colour if self._draw("asked") < 0.6 else self.options[0]

    def _draw(self, *about: object) -> float:
        return draw(self.seed, *about, self.name)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a writer's list: which object it asks about, and how."""

    clip: str
    writer: str
    number: int
    shares: Shares
    seed: int
    writers: tuple[str, ...] = ()
    """All writers, of whose objects a duplicate may ask."""

    @property
    def own(self) -> str:
        """The object of this place."""
        return f"{self.clip}-{pool_of(self.writer)}-{self.number:03d}"

    @property
    def malformation(self) -> Malformation | None:
        if self._draw("malformed") >= self.shares.malformed:
            return None
        return chosen(tuple(MALFORMATIONS), self.seed, "malformation", self.own)

    @property
    def is_duplicate(self) -> bool:
        return self.malformation is None and self._draw("duplicate") < self.shares.duplicate

    def asked(self, n: int) -> str:
        """The object that it asks about.

        Args:
            n: Places of each writer's list.
        """
        if not self.is_duplicate:
            return self.own
        writers = self.writers or (self.writer,)
        for attempt in range(20):
            other = Place(
                self.clip,
                chosen(writers, self.seed, "whose", self.own, attempt),
                int(draw(self.seed, "which", self.own, attempt) * n),
                self.shares,
                self.seed,
                self.writers,
            )
            if not other.is_duplicate and other.malformation is None:
                return other.own
        return self.own

    def _draw(self, about: str) -> float:
        return draw(self.seed, about, self.own)


def quiz_question(place: Place, n: int, category: str) -> dict[str, object]:
    """A multiple-choice question, as it is written at a place of a list of ``n``."""
    planted = Planted(place.asked(n), place.shares, place.seed)
    options, answer = list(planted.options), planted.answer("capquiz")
    stems = SOUND
    match place.malformation:
        case "six options":
            options.append(next(colour for colour in COLOURS if colour not in options))
        case "no answer":
            answer = next(colour for colour in COLOURS if colour not in options)
        case "two the same":
            options[options.index(answer) - 1] = f"{answer.title()}."
        case "needs options":
            stems = NEEDS_OPTIONS
        case "counterfactual":
            stems = COUNTERFACTUAL
    stem = chosen(stems, place.seed, "stem", place.own)
    question = stem.format(planted.name)
    if planted.name != place.own:
        again = chosen(AGAIN, place.seed, "stem", place.own)
        question = again.format(place.own, planted.name)
    return {"category": category, "question": question, "options": options, "answer": answer}
