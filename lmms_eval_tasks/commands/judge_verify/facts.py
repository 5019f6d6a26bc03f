"""Captions with planted facts, composed of parts by a seeded generator: the same for everybody."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.slots import (
    FILLERS,
    SHORT_PARTS,
    SLOTS,
    Slot,
)
from lmms_eval_captions.lmms_eval_tasks.planted_facts import PlantedFact, Relation

VERSION: Final = 1
"""Of the facts: a change of any of them is a new one, and records of another are not compared."""
N_FACTS: Final = 200
_RELATIONS: Final[tuple[Relation, ...]] = ("states", "contradicts", "states", "silent")
"""In turn: half of the captions state their fact."""
_N_TOLD: Final = 7
"""Slots that a caption speaks of."""
_N_FILLERS: Final = 3
_STRIDE: Final = 7919
"""Steps between the combinations of short texts; a prime that divides no number of them."""
_SUBTLE: Final = 0.6
"""Share of facts, where their slot has a subtle form, that are told in it."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A slot of one video, and what its caption says of it."""

    slot: Slot
    thing: str
    value: str
    """What the caption says, in the words of the options."""
    sentence: str
    extra: str
    """A distractor, or empty."""
    is_subtle: bool


@cache
def planted_facts(n_facts: int = N_FACTS, version: int = VERSION) -> tuple[PlantedFact, ...]:
    """The facts of a version, two about each video.

    Args:
        n_facts: How many, the first ones of the version.
        version: It is the generator's seed.
    """
    facts: list[PlantedFact] = []
    for video in range((n_facts + 1) // 2):
        facts += _facts_of_video(video, random.Random(f"planted facts {version} {video}"))  # noqa: S311 - no secret # nosec B311
    return tuple(facts[:n_facts])


@cache
def facts_digest(facts: tuple[PlantedFact, ...]) -> str:
    """Eight digits that stand for facts, whatever their order."""
    texts = sorted(json.dumps(asdict(fact), sort_keys=True) for fact in facts)
    return hashlib.blake2b("\n".join(texts).encode("ascii"), digest_size=4).hexdigest()


def _facts_of_video(video: int, rng: random.Random) -> list[PlantedFact]:
    """Two facts, each with a caption of its own."""
    facts = []
    for place in range(2):
        # Every kind and relation comes in turn, so that all of them are there equally often.
        number = 2 * video + place
        slot = SLOTS[number % len(SLOTS)]
        relation = _RELATIONS[(number + number // len(SLOTS)) % len(_RELATIONS)]
        others = [other for other in rng.sample(SLOTS, len(SLOTS)) if other is not slot]
        facts.append(_fact(number, slot, relation, others, rng))
    return facts


def _fact(
    number: int, slot: Slot, relation: Relation, others: Sequence[Slot], rng: random.Random
) -> PlantedFact:
    thing = rng.choice(slot.things)
    truth = rng.choice(slot.values)
    wrong = _wrong(slot, truth, rng)
    said = {"states": truth, "contradicts": wrong, "silent": ""}[relation]
    told = [_tell(other, rng) for other in others[: _N_TOLD - 1]]
    asked = _tell(slot, rng, thing=thing, value=said, never=truth) if said else None
    told.insert(rng.randrange(len(told) + 1), asked or _tell(others[_N_TOLD - 1], rng))
    claimed = truth if rng.random() < 0.5 else wrong
    references, short_caption = _short_texts(number, rng, is_true=relation == "states")
    return PlantedFact(
        name=f"{number // 2:03}-{number % 2}",
        kind=slot.kind,
        relation=relation,
        is_subtle=_is_subtle(slot, asked),
        caption=_caption(told, rng),
        evidence=asked.sentence if asked else "",
        question=_filled(slot.question, thing),
        truth=truth,
        said=said,
        claim=_filled(slot.claim, thing, claimed),
        claim_is_true=claimed == truth,
        options=_options(slot, (truth, wrong), rng),
        references=references,
        short_caption=short_caption,
    )


def _is_subtle(slot: Slot, asked: _Told | None) -> bool:
    return asked is not None and (asked.is_subtle or slot.is_ordered)


def _wrong(slot: Slot, truth: str, rng: random.Random) -> str:
    """Another value: of an ordered slot the one beside it."""
    if slot.is_ordered:
        place = slot.values.index(truth)
        beside = [p for p in (place - 1, place + 1) if 0 <= p < len(slot.values)]
        return slot.values[rng.choice(beside)]
    return rng.choice([value for value in slot.values if value != truth])


def _tell(
    slot: Slot, rng: random.Random, *, thing: str = "", value: str = "", never: str = ""
) -> _Told:
    """A slot with what a caption says of it; what is not given is drawn.

    Args:
        slot: Which one.
        rng: Draws.
        thing: What it is said of.
        value: What is said.
        never: What no distractor may say.
    """
    thing = thing or rng.choice(slot.things)
    value = value or rng.choice(slot.values)
    other = rng.choice([each for each in slot.values if each not in (value, never)])
    words, sentences, extra, is_subtle = value, slot.sentences, "", False
    if rng.random() < _SUBTLE:
        if value in slot.spellings:
            words, is_subtle = slot.spellings[value], True
        elif slot.subtle_sentences:
            sentences, is_subtle = slot.subtle_sentences, True
        elif slot.distractor:
            extra, is_subtle = _filled(slot.distractor, thing, other=other), True
    sentence = _filled(rng.choice(sentences), thing, words, other)
    return _Told(slot, thing, value, sentence, extra, is_subtle)


def _caption(told: Sequence[_Told], rng: random.Random) -> str:
    sentences = [sentence for each in told for sentence in (each.sentence, each.extra) if sentence]
    for filler in rng.sample(FILLERS, _N_FILLERS):
        sentences.insert(rng.randrange(len(sentences) + 1), filler)
    # What comes at the very end of a story is told at the end.
    return " ".join(sorted(sentences, key=lambda sentence: sentence.startswith("Much later")))


def _options(slot: Slot, needed: tuple[str, str], rng: random.Random) -> tuple[str, ...]:
    others = [value for value in slot.values if value not in needed]
    options = [*needed, *rng.sample(others, 3)]
    rng.shuffle(options)
    return tuple(options)


def _short_texts(number: int, rng: random.Random, *, is_true: bool) -> tuple[tuple[str, ...], str]:
    """References of a video, and a short caption of it, or of another one.

    Args:
        number: Of the fact; different ones have different references.
        rng: Draws the other video.
        is_true: Whether the caption is of the same one.
    """
    n_combinations = prod(map(len, SHORT_PARTS.values()))
    place = number * _STRIDE % n_combinations
    own, other = [], []
    for values in SHORT_PARTS.values():
        place, index = divmod(place, len(values))
        own.append(values[index])
        other.append(values[(index + rng.randrange(1, len(values))) % len(values)])
    who, does, where = own
    references = (
        f"{who} is {does} {where}.",
        f"{who} {where} is {does}.",
        f"{who} keeps {does} {where} while the camera watches.",
    )
    who, does, where = own if is_true else other
    return references, f"The video shows {who.lower()} {where}, {does}."


def _filled(template: str, thing: str, value: str = "", other: str = "") -> str:
    text = template.format(
        thing=thing, Thing=thing[:1].upper() + thing[1:], value=value, other=other
    )
    return text[:1].upper() + text[1:]
