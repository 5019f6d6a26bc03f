"""Four probes of an endpoint: model name, truncation, temperature 0 and cached replies."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.adapt import Adaptations, is_same_model
from lmms_eval_captions.judges.endpoint.client import ChatClient
from lmms_eval_captions.judges.endpoint.dialects import DIALECTS
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.failures import WORDS
from lmms_eval_captions.judges.endpoint.replies import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.urls import redact_url
from lmms_eval_captions.judges.errors import JudgeStoppedError, JudgeUnavailableError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.settings import JudgeSettings

FindingState = Literal["ok", "note", "failed"]
N_WORDS: Final = 1000
"""Length of long descriptions that hide codes; benchmark captions are shorter."""
COUNTED_TO: Final = 80
_N_LONG: Final = 3
_LENGTHS: Final = (50, *[N_WORDS] * _N_LONG)
_N_GREEDY: Final = 3
_WAITS_S: Final = (0.5, 2.0, 8.0)
_MOST_WAIT_S: Final = 30.0
_OPENING_WORDS: Final = 6
"""Words by which two invented sentences are compared; honest servers may diverge later on."""
_FILLERS: Final = (
    "The light in the scene is even and changes very little.",
    "Several passers-by appear for a moment and leave again.",
    "The background stays calm, and nothing in it needs attention.",
    "A soft breeze moves the leaves at the edge of the frame.",
    "The transitions are smooth, and no part of the scene is skipped.",
)
_TOPICS: Final = (
    "a lighthouse", "a spoon", "an old map", "a beehive", "a comet", "a violin", "a glacier",
)  # fmt: skip
_RAISE_CONTEXT: Final = (
    "raise the server's context length (vLLM --max-model-len, llama.cpp -c, "
    "OLLAMA_CONTEXT_LENGTH), or ask without the proxy"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a probe."""

    name: str
    state: FindingState
    text: str
    """Evidence, and what to do."""


class Probes:
    """The probes of one verification, with random words that no earlier cache has seen."""

    def __init__(self, config: JudgeConfig, settings: JudgeSettings, rng: random.Random) -> None:
        self._config = config
        self._settings = settings
        codes = [str(code) for code in rng.sample(range(10_001, 99_999), 3 * (1 + _N_LONG) + 2)]
        self._numbers, *self._codes = codes[:2], *zip(*[iter(codes[2:])] * 3, strict=True)
        topics = " and ".join(rng.sample(_TOPICS, 2))
        self._sentence = (
            f"Invent one sentence of about fifteen words about {topics}, in the year "
            f"{rng.randrange(1200, 1990)}. Reply with the sentence alone."
        )

    def requests(self) -> list[Request]:
        """Return the requests for one address of the endpoint."""
        count = (
            f"Write the whole numbers from 1 to {COUNTED_TO} in digits, separated by single "
            "spaces, and nothing else. Leave none of them out."
        )
        return [
            *(
                self._request(_hidden(codes, n_words))
                for codes, n_words in zip(self._codes, _LENGTHS, strict=True)
            ),
            self._request(count),
            *(self._request(self._sentence) for _ in range(_N_GREEDY)),
            *(self._request(self._sentence, temperature=1.0, seed=seed) for seed in (1, 2)),
            *(
                self._request(
                    f"Description:\n{' '.join(_FILLERS)} The boat has the number {number}.\n\n"
                    "Question:\nWhich number does the boat have? Reply with it alone."
                )
                for number in self._numbers
            ),
        ]

    @property
    def n_requests(self) -> int:
        """Number of requests to all addresses."""
        return len(self.requests()) * len(self._settings.endpoint.urls)

    def findings(self) -> list[Finding]:
        """Ask every address and return what the replies show."""
        endpoint = self._settings.endpoint
        found: list[Finding] = []
        for url in endpoint.urls:
            try:
                found += self.read(asyncio.run(_replies(url, endpoint, self.requests())))
            except JudgeUnavailableError as error:
                raise JudgeStoppedError(
                    f"the judge at {redact_url(url)} does not answer: {error}; start it, or check "
                    "LMMS_CAPTIONS_JUDGE_URL (`lmms-eval-captions doctor` looks at it)"
                ) from error
        return list(dict.fromkeys(found))

    def read(self, replies: Sequence[Reply]) -> Iterator[Finding]:
        """Return the findings of one address.

        Args:
            replies: In the order of :meth:`requests`.
        """
        texts = [strip_reasoning(reply.text) for reply in replies]
        hidden, rest = texts[: len(_LENGTHS)], texts[len(_LENGTHS) :]
        greedy = slice(len(_LENGTHS) + 1, len(_LENGTHS) + 1 + _N_GREEDY)
        yield self._model(replies)
        yield self._truncation(hidden, counted=rest[0])
        yield _temperature(replies, texts[greedy])
        yield self._cached([reply.id for reply in replies], greedy, rest[-4:])

    def _model(self, replies: Sequence[Reply]) -> Finding:
        names = list(dict.fromkeys(reply.model for reply in replies if reply.model))
        asked = [self._config.model, *filter(None, [self._settings.alias])]
        if not names:
            return Finding("model", "note", "replies do not name their model")
        others = [name for name in names if not any(is_same_model(name, each) for each in asked)]
        if others:
            text = (
                f"{asked[-1]!r} was asked for, {', '.join(map(repr, others))} answered; set "
                "LMMS_CAPTIONS_JUDGE to that model, or LMMS_CAPTIONS_JUDGE_ALIAS if it is only "
                "another name"
            )
            return Finding("model", "failed", text)
        return Finding("model", "ok", f"replies are from {', '.join(names)}")

    def _truncation(self, hidden: Sequence[str], *, counted: str) -> Finding:
        short, *long = (
            [code in text for code in codes]
            for codes, text in zip(self._codes, hidden, strict=True)
        )
        if not all(short):
            return Finding("truncation", "note", "the judge does not find codes in a short text")
        # A cut hides the same positions every time; a weak reader misses codes here and there.
        n_found = [sum(found) for found in zip(*long, strict=True)]
        visible = [n for n in n_found if n]
        if len(visible) < len(n_found) and sum(visible) >= _N_LONG * len(visible) - 1:
            names = ("beginning", "middle", "end")
            lost = [name for name, n in zip(names, n_found, strict=True) if not n]
            text = (
                f"in descriptions of {N_WORDS:,} words codes at the {' and '.join(lost)} were "
                f"never seen, in a short one all were; {_RAISE_CONTEXT}"
            )
            return Finding("truncation", "failed", text)
        if counted.lstrip().startswith("1 2 3 4 5") and str(COUNTED_TO) not in counted:
            text = f"the numbers from 1 to {COUNTED_TO} end with {counted[-20:]!r}; look for a "
            return Finding("truncation", "failed", f"{text}limit of output tokens")
        if sum(n_found) < _N_LONG * len(n_found) - 1:
            return Finding("truncation", "note", "the judge misses codes in long texts at random")
        return Finding("truncation", "ok", f"{N_WORDS:,} words and a long reply arrive complete")

    def _cached(self, ids: Sequence[str | None], greedy: slice, texts: Sequence[str]) -> Finding:
        # Some servers give all completions one id, others draw from so few ids that two replies
        # to different requests may share one.
        own_ids = ids[greedy]
        if all(own_ids) and len(set(own_ids)) < len(own_ids) and len(set(ids)) > 1:
            text = f"requests got one completion again ({own_ids[-1]!r:.60}); turn the cache off"
            return Finding("cached replies", "failed", text)
        first, second, *boats = texts
        if first and first == second:
            text = "temperature 1 gave the same sentence twice: a cache, or a fixed temperature"
            return Finding("cached replies", "failed", text)
        own, other = self._numbers
        if own in boats[1] and other not in boats[1]:
            text = "a number of an earlier request was answered; turn the cache off"
            return Finding("cached replies", "failed", text)
        return Finding("cached replies", "ok", "every request has its own reply")

    def _request(self, prompt: str, *, temperature: float = 0.0, seed: int = 0) -> Request:
        return Request(
            protocol="judge_probe:1",
            model=self._config.model,
            messages=[{"role": "user", "content": prompt}],
            params={"temperature": temperature, "max_tokens": max(512, self._config.max_tokens)},
            seed=seed,
            timeout_s=self._config.timeout_s,
            stand_in=lambda: "",
        )


def _temperature(replies: Sequence[Reply], greedy: Sequence[str]) -> Finding:
    if any("temperature" in reply.refused for reply in replies):
        return Finding("temperature", "note", "the model has no temperature; its verdicts vary")
    if len({_opening(text) for text in greedy}) == len(greedy):
        text = (
            f"at temperature 0 one request had {len(greedy)} different replies; look for a proxy "
            "or server setting that replaces the temperature"
        )
        return Finding("temperature", "failed", text)
    return Finding("temperature", "ok", "temperature 0 repeats itself")


async def _replies(url: str, endpoint: Endpoint, requests: Sequence[Request]) -> list[Reply]:
    """Ask one after the other; a busy endpoint is asked again a few times."""
    client = ChatClient((url,), endpoint.api_key, api=endpoint.api)
    not_taken = DIALECTS[endpoint.api].not_taken
    adaptations = Adaptations(WORDS["judge"], not_taken=not_taken)

    async def send(request: Request) -> Reply:
        for wait_s in _WAITS_S:
            try:
                return await client.complete(request, 0, timeout_s=request.timeout_s)
            except JudgeUnavailableError as error:
                if error.status is None:
                    raise
                await asyncio.sleep(min(error.retry_after_s or wait_s, _MOST_WAIT_S))
        return await client.complete(request, 0, timeout_s=request.timeout_s)

    try:
        return [await adaptations.send(request, 0, send) for request in requests]
    finally:
        await client.close()


def _opening(text: str) -> tuple[str, ...]:
    return tuple(text.split()[:_OPENING_WORDS])


def _hidden(codes: Sequence[str], n_words: int) -> str:
    """Return a description with a code at its beginning, middle and end."""
    sentences = [_FILLERS[index % len(_FILLERS)] for index in range(n_words // 10)]
    for index, code in zip((0, len(sentences) // 2, len(sentences) - 1), codes, strict=True):
        sentences[index] = f"A note on the wall says that one locker code is {code}."
    ask = "List every locker code that the description mentions, separated by commas."
    return f"{ask}\n\nDescription:\n{' '.join(sentences)}\n\n{ask}"
