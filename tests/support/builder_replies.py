"""Replies of a scripted writer, solver, viewer and judge to each request of ``build``.

A request is known by words of its prompt. Replies are a pure function of the request and of what is
planted, see ``planted_questions.py``; every look and every trial slips by itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from judge_server import scripted_reply
from planted_questions import (
    Place,
    Planted,
    Road,
    Shares,
    chosen,
    colour_in,
    draw,
    names_in,
    quiz_question,
)

MARKS: Final[dict[str, str]] = {
    "build_capquiz_domain": "Taxonomy Structure:",
    "build_capquiz_write": "expert AI assistant specializing in video analysis and question",
    "build_capquiz_blind": "You are a precise answering bot.",
    "build_capquiz_cluster": "nested list of indices",
    "build_capquiz_sighted": "Answer the multiple-choice question below from what the frames show",
    "build_vcapsbench_pairs_from_caption": "by which descriptions of the same video can be checked",
    "build_vcapsbench_pairs_from_frames": "Write questions about the video that are answered with",
    "build_vcapsbench_merge": "Group the questions that ask the very same thing.",
    "build_vcapsbench_sighted": "Answer the question below from what the frames show",
    "build_vdc_second": "The video has been describe from the following aspects",
    "build_vdc_captions": "detailed and comprehensive captions for the following content",
    "build_vdc_pairs": "question-answer pairs given a detailed description of a video",
    "build_vidcapbench_pairs": "a description from which the video could be made again",
    "build_vidcapbench_review": "Why it is looked at:",
    "build_vdc_sighted": "Proposed answer:",
    "vcapsbench_caption": "in at least 200 words of running text",
    "vidcapbench_judge": "\nYour Result:",
    "vidcapbench_answer": "chatbot to answer questions given a detailed description",
    "vidcapbench_caption": "Describe the video in detail.",
}  # fmt: skip
"""Name of a step's prompt, and words that are in no other's behind it."""
OTHER: Final = "another"
"""Step of a request that no build makes, such as that of a benchmark's judge."""
UNKNOWN: Final = "Cannot be determined"
_ATTEMPT: Final = 1_000_003


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as replies depend on it."""

    step: str
    """Name of its prompt, of ``MARKS``."""
    model: str
    text: str
    """The words of all its messages."""
    clip: str
    """Six hexadecimal digits of its pictures, or of the clip that its text is about."""
    seed: int
    identity: bytes
    """The same for every attempt at a request."""


@dataclass(frozen=True, slots=True)
class Told:
    shares: Shares = field(default_factory=Shares)
    seed: int = 0
    n_questions: int = 20
    writers: tuple[str, ...] = ("writer-a", "writer-b")
    """Models of whose questions a duplicate may be."""

    def planted(self, name: str) -> Planted:
        return Planted(name, self.shares, self.seed)

    def slips(self, *about: object) -> bool:
        return draw(self.seed, "slip", *about) < self.shares.slips


def asked_of(payload: Mapping[str, Any]) -> Asked:
    parts = [part for message in payload["messages"] for part in _parts(message["content"])]
    text = "\n".join(part["text"] for part in parts if part["type"] == "text")
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    step = next((step for step, mark in MARKS.items() if mark in text), OTHER)
    seed = int(payload.get("seed") or 0)
    known = json.dumps([payload["model"], text, pictures, seed % _ATTEMPT])
    return Asked(
        step=step,
        model=payload["model"],
        text=text,
        clip=_digest("".join(pictures), 3).hex() if pictures else _clip_in(text),
        seed=seed,
        identity=_digest(known, 16),
    )


def reply_to(asked: Asked, told: Told) -> str:
    """The text of a reply."""
    reply = _REPLIES.get(asked.step)
    is_about_objects = asked.step in _OF_CLIPS or names_in(asked.text)
    return reply(asked, told) if reply and is_about_objects else scripted_reply(asked.text)


def _domain(asked: Asked, told: Told) -> str:
    return json.dumps({chosen(("Nature", "Game", "Sports"), told.seed, asked.clip): 0.9})


def _quiz(asked: Asked, told: Told) -> str:
    categories = re.findall(r"Category: `([^`\n]+)`", asked.text)
    return json.dumps(
        [
            quiz_question(place, told.n_questions, categories[place.number % len(categories)])
            for place in _places(asked, told)
        ]
    )


def _places(asked: Asked, told: Told) -> Iterator[Place]:
    for number in range(told.n_questions):
        yield Place(asked.clip, asked.model, number, told.shares, told.seed, told.writers)


def _solve(asked: Asked, told: Told) -> str:
    """A letter, from the text alone."""
    options = _menu(asked)
    about = asked.identity.hex()
    planted = told.planted(names_in(asked.text)[-1])
    if not planted.is_blind or told.slips(about):
        return chosen(sorted(options), told.seed, about)
    return _letter(options, planted.answer("capquiz"))


def _look(asked: Asked, told: Told) -> str:
    """A letter, by the frames."""
    options = _menu(asked)
    about = asked.identity.hex()
    right = _letter(options, told.planted(names_in(asked.text)[-1]).colour)
    others = [letter for letter in options if letter != right]
    return chosen(others, told.seed, about) if told.slips(about) else right


def _menu(asked: Asked) -> dict[str, str]:
    return dict(re.findall(r"^([A-F])\. (.+)$", asked.text, re.MULTILINE))


def _letter(options: Mapping[str, str], colour: str) -> str:
    """The letter of a colour; of what cannot be known where it is on no menu."""
    letters = {text.casefold().strip("."): letter for letter, text in options.items()}
    return letters.get(colour) or letters.get(UNKNOWN.casefold(), "A")


def _cluster(asked: Asked, _: Told) -> str:
    groups = _grouped(asked, lambda pair: (pair["object"],))
    return json.dumps(
        [
            list(_by(group, lambda pair: (pair["object"], pair["answer"])).values())
            for group in groups
        ]
    )


def _merge(asked: Asked, _: Told) -> str:
    return json.dumps(
        [
            [pair["index"] for pair in group]
            for group in _grouped(asked, lambda pair: (pair["object"], pair["colour"]))
        ]
    )


def _grouped(
    asked: Asked, key: Callable[[dict[str, Any]], tuple[str, ...]]
) -> list[list[dict[str, Any]]]:
    """The questions of the list behind a prompt, by what they ask."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for pair in _last_list(asked.text):
        about = {
            "object": names_in(pair["question"])[-1], "colour": colour_in(pair["question"]),
        }  # fmt: skip
        groups.setdefault(key({**about, **pair}), []).append({**about, **pair})
    return list(groups.values())


def _by(
    pairs: Sequence[dict[str, Any]], key: Callable[[dict[str, Any]], tuple[str, ...]]
) -> dict[tuple[str, ...], list[int]]:
    places: dict[tuple[str, ...], list[int]] = {}
    for pair in pairs:
        places.setdefault(key(pair), []).append(pair["index"])
    return places


def _last_list(text: str) -> list[dict[str, Any]]:
    """The JSON list of objects that a prompt ends with."""
    starts = [found.start() for found in re.finditer(r"^\[", text, re.MULTILINE)]
    pairs: list[dict[str, Any]] = json.loads(text[starts[-1] :])
    return pairs


def _yes_no_pairs(asked: Asked, told: Told, road: Road) -> str:
    """Yes-no questions about the objects of a clip that a road sees, in words of the road's own."""
    categories = re.findall(r"^- ([^:\n]+):", asked.text.split("Categories:\n")[-1], re.MULTILINE)
    pairs = []
    for number in range(told.n_questions):
        planted = told.planted(f"{asked.clip}-00-{number:03d}")
        fate = planted.fate("vcapsbench")
        if fate == "one road" and planted.road != road:
            continue
        is_yes = planted.asked_colour == planted.colour
        if fate == "wrong" or (fate == "contradicted" and planted.road != road):
            is_yes = not is_yes
        words = f"as {asked.model} has it by the {road}"
        pairs.append(
            {
                "category": categories[number % len(categories)],
                "question": f"Is object {planted.name}, {words}, {planted.asked_colour}?",
                "answer": "yes" if is_yes else "no",
            }
        )
    return json.dumps(pairs)


def _see(asked: Asked, told: Told) -> str:
    """Yes or no, by the frames."""
    question = asked.text.split("Question:")[-1]
    is_yes = told.planted(names_in(question)[-1]).colour == colour_in(question)
    return "Yes" if is_yes != told.slips(asked.identity.hex()) else "No"


def _caption(asked: Asked, _: Told) -> str:
    return f"This is clip {asked.clip}, as {asked.model} tells it with seed {asked.seed}."


def _captions(asked: Asked, told: Told) -> str:
    names = ("short", "background", "main object", "camera", "reference")
    return json.dumps({f"{name} caption": f"{_caption(asked, told)} ({name})" for name in names})


def _more(asked: Asked, told: Told) -> str:
    return f"{_caption(asked, told)} (detailed)"


def _open_pairs(asked: Asked, told: Told) -> str:
    """Open questions and answers about a caption, as a Python list of tuples."""
    aspect = re.findall(r"\((short|background|main object|camera|reference|detailed)\)", asked.text)
    pairs = []
    for number in range(told.n_questions):
        place = Place(asked.clip, aspect[-1], number, told.shares, told.seed)
        planted = told.planted(place.own)
        pairs.append((f"What colour does object {planted.name} have?", planted.answer("vdc")))
    return repr(pairs)


def _agree(asked: Asked, told: Told) -> str:
    question, answer = asked.text.split("Question:")[-1].split("Proposed answer:")
    is_right = told.planted(names_in(question)[-1]).colour == colour_in(answer)
    return "Yes" if is_right != told.slips(asked.identity.hex()) else "No"


def _sorted_pairs(asked: Asked, told: Told) -> str:
    """Open questions and answers in dimensions and their sub categories."""
    kinds = list(_sub_categories(asked.text))
    pairs = []
    for place in _places(asked, told):
        planted = told.planted(place.own)
        primary, sub = kinds[place.number % len(kinds)]
        pairs.append(
            {
                "primary_category": primary,
                "sub_category": sub,
                "question": f"What colour does object {planted.name} have?",
                "answer": planted.answer("vidcapbench"),
            }
        )
    return json.dumps(pairs)


def _sub_categories(text: str) -> Iterator[tuple[str, str]]:
    listed = text.rpartition("sub categories:\n")[2].partition("\n\nReply with")[0]
    heading = ""
    for line in listed.splitlines():
        name = line.strip("- ").split(":")[0]
        if line.startswith("- "):
            yield heading, name
        else:
            heading = name


def _answer(asked: Asked, _: Told) -> str:
    told = re.findall(r"with seed [0-9]+", asked.text)
    about = f"object {names_in(asked.text)[-1]} as told {''.join(told[-1:])}"
    return f"What is said of {about}, answered with seed {asked.seed}."


def _grade(asked: Asked, told: Told) -> str:
    """A grade: wrong answers get the least, unstable questions another one with every seed."""
    question, answer = asked.text.split("\nQuestion: ")[-1].split("\nCorrect Answer: ")
    planted = told.planted(names_in(question)[-1])
    answer = answer.split("\nPredicted Answer: ")[0]
    if colour_in(answer) != planted.colour:
        score = -1
    elif planted.fate("vidcapbench") == "unstable" and REWRITTEN not in question:
        score = (2, -1, 0)[(asked.seed + int(300 * draw(told.seed, planted.name))) % 3]
    else:
        score = 2
    return json.dumps({"score": score, "analysis": "As planted."})


REWRITTEN: Final = "said anew"
"""Words of a question that a reviewer wrote."""


def _review(asked: Asked, told: Told) -> str:
    """Wrong answers are made right or dropped, what is unstable is kept, made anew or dropped."""
    found = re.search(r"\nQuestion: (.*)\nAnswer: (.*)\n", asked.text)
    question, answer = (found[1], found[2]) if found else ("", "")
    planted = told.planted(names_in(question)[-1])
    decisions = ("rewrite", "drop") if answer != planted.colour else ("keep", "rewrite", "drop")
    decision = chosen(decisions, told.seed, "review", planted.name)
    if decision == "rewrite":
        question = f"What colour, {REWRITTEN}, does object {planted.name} have?"
        answer = planted.colour
    return json.dumps({"decision": decision, "question": question, "answer": answer})


_REPLIES: Final[dict[str, Callable[[Asked, Told], str]]] = {
    "build_capquiz_domain": _domain,
    "build_capquiz_write": _quiz,
    "build_capquiz_blind": _solve,
    "build_capquiz_cluster": _cluster,
    "build_capquiz_sighted": _look,
    "build_vcapsbench_pairs_from_caption": lambda asked, told: _yes_no_pairs(
        asked, told, "caption"
    ),
    "build_vcapsbench_pairs_from_frames": lambda asked, told: _yes_no_pairs(asked, told, "frames"),
    "build_vcapsbench_merge": _merge,
    "build_vcapsbench_sighted": _see,
    "build_vdc_captions": _captions,
    "build_vdc_second": _more,
    "build_vdc_pairs": _open_pairs,
    "build_vdc_sighted": _agree,
    "build_vidcapbench_pairs": _sorted_pairs,
    "build_vidcapbench_review": _review,
    "vcapsbench_caption": _caption,
    "vidcapbench_answer": _answer,
    "vidcapbench_judge": _grade,
    "vidcapbench_caption": _caption,
}


_OF_CLIPS: Final = {step for step in _REPLIES if not step.endswith(("_answer", "_judge"))}
"""Steps that no task of lmms-eval has, whose judge may be asked about other questions."""


def _parts(content: object) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _clip_in(text: str) -> str:
    found = re.findall(r"\b(?:clip|object) ([0-9a-f]{6})\b", text)
    return found[-1] if found else ""


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()
