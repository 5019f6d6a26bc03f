"""A few requests that show what an endpoint does with requests: all of them new to everybody.

Words that are drawn anew for each verification stand in them, so that no store, ours or the
endpoint's, has their answers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.slots import FILLERS

N_GREEDY: Final = 4
"""Times that the same is asked at temperature 0."""
N_SAMPLED: Final = 4
"""Times that the same is asked at temperature 1, each with a seed of its own."""
N_ECHOES: Final = 3
LENGTHS: Final[dict[str, int]] = {"short": 50, "middle": 350, "long": 1000}
"""Words of descriptions that hide codes. Captions of all benchmarks are shorter than the last."""
PLACES: Final = ("beginning", "middle", "end")
COUNTED_TO: Final = 80
TEXTS: Final[dict[str, str]] = {
    "prose": "A woman in a red coat crosses the street while two dogs bark at a passing tram. " * 4,
    "numbers": "3.14159 27182818 00:04:17.250 1,048,576 0x7f3a 96825/193226 -0.0075 1e-12 " * 4,
    "letters": "Zoë trägt Ærøskøbings œuvre; Łódź, Kraków și Iași; naïveté, coöperate, São. " * 4,
    "scripts": "東京の夜景と雨 Улица ночью пуста संगीत बजता है 서울의 아침 مشهد هادئ 🎬🚲🌧️ " * 4,
}
"""Texts that tokenizers split in different ways."""
_TOPICS: Final = (
    "a lighthouse", "a spoon", "an old map", "a beehive", "a lift", "a comet", "a violin",
    "a puddle", "a suitcase", "a glacier", "a keyhole", "a market stall",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Probe:
    """A request and what it is about."""

    request: Request
    name: str
    """What tells it from others of its kind."""
    kind: str
    codes: tuple[str, ...] = ()
    """Words that the reply must hold, in the order of their places."""
    n_chars: int = 0
    """Length of what is sent."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A probe and its reply."""

    probe: Probe
    reply: Reply | None
    """``None`` where none came."""


class ProbeMaker:
    """Makes the probes of one verification.

    Args:
        model: Who is asked.
        timeout_s: Seconds until a reply must be complete.
        rng: Draws what nobody can have asked before.
        least_tokens: Output tokens that every probe may take: a judge that thinks first takes as
            many as the benchmarks allow.
    """

    def __init__(
        self, model: str, timeout_s: float, rng: random.Random, *, least_tokens: int = 0
    ) -> None:
        self._model = model
        self._timeout_s = timeout_s
        self._rng = rng
        self._least_tokens = least_tokens
        self._seed = rng.randrange(1_000, 900_000)

    def all(self) -> list[Probe]:
        """Every probe but those that look at a completion's head."""
        return [
            *self.hidden_codes(),
            *self.echoes(),
            *self.samples(),
            self.counting(),
            *self.texts(),
            self.number(),
        ]

    def heads(self, n: int) -> list[Request]:
        """Requests for the same, each with a seed of its own."""
        return [
            self._request("Reply with the word ready.", "head", seed=place, max_tokens=16)
            for place in range(n)
        ]

    def hidden_codes(self) -> list[Probe]:
        """Descriptions of several lengths with a code at their beginning, middle and end."""
        probes = []
        for name, n_words in LENGTHS.items():
            codes = self._codes(len(PLACES))
            text = _with_codes(codes, n_words, self._rng)
            ask = "List every locker code that the description mentions, separated by commas."
            prompt = f"{ask}\n\nDescription:\n{text}\n\n{ask}"
            probes.append(self._probe(prompt, "codes", name, codes=codes, max_tokens=64))
        return probes

    def echoes(self) -> list[Probe]:
        """The same question about descriptions that differ in one word."""
        story = " ".join(self._rng.sample(FILLERS, 4))
        probes = []
        for place, code in enumerate(self._codes(N_ECHOES)):
            prompt = (
                f"Description:\n{story} On the side of the boat one reads the number {code}.\n\n"
                "Question:\nWhich number is on the side of the boat? Reply with it alone."
            )
            probes.append(self._probe(prompt, "echo", str(place), codes=(code,), max_tokens=32))
        return probes

    def samples(self) -> list[Probe]:
        """One sentence is to be invented: without chance, with chance, and twice with one seed."""
        topics = " and ".join(self._rng.sample(_TOPICS, 2))
        prompt = (
            f"Invent one sentence of about fifteen words about {topics}, in the year "
            f"{self._rng.randrange(1200, 1990)}. Reply with the sentence alone."
        )
        greedy = [
            self._probe(prompt, "greedy", str(place), seed=place, max_tokens=60)
            for place in range(N_GREEDY)
        ]
        drawn = [
            self._probe(prompt, "sampled", str(place), seed=place, temperature=1.0, max_tokens=60)
            for place in range(N_SAMPLED)
        ]
        # The same once more, under another name in our store, which else would answer it.
        again = self._probe(prompt, "sampled again", "0", temperature=1.0, max_tokens=60)
        return [*greedy, *drawn, again]

    def counting(self) -> Probe:
        """A long reply whose end is known."""
        prompt = (
            f"Write the whole numbers from 1 to {COUNTED_TO} in digits, separated by single "
            "spaces, and nothing else. Leave none of them out."
        )
        return self._probe(prompt, "counting", str(COUNTED_TO), max_tokens=512)

    def texts(self) -> list[Probe]:
        """The same texts for everybody, whose tokens are counted."""
        return [
            self._probe(f"{text}\nReply with OK.", "tokens", name, max_tokens=16)
            for name, text in TEXTS.items()
        ]

    def number(self) -> Probe:
        """A number is to be written, with what might have stood in its place."""
        prompt = "What is 60 plus 15? Reply with the number in digits alone."
        return self._probe(
            prompt, "logprobs", "number", max_tokens=16, logprobs=True, top_logprobs=10
        )

    def _codes(self, n: int) -> tuple[str, ...]:
        return tuple(str(number) for number in self._rng.sample(range(10_001, 99_999), n))

    def _probe(
        self,
        prompt: str,
        kind: str,
        name: str,
        *,
        codes: tuple[str, ...] = (),
        seed: int = 0,
        max_tokens: int,
        temperature: float = 0.0,
        **params: object,
    ) -> Probe:
        request = self._request(
            prompt,
            kind,
            seed=seed,
            max_tokens=max(max_tokens, self._least_tokens),
            temperature=temperature,
            **params,
        )
        return Probe(request, name, kind, codes, len(prompt))

    def _request(
        self,
        prompt: str,
        kind: str,
        *,
        seed: int,
        max_tokens: int,
        temperature: float = 0.0,
        **params: object,
    ) -> Request:
        return Request(
            protocol=f"judge_probe_{kind.replace(' ', '_')}:1",
            model=self._model,
            messages=[{"role": "user", "content": prompt}],
            params={
                "temperature": temperature,
                "max_tokens": max_tokens,
                **params,
            },
            seed=self._seed + seed,
            timeout_s=self._timeout_s,
            stand_in=lambda: "",
        )


def _with_codes(codes: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Sentences of about so many words with a code in the first, the middle and the last one."""
    n_sentences = max(len(codes), round(n_words / 13))
    sentences = [rng.choice(FILLERS) for _ in range(n_sentences)]
    for place, code in zip((0, n_sentences // 2, n_sentences - 1), codes, strict=True):
        sentences[place] = f"A note on the wall says that one locker code is {code}."
    return " ".join(sentences)
