"""A judge that reads captions with planted facts and answers probes; impostors are made of it."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from judge_server import Say, last_text, scripted_reply
from lmms_eval_captions.verification.anchors import PlantedFact, planted_facts

Script = Callable[[dict[str, Any]], Say]
_STEPS: Final = {
    "gveval": "{{accuracy_score}}",
    "vidcapbench_judge": "\nYour Result:",
    "vidcapbench_answer": "chatbot to answer questions given a detailed description",
    "vcapsbench": "Answer@@@Analysis",
    "capquiz": "F. Cannot be determined",
    "vdc_match": "\n\nPredicted Answer: ",
    "vdc_answer": "Please provide accurate answers to questions",
}
"""Step to words that its prompt alone holds."""
_NOT_MENTIONED: Final = "The description does not mention it."
_WORDS: Final = ("quiet", "river", "under", "golden", "sails", "whisper", "stone", "carries")


@dataclass(slots=True)
class ReadingJudge:
    """An honest judge; each field makes an impostor of it."""

    model: int = 0
    """Number of the model."""
    errs: float = 0.0
    """Share of facts that it always gets wrong."""
    flips: float = 0.0
    """Share of replies with another verdict by chance."""
    misses: float = 0.0
    """Share of codes in descriptions that it overlooks."""
    says_yes: bool = False
    always_samples: bool = False
    visible: Callable[[str], str] = lambda prompt: prompt
    """The part of a prompt that reaches it."""
    shown: Callable[[str], str] = lambda text: text
    """The part of a reply that comes back."""
    cache_key: Callable[[dict[str, Any]], str] | None = None
    """Requests with one key get one completion."""
    renews_ids: bool = False
    """Cached completions have ids of their own."""
    few_ids: bool = False
    """Ids are drawn from 999, as Ollama draws them."""
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    name: str | None = None
    """Model in its completions; ``None`` for the one that is asked for."""
    n_asked: int = 0
    _cache: dict[str, Say] = field(default_factory=dict)

    def __call__(self, payload: dict[str, Any]) -> Say:
        """Return the completion of a request."""
        if self.cache_key is None:
            return self._completion(payload)
        key = self.cache_key(payload)
        if key not in self._cache:
            self._cache[key] = self._completion(payload)
        elif self.renews_ids:
            return replace(self._cache[key], extra=self._fields())
        return self._cache[key]

    def with_cache_of(self, earlier: ReadingJudge) -> ReadingJudge:
        """Return this judge behind the cache that another judge filled."""
        return replace(self, cache_key=earlier.cache_key, _cache=dict(earlier._cache))

    def _completion(self, payload: dict[str, Any]) -> Say:
        prompt = self.visible(last_text(payload))
        is_sampled = self.always_samples or payload.get("temperature", 1.0) > 0
        chance = self.chance if is_sampled else random.Random(f"{self.model} {prompt}")
        reply = (
            _probe_reply(prompt, chance, self.misses)
            or self._verdict(prompt)
            or scripted_reply(prompt)
        )
        return Say(self.shown(reply), extra=self._fields())

    def _fields(self) -> dict[str, Any]:
        self.n_asked += 1
        number = self.chance.randrange(999) if self.few_ids else self.n_asked
        name = {} if self.name is None else {"model": self.name}
        return {"id": f"completion-{number}", **name}

    def _verdict(self, prompt: str) -> str | None:
        step = next((step for step, words in _STEPS.items() if words in prompt), None)
        fact = next((fact for fact in planted_facts() if _is_about(prompt, fact, step)), None)
        if step is None or fact is None:
            return None
        digest = hashlib.sha256(f"{self.model} {fact.name} {step}".encode()).digest()
        is_wrong = int.from_bytes(digest[:4], "big") / 2**32 < self.errs
        if step.endswith("answer"):
            return fact.said or _NOT_MENTIONED
        if self.flips and self.chance.random() < self.flips:
            is_wrong = not is_wrong
        return _reply(step, prompt, fact, is_wrong=is_wrong, says_yes=self.says_yes)


IMPOSTORS: Final[Mapping[str, Callable[[], ReadingJudge]]] = {
    "another name": lambda: ReadingJudge(name="other-7b"),
    "another model": lambda: ReadingJudge(model=1, errs=0.15),
    "a weaker model": lambda: ReadingJudge(model=1, errs=0.4),
    "always yes": lambda: ReadingJudge(says_yes=True),
    "prompts without their end": lambda: ReadingJudge(visible=lambda prompt: prompt[:1500]),
    "prompts without their middle": lambda: ReadingJudge(
        visible=lambda prompt: prompt[:1200] + prompt[-600:] if len(prompt) > 1800 else prompt
    ),
    "cut replies": lambda: ReadingJudge(shown=lambda text: text[:40]),
    "temperature 1": lambda: ReadingJudge(always_samples=True, flips=0.03),
    "cache by prompt": lambda: ReadingJudge(cache_key=last_text),
    "cache by prompt, with new ids": lambda: ReadingJudge(cache_key=last_text, renews_ids=True),
    "cache without numbers": lambda: ReadingJudge(
        cache_key=lambda payload: re.sub(r"\d+", "#", last_text(payload))
    ),
}


def whole_request(payload: dict[str, Any]) -> str:
    """Return the key of a cache that tells all requests apart that differ in anything."""
    return json.dumps(payload, sort_keys=True)


def _is_about(prompt: str, fact: PlantedFact, step: str | None) -> bool:
    if step == "gveval":
        return fact.short_caption in prompt and fact.references[0] in prompt
    if step in ("vdc_match", "vidcapbench_judge"):
        answers = (f"Correct Answer: {fact.truth}", f"Predicted Answer: {fact.said}")
        needed = (fact.question, *answers[: 1 + bool(fact.said)])
    else:
        needed = (fact.caption, fact.claim if step == "vcapsbench" else fact.question)
    return all(text in prompt for text in needed)


def _reply(step: str, prompt: str, fact: PlantedFact, *, is_wrong: bool, says_yes: bool) -> str:
    said = re.search(r"Predicted Answer: (.*)", prompt)
    is_right = (bool(said and said[1].strip() == fact.truth) != is_wrong) or says_yes
    if step == "vdc_match":
        return str({"pred": "yes" if is_right else "no", "score": 5 if is_right else 0})
    if step == "vidcapbench_judge":
        is_silent = bool(said and _NOT_MENTIONED in said[1])
        return json.dumps({"score": 2 if is_right else 0 if is_silent else -1, "analysis": "So."})
    if step == "vcapsbench":
        claims_it = (fact.said == fact.truth) == fact.claim_is_true
        answer = "Unanswerable" if not fact.said else "Yes" if claims_it else "No"
        answer = "Yes" if says_yes else ("No" if answer == "Yes" else "Yes") if is_wrong else answer
        return f"{answer}@@@The caption says so."
    if step == "capquiz":
        wanted = fact.truth if says_yes else fact.said
        letter = re.search(rf"^([A-E])\. {re.escape(wanted)}$", prompt, re.MULTILINE)
        right = letter[1] if wanted and letter else "F"
        return ("A" if right != "A" else "B") if is_wrong else right
    score = 92 if (fact.relation == "states") != is_wrong or says_yes else 15
    names = zip(("Accuracy", "Completeness", "Conciseness", "Relevance"), "αβψδ", strict=True)
    return " ".join(f"The {name} score is {mark}{score}{mark}." for name, mark in names)


def _probe_reply(prompt: str, chance: random.Random, misses: float) -> str | None:
    if "List every locker code" in prompt:
        codes = re.findall(r"one locker code is (\d{5})\.", prompt)
        return ", ".join(code for code in codes if chance.random() >= misses) or "none"
    if boat := re.search(r"boat has the number (\d{5})", prompt):
        return boat[1]
    if prompt.startswith("Invent one sentence"):
        return " ".join(chance.choice(_WORDS) for _ in range(15))
    if counted := re.match(r"Write the whole numbers from 1 to (\d+)", prompt):
        return " ".join(map(str, range(1, int(counted[1]) + 1)))
    return None
