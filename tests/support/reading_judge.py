"""A judge for loopback that reads captions with planted facts, and answers the probes beside them.

It knows the sentences that captions are made of, not the captions: it looks for what is visible in
the prompt that reaches it. So what a proxy cuts away it does not see. Prompts about anything else
get replies that follow from the prompt's digest.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from judge_server import Say, last_text, scripted_reply
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.slots import (
    SHORT_PARTS,
    SLOTS,
    Slot,
)

Payload = dict[str, Any]
SAYS_NOTHING: Final = "The description does not mention it."
_NOT_SAID: Final = "does not mention"
_STEPS: Final = {
    "gveval": "{{accuracy_score}}",
    "vidcapbench_judge": "\nYour Result:",
    "vidcapbench_answer": "chatbot to answer questions given a detailed description",
    "vcapsbench_answer": "Answer@@@Analysis",
    "capquiz_answer": "F. Cannot be determined",
    "vdc_match": "\n\nPredicted Answer: ",
    "vdc_answer": "Please provide accurate answers to questions",
}
"""Step to words that its prompt alone holds."""
VERDICT_STEPS: Final = ("gveval", "vidcapbench_judge", "vcapsbench_answer", "capquiz_answer",
                        "vdc_match")  # fmt: skip
_WORDS: Final = (
    "quiet", "river", "under", "golden", "sails", "whisper", "stone", "carries", "towards", "night",
    "seven", "birds", "over", "broken", "glass", "slowly", "forgets", "every", "winter", "song",
)  # fmt: skip
_CLAIM: Final = re.compile(r"Question: (.*)")


@dataclass(frozen=True, slots=True)
class Facet:
    """One thing that a question may be about."""

    slot: Slot
    thing: str

    def said_in(self, text: str) -> str | None:
        """The value that a text says, ``None`` where it says none."""
        for pattern, value in _patterns(self.slot, self.thing):
            if pattern.search(text):
                return value
        return None


@dataclass(slots=True)
class ReadingJudge:
    """An honest judge; impostors are made of it by their fields.

    Replies at temperature 0 are a pure function of the prompt; above, of prompt and seed.
    """

    salt: int = 0
    """Tells one model's inventions from another's."""
    twin: int = 0
    """Tells twins of one model from each other, by where their verdicts differ."""
    differs: float = 0.0
    """Share of prompts on which its verdict is another one, always the same ones."""
    flips: float = 0.0
    """Share of requests on which its verdict is another one by chance."""
    guesses: float = 0.0
    """Share of facts that a caption leaves out about which it says something all the same."""
    honours_seed: bool = True
    always_samples: bool = False
    """Whether temperature 0 is as 1."""
    n_tokens: Callable[[str], int] = lambda text: len(re.findall(r"\w{1,6}|[^\w\s]", text)) + 7
    visible: Callable[[str], str] = lambda prompt: prompt
    """What of a prompt reaches it."""
    counts_visible: bool = True
    """Whether usage is of what reaches it, and not of what was sent."""
    shown: Callable[[str], tuple[str, str]] = lambda text: (text, "stop")
    """From its reply to what comes back of it, and the reason why it ended."""
    has_logprobs: bool = True
    shift: float = 0.0
    """Moves its log-probabilities."""
    names: Callable[[], str] | None = None
    """Another ``id`` for each completion, by default."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    n_asked: int = 0

    def __call__(self, payload: Payload) -> Say:
        """The answer to a request."""
        self.n_asked += 1
        prompt = self.visible(last_text(payload))
        temperature = 1.0 if self.always_samples else payload.get("temperature", 1.0)
        key = self._key(prompt, payload, temperature)
        text, reason = self.shown(self._reply(prompt, key))
        sent = prompt if self.counts_visible else last_text(payload)
        extra = {
            "id": self.names() if self.names else f"chatcmpl-{self.n_asked}-{self.salt}",
            "created": 1_760_000_000 + self.n_asked,
            "usage": {
                "prompt_tokens": self.n_tokens(sent),
                "completion_tokens": len(text) // 4 + 1,
            },
        }
        of_choice = (
            {"logprobs": {"content": self._logprobs(text)}}
            if self.has_logprobs and payload.get("logprobs")
            else {}
        )
        return Say(text, reason, extra=extra, of_choice=of_choice)

    def _key(self, prompt: str, payload: Payload, temperature: float) -> str:
        """What a sampled reply follows from."""
        if temperature <= 0:
            return prompt
        seed = payload.get("seed") if self.honours_seed else self.chance.random()
        if self.always_samples:
            seed = self.chance.random()
        return f"{prompt}\n{seed}"

    def _reply(self, prompt: str, key: str) -> str:
        probe = _probe_reply(prompt, _dice(f"{self.salt} {key}"))
        if probe is not None:
            return probe
        step = step_of(prompt)
        is_other = _dice(f"differs {self.salt} {self.twin} {prompt}").random() < self.differs
        if step in VERDICT_STEPS and self.flips and self.chance.random() < self.flips:
            is_other = not is_other
        return self._answer(step, prompt, is_other=is_other and step in VERDICT_STEPS)

    def _answer(self, step: str | None, prompt: str, *, is_other: bool) -> str:
        known = _known_reply(step, prompt, self._said)
        if known is None:
            known = scripted_reply(prompt)
        return _other_verdict(step, known) if is_other else known

    def _said(self, facet: Facet, text: str) -> str | None:
        said = facet.said_in(text)
        dice = _dice(f"guess {self.salt} {facet.slot.kind} {text}")
        if said is None and dice.random() < self.guesses:
            return dice.choice(facet.slot.values)
        return said

    def _logprobs(self, text: str) -> list[Mapping[str, Any]]:
        content: list[Mapping[str, Any]] = []
        for piece in re.findall(r"[0-9]{1,3}|[^0-9]+", text):
            other = str(int(piece) - 1) if piece.isdecimal() and int(piece) else "so"
            share = 0.9 - self.shift * _dice(f"{self.salt} {text} {piece}").random()
            top = [_token(piece, share), _token(other, 1 - share)]
            content.append({**top[0], "top_logprobs": top})
        return content


def step_of(prompt: str) -> str | None:
    """Which of the judge's prompts this is, by the beginning of its name; ``None`` for others."""
    return next((step for step, words in _STEPS.items() if words in prompt), None)


def _token(text: str, share: float) -> dict[str, Any]:
    return {"token": text, "logprob": math.log(share), "bytes": list(text.encode())}


def _probe_reply(prompt: str, dice: random.Random) -> str | None:
    """What answers a probe, ``None`` for what is none."""
    if "locker code" in prompt and "List every locker code" in prompt:
        return ", ".join(re.findall(r"one locker code is (\d{5})\.", prompt)) or "none"
    if "number is on the side of the boat?" in prompt:
        found = re.search(r"one reads the number (\d{5})", prompt)
        return found[1] if found else "unknown"
    if prompt.startswith("Invent one sentence"):
        return " ".join(dice.choice(_WORDS) for _ in range(15)).capitalize() + "."
    if counted := re.match(r"Write the whole numbers from 1 to (\d+)", prompt):
        return " ".join(map(str, range(1, int(counted[1]) + 1)))
    fixed = {"Reply with OK.": "OK", "What is 60 plus 15?": "75", "the word ready": "ready"}
    return next((reply for words, reply in fixed.items() if words in prompt), None)


def _known_reply(
    step: str | None, prompt: str, said: Callable[[Facet, str], str | None]
) -> str | None:
    """What a careful reader replies, ``None`` where the question is none of ours."""
    if step in ("vdc_answer", "vidcapbench_answer"):
        question = re.search(r"[Qq]uestion:\s+(.*)", prompt)
        facet = _facet_of(question[1]) if question else None
        return None if facet is None else said(facet, prompt) or SAYS_NOTHING
    if step in ("vdc_match", "vidcapbench_judge"):
        return _graded(step, prompt)
    if step == "vcapsbench_answer":
        claim = _CLAIM.search(prompt)
        found = _claim_of(claim[1]) if claim else None
        if found is None:
            return None
        told = said(found[0], prompt)
        answer = "Unanswerable" if told is None else "Yes" if told == found[1] else "No"
        return f"{answer}@@@The caption says {told or 'nothing of it'}."
    if step == "capquiz_answer":
        return _letter(prompt, said)
    return _scores(prompt) if step == "gveval" else None


def _graded(step: str, prompt: str) -> str | None:
    question = re.search(r"Question: (.*)", prompt)
    gold, told = (re.search(rf"{name} Answer: (.*)", prompt) for name in ("Correct", "Predicted"))
    if question is None or gold is None or told is None or _facet_of(question[1]) is None:
        return None
    is_right = gold[1].strip() == told[1].strip()
    if step == "vdc_match":
        return str({"pred": "yes" if is_right else "no", "score": 5 if is_right else 0})
    score = 2 if is_right else 0 if _NOT_SAID in told[1] else -1
    return json.dumps({"score": score, "analysis": "It is so."})


def _letter(prompt: str, said: Callable[[Facet, str], str | None]) -> str | None:
    question = re.search(r"\*\*Question\*\*\n(.*)", prompt)
    facet = _facet_of(question[1]) if question else None
    if facet is None:
        return None
    caption = prompt.partition("**Question**")[0]
    told = said(facet, caption)
    letter = re.search(rf"^([A-E])\. {re.escape(told or '')}$", prompt, re.MULTILINE)
    return letter[1] if told and letter else "F"


def _scores(prompt: str) -> str | None:
    refs = re.search(r"Reference captions: (.*)", prompt)
    caption = re.search(r"Generated captions: The video shows (.*)", prompt)
    if refs is None or caption is None:
        return None
    told, true = caption[1].lower(), refs[1].lower()
    parts = [part.lower() for values in SHORT_PARTS.values() for part in values]
    score = 15 if any(part in told and part not in true for part in parts) else 92
    names = zip(("Accuracy", "Completeness", "Conciseness", "Relevance"), "αβψδ", strict=True)
    return "It is compared. " + " ".join(
        f"The {name} score is {mark}{score}{mark}." for name, mark in names
    )


def _other_verdict(step: str | None, reply: str) -> str:
    """A reply with another verdict."""
    if step == "vdc_match":
        is_yes = "yes" in reply
        return str({"pred": "no" if is_yes else "yes", "score": 0 if is_yes else 5})
    if step == "vidcapbench_judge":
        score = json.loads(reply)["score"]
        return json.dumps({"score": 1 if score == 2 else 2, "analysis": "It is so."})
    if step == "vcapsbench_answer":
        word = reply.partition("@@@")[0]
        return f"{'No' if word == 'Yes' else 'Yes'}@@@It seems so."
    if step == "capquiz_answer":
        return "A" if reply != "A" else "B"
    numbers = [int(n) for n in re.findall(r"[αβψδ](\d+)[αβψδ]", reply)]
    flipped = iter([n - 70 if n > 70 else n + 70 if n < 30 else 100 - n for n in numbers])
    return re.sub(r"(?<=[αβψδ])\d+(?=[αβψδ])", lambda _: str(next(flipped)), reply)


@cache
def _facets() -> dict[str, Facet]:
    """Open question to what it is about."""
    return {
        _fill(slot.question, thing): Facet(slot, thing) for slot in SLOTS for thing in slot.things
    }


def _facet_of(question: str) -> Facet | None:
    return _facets().get(question.strip())


@cache
def _claims() -> dict[str, tuple[Facet, str]]:
    """Yes-no question to what it is about, and the value that it claims."""
    return {
        _fill(slot.claim, thing, value): (Facet(slot, thing), value)
        for slot in SLOTS
        for thing in slot.things
        for value in slot.values
    }


def _claim_of(question: str) -> tuple[Facet, str] | None:
    return _claims().get(question.strip())


@cache
def _patterns(slot: Slot, thing: str) -> list[tuple[re.Pattern[str], str]]:
    """Sentences that say a value."""
    found = []
    for value in slot.values:
        for words in filter(None, (value, slot.spellings.get(value))):
            for template in (*slot.sentences, *slot.subtle_sentences):
                filled = _fill(template, thing, words, "OTHER")
                pattern = re.escape(filled).replace("OTHER", "[^.]*?")
                found.append((re.compile(pattern), value))
    return found


def _fill(template: str, thing: str, value: str = "", other: str = "") -> str:
    text = template.format(
        thing=thing, Thing=thing[:1].upper() + thing[1:], value=value, other=other
    )
    return text[:1].upper() + text[1:]


def _dice(text: str) -> random.Random:
    return random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
