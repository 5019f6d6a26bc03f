"""Counting requests in place of sending them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar, cast

from lmms_eval_captions.judges.endpoint.prices import JudgeMode, Prices
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request
from lmms_eval_captions.judges.endpoint.store.stored_replies import StoredReplies
from lmms_eval_captions.judges.judge_config import JudgeConfig
from lmms_eval_captions.judges.verdict import Asked, Usage
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.plans import Document
from lmms_eval_captions.model_wrappers.caption_files.records import CaptionTable

T = TypeVar("T")

CHARS_PER_TOKEN: Final = 4.0
"""Characters of English prompts and captions that make a token. T5's 32,000 pieces make 3.9 to 4.7
of VDC's prompts and questions; judges have more pieces, so that the estimate is rather too high."""
TOKENS_A_MESSAGE: Final = 4
"""Tokens around each message of a chat."""
TYPICAL_ANSWER: Final = "The camera moves slowly from left to right."
"""What stands for a reply that is a free answer, and goes into the second step's prompt."""
OUTPUT_TOKENS: Final[Mapping[str, int]] = {
    "vdc_answer": 12,
    "vdc_match": 14,
    "vidcapbench_answer": 12,
    "vidcapbench_judge": 60,
    "vcapsbench_answer": 25,
    "capquiz_answer": 2,
    "gveval": 400,
}
"""Protocol to the tokens of a reply, by our judgement; a judge that reasons writes far more."""
_OTHER_OUTPUT_TOKENS: Final = 50
_IMAGE_TOKENS: Final = 1500
N_ASKS: Final = 4
"""The first ask and the engine's fresh ones after a reply in the store that cannot be read."""


@dataclass(slots=True)
class Row:
    """What one task takes."""

    task: str
    model: str
    runs: int
    n_captions: int = 0
    n_missing: int = 0
    """Videos that have no caption in the file; their questions are left out."""
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
    """Of all captions together."""
    protocols: set[str] = field(default_factory=set)
    """Names of the prompts that are sent."""

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


class Counter:
    """Counts the requests of tasks; identical ones once, as they are sent once.

    Args:
        prices: What pictures take, by model.
        replies: Folder of the stored replies.
        alias: Name under which the endpoint answers as the judge, part of the store's keys.
        ask_again: Whether what the store holds unreadable replies to alone is asked anew.
    """

    def __init__(
        self, prices: Prices, replies: Path, *, alias: str | None = None, ask_again: bool = False
    ) -> None:
        self.alias = alias
        self._prices = prices
        self.ask_again = ask_again
        self._shelf = StoredReplies(replies, patience_s=0.0)
        self._seen: set[bytes] = set()
        self._typical: dict[str, tuple[object, Reply]] = {}

    async def count(
        self,
        row: Row,
        captioned: Iterable[tuple[Document, str]],
        config: JudgeConfig,
        table: CaptionTable | None,
    ) -> None:
        """Add what judging these captions takes to a row."""
        shelf = None if table is None else self._shelf
        for document, caption in captioned:
            place = f"{document.videos[0]} {document.aspect}".encode("utf-8", "surrogatepass")
            for run in range(config.runs):
                for asker in document.askers:
                    row.n_questions += 1
                    if config.asks_endpoint:
                        ask = _Ask(self, row, shelf, place, is_real=table is not None)
                        await asker(caption, config, run)(ask)

    def is_new(self, key: bytes) -> bool:
        """Whether a request is asked for the first time."""
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def add(self, row: Row, request: Request) -> None:
        """Count a request that would be sent."""
        n_chars, n_pictures = _content(request.messages)
        price = self._prices.models.get(request.model)
        per_picture = _IMAGE_TOKENS if price is None else price.image_tokens
        protocol = request.protocol.partition(":")[0]
        row.n_calls += 1
        row.n_pictures += n_pictures
        row.input_tokens += (
            n_chars / CHARS_PER_TOKEN
            + TOKENS_A_MESSAGE * len(request.messages)
            + per_picture * n_pictures
        )
        row.output_tokens += output_tokens(protocol)
        row.protocols.add(protocol)

    def typical(
        self, request: Request, read: Callable[[Reply], T | None]
    ) -> tuple[T | None, Reply]:
        """What a reply is taken to say, the same for all of a protocol: reading takes long."""
        if request.protocol not in self._typical:
            replies = (Reply(TYPICAL_ANSWER, "stop"), Reply(request.stand_in(), "stop"))
            read_replies = ((read(reply), reply) for reply in replies)
            found = (pair for pair in read_replies if pair[0] is not None)
            self._typical[request.protocol] = next(found, (None, Reply("")))
        value, reply = self._typical[request.protocol]
        return cast("T | None", value), reply

    def close(self) -> None:
        """Close the stores."""
        self._shelf.close()


@dataclass(slots=True)
class _Ask:
    """Stands for the engine's ``ask`` in the chain of one question."""

    counter: Counter
    row: Row
    shelf: StoredReplies | None
    place: bytes
    """Which caption this is: what is made up must not look the same for all of them."""
    is_real: bool
    """Whether the caption and all replies so far are those of a run."""

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        attempt = 0
        while True:
            key = request.key(request.body(attempt), self.counter.alias)
            reply = None if self.shelf is None else self.shelf.get(request.model, key)
            is_new = self.counter.is_new(key if self.is_real else key + self.place)
            if reply is None:
                break
            self.row.n_stored += is_new
            value = read(reply)
            if value is not None:
                return _asked(value, reply)
            attempt += 1
        if attempt >= N_ASKS and not self.counter.ask_again:
            return _asked(None, Reply(""))
        if is_new:
            self.counter.add(self.row, request)
            self.row.n_again += attempt >= N_ASKS
        self.is_real = False
        return _asked(*self.counter.typical(request, read))


def output_tokens(protocol: str) -> int:
    """Tokens of a typical reply to a protocol's prompt."""
    return OUTPUT_TOKENS.get(protocol, _OTHER_OUTPUT_TOKENS)


def _asked(value: T | None, reply: Reply) -> Asked[T]:
    return Asked(
        value, reply.text, None if value else "nothing to read", cached=False, usage=Usage()
    )


def _content(messages: Sequence[Message]) -> tuple[int, int]:
    """Characters of text, and pictures."""
    n_chars = n_pictures = 0
    for message in messages:
        content = message["content"]
        for part in content if isinstance(content, list) else [{"text": content}]:
            n_chars += len(str(part.get("text", "")))
            n_pictures += part.get("type") == "image_url"
    return n_chars, n_pictures
