"""Asks the judge through the engine, and keeps what the protocols read: every reply as it came."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, Generic, TypeVar

from lmms_eval_captions.judges.endpoint.budget import LIMIT_REACHED
from lmms_eval_captions.judges.endpoint.chain import Ask, Chain
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.explicit_sampling import explicit_sampling
from lmms_eval_captions.judges.endpoint.outcome import Asked, Failure
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.settings import JudgeSettings

R = TypeVar("R")
T = TypeVar("T")

_FINISH_S: Final = 5.0
"""How long replies that are under way are waited for where someone has had enough."""
_NO_REPLY: Final = ("refused", "unavailable", "silent", "stopped")
"""Failures that say nothing of the judge's verdicts."""


@dataclass(frozen=True, slots=True)
class HeardReply:
    """A reply as it came, from the endpoint or from the store."""

    step: str
    """Which prompt it answers, such as ``vdc_match``."""
    reply: Reply
    is_readable: bool
    attempt: int
    """0 for the first reply to a request."""


@dataclass(slots=True)
class Heard:
    """All replies of one chain, and why a request of it has none."""

    replies: list[HeardReply] = field(default_factory=list)
    failure: Failure | None = None
    reason: str = ""

    @property
    def was_unreadable(self) -> bool:
        """Whether the first reply to one of its requests could not be read."""
        return any(not each.is_readable and each.attempt == 0 for each in self.replies)


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """What a chain came to, and what was heard on the way."""

    result: R
    heard: Heard

    @property
    def has_reply(self) -> bool:
        """Whether the judge answered, readably or not; else nothing can be said of it."""
        return self.heard.failure not in _NO_REPLY


def engine_of(settings: JudgeSettings, *, max_cost_usd: float | None) -> Engine:
    """An engine for verification: it asks at once, and takes stored replies of no other endpoint.

    Args:
        settings: Whom to ask, and how many at once.
        max_cost_usd: Most that may be billed; ``None`` without a limit.
    """
    return Engine(
        EngineConfig(
            urls=settings.endpoint.urls,
            store=settings.cache / "replies",
            api=settings.api,
            api_key=settings.endpoint.api_key,
            concurrency=settings.concurrency,
            max_rate=settings.rate,
            store_by="endpoint",
            max_cost_usd=max_cost_usd,
            prices=settings.prices,
            progress=sys.stderr.isatty(),
            alias=settings.alias,
            sampling=explicit_sampling(settings.endpoint.urls, settings.api),
        )
    )


def ask_all(engine: Engine, chains: Sequence[Chain[R]]) -> list[Answer[R]]:
    """Run chains, all at once; what is answered is on disk also where Ctrl-C ends the waiting.

    Raises:
        JudgeStoppedError: If the endpoint is gone, or lets nobody in; the text says what to do. Not
            where the limit of cost is reached: then the rest has no reply.
    """
    heard = [Heard() for _ in chains]
    futures: list[Future[list[R]]] = [
        engine.submit([_listening(chain, to)]) for chain, to in zip(chains, heard, strict=True)
    ]
    try:
        answers = [
            Answer(future.result()[0], to) for future, to in zip(futures, heard, strict=True)
        ]
    except KeyboardInterrupt:
        engine.close(_FINISH_S)
        raise
    for each in heard:
        if each.failure in ("stopped", "silent") and not each.reason.startswith(LIMIT_REACHED):
            raise JudgeStoppedError(each.reason)
    return answers


def reply_to(request: Request) -> Chain[Reply | None]:
    """A chain of one request whose reply is taken as it is, ``None`` where none came."""

    async def chain(ask: Ask) -> Reply | None:
        asked: Asked[Reply] = await ask(request, lambda reply: reply)
        return asked.value

    return chain


def _listening(chain: Chain[R], heard: Heard) -> Chain[R]:
    """The same chain, whose replies are heard."""

    async def listened(ask: Ask) -> R:
        async def asking(request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
            step, attempts = request.protocol.partition(":")[0], count()

            def reading(reply: Reply) -> T | None:
                value = read(reply)
                heard.replies.append(HeardReply(step, reply, value is not None, next(attempts)))
                return value

            asked: Asked[Any] = await ask(request, reading)
            if asked.failure is not None and heard.failure is None:
                heard.failure, heard.reason = asked.failure, str(asked.reason)
            return asked

        return await chain(asking)

    return listened
