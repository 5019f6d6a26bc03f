"""What a made-up video can show: slots, the values that each may have, and sentences about them.

Values of a slot are far from each other, so that none is a near miss of another; the subtle ones
are marked. In sentences and questions ``{value}`` is what the caption says, ``{thing}`` what it is
said of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One thing that a caption may speak of."""

    kind: str
    values: tuple[str, ...]
    """At least six, in the words of answers and options."""
    sentences: tuple[str, ...]
    question: str
    claim: str
    """A yes-no question: whether it is ``{value}``."""
    things: tuple[str, ...] = ("",)
    """What it may be said of, one per video."""
    spellings: dict[str, str] = field(default_factory=dict, hash=False)
    """Value to other words for it, which captions may use in its place."""
    distractor: str = ""
    """A sentence that says another value, ``{other}``, of something else."""
    is_ordered: bool = False
    """Whether values next to each other are near: a wrong one is taken from there."""
    subtle_sentences: tuple[str, ...] = ()
    """Sentences that say it by a negation: ``{value}`` and what it is not, ``{other}``."""


_NUMBERS: Final = (
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip

SLOTS: Final[tuple[Slot, ...]] = (
    Slot(
        kind="subject",
        values=(
            "a baker", "a fisherman", "a violinist", "a nurse", "a carpenter", "a firefighter",
            "a physician", "a tailor", "a mechanic", "a gardener",
        ),
        sentences=(
            "The person at the centre of the scene is clearly {value}, recognisable by the tools "
            "within reach.",
            "Everything revolves around {value}, who stays in view for nearly the whole clip.",
        ),
        question="What is the occupation of the person at the centre of the scene?",
        claim="Is the person at the centre of the scene {value}?",
        spellings={"a physician": "a doctor", "a mechanic": "a repairman of engines"},
    ),
    Slot(
        kind="colour",
        values=("red", "blue", "green", "yellow", "black", "white"),
        things=("apron", "jacket", "scarf", "cap", "backpack"),
        sentences=(
            "The person wears a {value} {thing} that stands out against the surroundings.",
            "A {value} {thing} is the most striking part of what the person is wearing.",
        ),
        question="What colour is the person's {thing}?",
        claim="Is the person's {thing} {value}?",
        distractor="Not far away, a {other} umbrella leans against a wall.",
        subtle_sentences=(
            "The person's {thing} looks {other} at first, in the shade, but turns out to be "
            "{value} once the light falls on it.",
        ),
    ),
    Slot(
        kind="count",
        values=_NUMBERS,
        things=("clay pots", "glass bottles", "paper lanterns", "wooden crates", "candles"),
        sentences=(
            "Exactly {value} {thing} are lined up in the foreground.",
            "In the foreground one can count {value} {thing}, arranged in a neat row.",
        ),
        question="How many {thing} are there in the foreground?",
        claim="Are there exactly {value} {thing} in the foreground?",
        is_ordered=True,
    ),
    Slot(
        kind="place",
        values=(
            "a harbour", "a train station", "a classroom", "a desert", "a greenhouse",
            "a museum hall", "an underground car park", "a mountain meadow",
        ),
        sentences=(
            "The video was shot in {value}, which is recognisable from the very first frame.",
            "All of it takes place in {value}, and the location never changes.",
        ),
        question="Where does the video take place?",
        claim="Does the video take place in {value}?",
        spellings={"a harbour": "a port full of boats", "a train station": "a railway station"},
    ),
    Slot(
        kind="camera movement",
        values=(
            "it pans from left to right", "it tilts upwards", "it zooms in",
            "it stays completely still", "it moves backwards", "it rotates upside down",
        ),
        sentences=(
            "As for the camera, {value} from the beginning to the end of the shot.",
            "Throughout the shot the movement of the camera is the same: {value}.",
        ),
        question="How does the camera move?",
        claim="Is it true of the camera that {value}?",
        spellings={"it stays completely still": "it remains fixed and does not move at all"},
    ),
    Slot(
        kind="text on screen",
        values=(
            "OPEN DAILY", "LOST LUGGAGE", "NO SWIMMING", "TICKETS HERE", "FRESH HONEY",
            "QUIET PLEASE",
        ),
        sentences=(
            'A hand-painted sign with the words "{value}" is legible in the upper part of the '
            "picture.",
            'In the upper part of the picture a sign reads "{value}" in large letters.',
        ),
        question="What does the sign in the upper part of the picture read?",
        claim='Does the sign in the upper part of the picture read "{value}"?',
    ),
    Slot(
        kind="time of day",
        values=("early morning", "noon", "midnight", "dusk", "late afternoon", "mid-morning"),
        sentences=(
            "A large clock shows that it is {value} when the recording was made.",
            "Judging by a remark of the narrator, the recording was made at {value}.",
        ),
        question="At what time of day was the recording made?",
        claim="Was the recording made at {value}?",
    ),
    Slot(
        kind="animal",
        values=("a goat", "a parrot", "a cat", "a horse", "a tortoise", "a rabbit"),
        sentences=(
            "Near the edge of the frame {value} watches what is going on.",
            "The only animal to be seen is {value}, resting near the edge of the frame.",
        ),
        question="Which animal is near the edge of the frame?",
        claim="Is there {value} near the edge of the frame?",
    ),
    Slot(
        kind="vehicle",
        values=("a bicycle", "a tractor", "an ambulance", "a lorry", "a motorcycle", "a tram"),
        sentences=(
            "Later on {value} passes by in the background without stopping.",
            "In the background {value} crosses the picture once and disappears.",
        ),
        question="Which vehicle passes by in the background?",
        claim="Does {value} pass by in the background?",
        spellings={"a bicycle": "a push-bike", "a lorry": "a heavy truck"},
    ),
    Slot(
        kind="material",
        values=("marble", "wood", "steel", "glass", "brick", "leather"),
        things=("bench", "counter", "table", "platform"),
        sentences=(
            "The {thing} in the middle is made of {value} and shows traces of long use.",
            "What the {thing} in the middle is made of is easy to see: {value}.",
        ),
        question="What is the {thing} in the middle made of?",
        claim="Is the {thing} in the middle made of {value}?",
        subtle_sentences=(
            "The {thing} in the middle is not made of {other}, as one may believe from afar, but "
            "of {value}.",
        ),
    ),
    Slot(
        kind="position",
        values=("to the left of", "to the right of", "behind", "in front of", "above", "below"),
        things=("the mirror", "the ladder", "the fan", "the mailbox"),
        sentences=(
            "{Thing} is placed {value} the doorway and does not move.",
            "One notices {thing}, fixed {value} the doorway.",
        ),
        question="Where is {thing} in relation to the doorway?",
        claim="Is {thing} {value} the doorway?",
    ),
    Slot(
        kind="emotion",
        values=("laughing", "crying", "yawning", "furious", "frightened", "bored"),
        things=("the boy at the window", "the old woman on the stairs", "the visitor in uniform"),
        sentences=(
            "{Thing} is {value}, which the close-up makes obvious.",
            "A close-up leaves no doubt that {thing} is {value}.",
        ),
        question="How does {thing} look in the close-up: what is the mood or expression?",
        claim="Is {thing} {value} in the close-up?",
        spellings={"crying": "in tears", "furious": "beside himself with rage"},
    ),
    Slot(
        kind="state",
        values=("open", "locked", "freshly painted", "on fire", "broken in two", "covered in ice"),
        things=("the wooden gate", "the garden shed", "the small boat"),
        sentences=(
            "{Thing} in the distance is {value} all the time.",
            "In the distance {thing} can be made out; it is {value}.",
        ),
        question="In what state is {thing} in the distance?",
        claim="Is {thing} in the distance {value}?",
        subtle_sentences=("{Thing} in the distance is anything but {other}: it is {value}.",),
    ),
    Slot(
        kind="order of events",
        values=(
            "lights a lantern", "closes the shutters", "pours some tea", "sweeps the floor",
            "writes a letter", "rings a bell",
        ),
        sentences=(
            "First the person opens a drawer and takes out a key; immediately afterwards the same "
            "person {value}.",
            "Right after opening a drawer and taking out a key, the person {value}.",
        ),
        question="What does the person do right after taking a key out of a drawer?",
        claim="Is it true that the person {value} right after taking a key out of a drawer?",
        distractor="Much later, at the very end, the person {other}, and the clip is over.",
    ),
    Slot(
        kind="shot type",
        values=(
            "an extreme close-up", "an aerial view", "a medium shot", "a split screen",
            "a view through a keyhole", "an underwater shot",
        ),
        sentences=(
            "The opening is {value}, held for several seconds.",
            "Several seconds long, the opening shot is {value}.",
        ),
        question="What kind of shot does the video open with?",
        claim="Does the video open with {value}?",
    ),
    Slot(
        kind="style",
        values=(
            "a hand-drawn cartoon", "black-and-white footage", "a puppet animation",
            "a thermal image", "a pixelated video game", "a watercolour animation",
        ),
        sentences=(
            "In terms of style, the whole clip is {value}.",
            "Visually the clip is {value}, and it keeps to that throughout.",
        ),
        question="What visual style does the clip have?",
        claim="Is the clip {value}?",
    ),
)  # fmt: skip
"""Each independent of the others: none lets a reader guess the value of another."""

FILLERS: Final[tuple[str, ...]] = (
    "Nothing in the scene seems hurried, and the pace stays calm throughout.",
    "Small details keep appearing as the shot goes on, so that it repays a second look.",
    "Soft ambient sounds accompany the pictures, without any music on top of them.",
    "The composition draws the eye to the middle and leaves the corners rather empty.",
    "There is little depth of field, which gives the picture a gentle look.",
    "The transitions are smooth, and no part of the scene is skipped.",
    "Several passers-by appear for a moment, but none of them matters to what happens.",
    "A faint breeze moves whatever is light enough to be moved.",
    "The picture is sharp, the exposure is balanced, and no captions are laid over it.",
    "It ends as quietly as it began, with a short pause before the last frame.",
)
"""Sentences of a caption that speak of no slot."""

SHORT_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "who": (
        "A man", "A woman", "A little girl", "An old man", "A teenager", "A nun", "A sailor",
        "A clown",
    ),
    "does": (
        "slicing an onion", "riding a horse", "playing the drums", "painting a fence",
        "folding a paper plane", "climbing a rope", "feeding some ducks", "repairing a bicycle",
        "juggling three balls", "washing a window", "reading a newspaper", "lifting weights",
    ),
    "where": (
        "in a kitchen", "on a beach", "in a garage", "in a park", "on a stage", "in a library",
        "on a rooftop", "in a courtyard",
    ),
}  # fmt: skip
"""Parts of short captions, and of the references beside them."""
