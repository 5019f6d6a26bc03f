"""Asks one request, reads its reply, and asks afresh where that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from loguru import logger

from lmms_eval_captions.judges.endpoint.answers.reasoning import strip_reasoning
from lmms_eval_captions.judges.endpoint.config import EngineConfig
from lmms_eval_captions.judges.endpoint.outcome import UNREADABLE, Asked, Failure, Usage
from lmms_eval_captions.judges.endpoint.progress.meter import Meter
from lmms_eval_captions.judges.endpoint.reply_source import ReplySource
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.store import UnsavedReplyError
from lmms_eval_captions.judges.errors import (
    EndpointSilentError,
    GaveUpError,
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
)

T = TypeVar("T")


class Asker:
    """Gives each request of a chain its outcome; to be used inside the event loop alone.

    Args:
        replies: Where replies come from.
        meter: Counts what stays unscored.
        config: How often is asked.
    """

    def __init__(self, replies: ReplySource, *, meter: Meter, config: EngineConfig) -> None:
        self._replies = replies
        self._meter = meter
        self._config = config
        self._until: dict[bytes, int] = {}
        """Key of a request to the attempt before which it is asked anew in this run."""

    async def ask_about(
        self,
        about: bytes,
        question_index: int,
        request: Request,
        read: Callable[[Reply], T | None],
    ) -> Asked[T]:
        """As :meth:`ask`, of the replica of a caption that ``about`` tells from others."""
        return await self.ask(question_index, replace(request, about=about), read)

    async def ask(
        self, question_index: int, request: Request, read: Callable[[Reply], T | None]
    ) -> Asked[T]:
        """Ask, read the reply, and ask afresh where it cannot be read; see :class:`.chain.Ask`.

        Args:
            question_index: Number of the question, in the order of their beginning.
            request: What is asked.
            read: Makes a value of a reply, or ``None``.
        """
        usage, reply, cached = Usage(), Reply(""), True
        attempt = 0
        failure: Failure
        try:
            while attempt == 0 or self._is_asked(request, attempt):
                reply, from_store = await self._replies.get(question_index, request, attempt)
                cached = cached and from_store
                usage += self._usage(reply, from_store=from_store)
                value = _read(read, reply)
                if value is not None:
                    return Asked(value, reply.text, None, cached=cached, usage=usage)
                attempt += 1
                if reply.is_final:
                    break
                if not from_store:
                    self._go_on_until(request, attempt + self._config.n_rereads)
        except UnsavedReplyError as error:
            reply, reason, failure = error.reply, str(error), _failure(error)
        except JudgeError as error:
            reason, failure = str(error), _failure(error)
        else:
            reason = f"{UNREADABLE}, asked {attempt} times{_hint(reply)}"
            failure = "unreadable"
        self._meter.n_unscored += 1
        return Asked(None, reply.text, reason, cached=False, usage=usage, failure=failure)

    def _usage(self, reply: Reply, *, from_store: bool) -> Usage:
        """What a reply adds: what it cost if it was paid for now, and what it says of its giver."""
        return Usage(
            n_calls=0 if from_store else 1,
            input_tokens=0 if from_store else reply.input_tokens,
            output_tokens=0 if from_store else reply.output_tokens,
            refused=reply.refused,
            served=(reply.model,) if reply.model else (),
        )

    def _is_asked(self, request: Request, attempt: int) -> bool:
        """Whether a request whose replies so far cannot be read has a further attempt.

        Those of earlier runs that asked anew are read; in this run all who ask the same share one
        count of those that are sent.
        """
        if attempt <= self._config.n_rereads or self._replies.has(request, attempt):
            return True
        return self._config.ask_again and attempt < self._go_on_until(
            request, attempt + 1 + self._config.n_rereads
        )

    def _go_on_until(self, request: Request, attempt: int) -> int:
        """The attempt before which a request is asked anew in this run, this one if not set."""
        if not self._config.ask_again:
            return attempt
        return self._until.setdefault(request.key(request.body(0)), attempt)


def _read(read: Callable[[Reply], T | None], reply: Reply) -> T | None:
    """What a reader makes of a reply; one that it cannot cope with is unreadable, nothing more."""
    try:
        return read(reply)
    except Exception as error:  # noqa: BLE001 - a reply must not cost its caption
        logger.error("reading a reply failed, it counts as unreadable: {!r}", error)
        return None


def _failure(error: JudgeError) -> Failure:
    if isinstance(error, JudgeRequestError):
        return "unavailable" if isinstance(error, GaveUpError) else "refused"
    if isinstance(error, EndpointSilentError):
        return "silent"
    return "stopped" if isinstance(error, JudgeStoppedError) else "unavailable"


def _hint(reply: Reply) -> str:
    """Why a reply cannot be read, where its look tells."""
    if reply.finish_reason == "content_filter":
        return "; the last one was withheld by the provider's content filter"
    is_cut, is_reasoning = reply.finish_reason == "length", "<think" in reply.text.lower()
    if is_cut and is_reasoning and not strip_reasoning(reply.text):
        return "; the last one was cut at max_tokens within its reasoning"
    if is_cut:
        return "; the last one was cut at max_tokens"
    return "" if reply.text.strip() else "; the last one was empty"
