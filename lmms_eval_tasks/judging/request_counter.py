"""Counting requests in place of sending them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

from lmms_eval_captions.judges.endpoint.cost import JudgeMode, Prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN, PICTURE_TOKENS
from lmms_eval_captions.judges.endpoint.request import (
    Ask,
    Asked,
    Chain,
    Message,
    Reply,
    Request,
    Usage,
    is_offline,
)
from lmms_eval_captions.judges.endpoint.store import StoredReplies
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.verdict import Judgement

T = TypeVar("T")

TOKENS_A_MESSAGE: Final = 4
"""Tokens around each message of a chat."""
TYPICAL_ANSWER: Final = "The camera moves slowly from left to right."
"""Stand-in for a free answer, which the second step's prompt includes."""
_OTHER_OUTPUT_TOKENS: Final = 50
"""Tokens of a reply to a protocol that its benchmark says nothing of."""
N_ATTEMPTS: Final = 4
"""The first request, and the fresh ones that the engine sends after replies it cannot read."""


class CaptionedDocument(NamedTuple):
    """A document with the caption that is judged, and what is asked about it."""

    name: str
    """Video and aspect."""
    caption: str
    questions: Sequence[object]
    ask: Callable[..., Chain[Sequence[Judgement]]]
    is_anchor: bool = False
    """True for a caption of ours: not part of the score, and asked in one judge run."""


@dataclass(slots=True)
class TaskEstimate:
    """Requests of one task."""

    task: str
    model: str
    runs: int
    typical_tokens: Mapping[str, int]
    """Protocol of a request to the tokens of a typical reply."""
    n_captions: int = 0
    n_missing: int = 0
    """Videos that have no caption in the file; their questions are left out."""
    why_nan: str = ""
    """Why no score is possible, and nothing is asked, with so many missing; mostly nothing."""
    n_questions: int = 0
    """Questions times judge runs."""
    n_calls: int = 0
    n_stored: int = 0
    """Requests whose reply is in the store already: they cost nothing."""
    n_again: int = 0
    """Calls for what the store holds unreadable replies to alone (``LMMS_CAPTIONS_ASK_AGAIN``)."""
    n_pictures: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    caption_chars: int = 0
    """Characters of all captions."""
    reply_tokens: dict[str, int] = field(default_factory=dict)
    """Protocol of each request that is sent to the tokens of a typical reply."""

    def cost_usd(self, prices: Prices, mode: JudgeMode) -> float | None:
        """US dollars, ``None`` where the judge's price is not known."""
        if not self.n_calls:
            return 0.0
        return prices.cost_usd(
            self.model,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            mode=mode,
        )


class RequestCounter:
    """Counts the requests of tasks; identical ones once, as they are sent once.

    Args:
        prices: What pictures take, by model.
        replies: Folder of the stored replies.
        ask_again: True to ask again if all stored replies are unreadable.
        endpoints: Names of those whose stored replies alone serve, ``None`` for all.
    """

    def __init__(
        self,
        prices: Prices,
        replies: Path,
        *,
        ask_again: bool = False,
        endpoints: tuple[str, ...] | None = None,
    ) -> None:
        self.ask_again = ask_again
        self._prices = prices
        self._stored = StoredReplies(replies, patience_s=0.0, endpoints=endpoints)
        self._seen: set[bytes] = set()
        self._readings: dict[str, Asked[Any]] = {}

    async def count(
        self,
        counts: TaskEstimate,
        documents: Iterable[CaptionedDocument],
        config: JudgeConfig,
        *,
        is_real: bool,
    ) -> None:
        """Add what judging a task's captions takes.

        Real captions are those of a run: replies about them may be in the store.
        """
        for document in documents:
            for run in range(1 if document.is_anchor else config.runs):
                for question in document.questions:
                    chain = document.ask(question, document.caption, config=config, run=run)
                    n_judgements = len(await chain(self._counting(counts, document.name, is_real)))
                    counts.n_questions += 0 if document.is_anchor else n_judgements

    def close(self) -> None:
        """Close the stores."""
        self._stored.close()

    def _counting(self, counts: TaskEstimate, name: str, is_real: bool) -> Ask:
        """Return what stands for the engine's ``ask`` in the chain of one question."""
        # What is made up must not look the same for all captions.
        document = name.encode("utf-8", "surrogatepass")
        may_be_stored = is_real

        async def ask(request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
            nonlocal is_real
            if is_offline(request.model):
                return self._typical(request, read)
            attempt = 0
            while True:
                key = request.key(attempt)
                reply = self._stored.get(request.model, key) if may_be_stored else None
                seen = key if is_real else key + document
                is_new = seen not in self._seen
                self._seen.add(seen)
                if reply is None:
                    break
                counts.n_stored += is_new
                value = read(reply)
                if value is not None:
                    return _asked(value, reply)
                attempt += 1
            if attempt >= N_ATTEMPTS and not self.ask_again:
                return _UNREADABLE
            if is_new:
                self._add(counts, request)
                counts.n_again += attempt >= N_ATTEMPTS
            is_real = False
            return self._typical(request, read)

        return ask

    def _add(self, counts: TaskEstimate, request: Request) -> None:
        """Count a request that would be sent."""
        n_chars, n_pictures = _content(request.messages)
        price = self._prices.price(request.model)
        per_picture = PICTURE_TOKENS if price is None else price.image_tokens
        protocol = request.protocol.partition(":")[0]
        counts.n_calls += 1
        counts.n_pictures += n_pictures
        counts.input_tokens += (
            n_chars / CHARS_PER_TOKEN
            + TOKENS_A_MESSAGE * len(request.messages)
            + per_picture * n_pictures
        )
        reply_tokens = counts.typical_tokens.get(protocol, _OTHER_OUTPUT_TOKENS)
        counts.output_tokens += reply_tokens
        counts.reply_tokens[protocol] = reply_tokens

    def _typical(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        """Return the assumed reading of a protocol's replies; reading each would be slow."""
        if request.protocol not in self._readings:
            replies = (Reply(TYPICAL_ANSWER, "stop"), Reply(request.stand_in(), "stop"))
            readings = (_asked(read(reply), reply) for reply in replies)
            typical = next((asked for asked in readings if asked.value is not None), _UNREADABLE)
            self._readings[request.protocol] = typical
        return cast("Asked[T]", self._readings[request.protocol])


def _asked(value: T | None, reply: Reply) -> Asked[T]:
    return Asked(
        value, reply.text, None if value else "nothing to read", cached=False, usage=Usage()
    )


_UNREADABLE: Final[Asked[Any]] = _asked(None, Reply(""))


def _content(messages: Sequence[Message]) -> tuple[int, int]:
    """Characters of text, and pictures."""
    n_chars = n_pictures = 0
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            n_chars += sum(len(str(part.get("text", ""))) for part in content)
            n_pictures += sum(part.get("type") == "image_url" for part in content)
        else:
            n_chars += len(str(content))
    return n_chars, n_pictures
