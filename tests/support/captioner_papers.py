"""A judge of the benchmarks of captioner papers whose verdicts follow from few texts.

What it says of an event, a caption or a question depends on that text alone, so a test can work out
the numbers without our prompts, readers and metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

LABELS: Final = ("entailment", "neutral", "contradiction")
OBJECTS: Final = ("a small dog", "a tall man", "a red door", "a kitchen")
MARKS: Final = (
    "List the events that it describes",
    "List the static content",
    "Decide for each",
    '"hallucinated"',
    "Rate a caption of a short video",
    "Answer a multiple-choice question about a video",
)
"""Words of the prompts that :func:`reply` knows."""


def digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")


def extracted(caption: str) -> list[str]:
    sentences = re.findall(r"[^.]+\.", caption.lower().replace('"', "'"))
    return [sentence.strip() for sentence in sentences]


def label(event: str) -> str:
    return LABELS[digest(event) % 3]


def listed(prompt: str, heading: str, end: str = "\n\n") -> list[str]:
    block = prompt.split(f"{heading}:\n")[1].split(end, maxsplit=1)[0]
    return [re.sub(r"^\d+\. ", "", line) for line in re.split(r"\n(?=\d+\. )", block)]


def reply(prompt: str) -> str:
    """Return the judge's reply, with prose or a fence around some."""
    text = prompt.rsplit("Description: ", 1)[-1].split("\n\n", maxsplit=1)[0]
    if "List the events that it describes" in prompt:
        return f"```json\n{json.dumps({'events': extracted(text)})}\n```"
    if "List the static content" in prompt:
        return json.dumps([name for name in OBJECTS if name.split()[-1] in text])
    if "Decide for each" in prompt:
        heading = "Events" if "Decide for each event" in prompt else "Objects"
        return f"The labels: {json.dumps([label(event) for event in listed(prompt, heading)])}"
    if '"hallucinated"' in prompt:
        return json.dumps(errors(listed(prompt, "Events"), prompt.rsplit("Caption: ", 1)[-1]))
    if "Rate a caption" in prompt:
        human = prompt.split("Reference: ")[1].rsplit("\n\nCaption: ", 1)[0]
        return json.dumps(dict(zip(("visual", "audio", "details"), ratings(human), strict=True)))
    question = prompt.split("Question: ")[1].split("\n\nOptions:", maxsplit=1)[0]
    return chosen(question, prompt.rsplit("Options:\n", 1)[-1].splitlines())


def errors(events: Sequence[str], caption: str) -> dict[str, list[str]]:
    n_missed, n_incorrect = digest(events[0]) % len(events), 0
    if n_missed < len(events):
        n_incorrect = digest(caption) % (len(events) - n_missed)
    invented = [f"invented {n}" for n in range(digest(caption + events[0]) % 4)]
    wrong = list(events[n_missed : n_missed + n_incorrect])
    return {"missed": list(events[:n_missed]), "incorrect": wrong, "hallucinated": invented}


def ratings(human: str) -> tuple[int, int, int]:
    visual, audio, details = (1 + (digest(human) >> 4 * n) % 5 for n in range(3))
    return visual, audio, details


def chosen(question: str, options: Sequence[str]) -> str:
    return "ABCDEF"[digest(f"which? {question}") % len(options)]
