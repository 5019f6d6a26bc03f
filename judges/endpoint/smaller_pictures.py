"""Pictures made smaller where an endpoint takes no request so large."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import RoleWords
from lmms_eval_captions.judges.errors import JudgeError

_TOO_LARGE: Final = 413
_REFUSING: Final = {400, 422}
_WORDS: Final = re.compile(
    r"\b(?:payload|body|entity|request)(?: size)?(?: is)? (?:too large|exceeds the)"
    r"|\bexceeds (?:the )?(?:maximum |max )?(?:payload|body|request) size",
    re.IGNORECASE,
)
"""What is said where the status is another one: ``Request payload size exceeds the limit:
20971520 bytes.`` (Gemini)."""


@dataclass(slots=True)
class _Limit:
    """What is known of how large a request may be."""

    refused_bytes: float = inf
    """The smallest request that was refused."""
    step: int = 0
    """How often pictures had to be made smaller, at most."""


class SmallerPictures:
    """Sends requests that can be shrunk as large as their endpoint takes them.

    The store's key stays that of the asking, so that a rerun finds the reply at once.

    Args:
        role: Words for messages.
    """

    def __init__(self, role: RoleWords) -> None:
        self._role = role
        self._limits: dict[str, _Limit] = {}

    async def send(
        self, request: Request, attempt: int, *, send: Callable[[Request], Awaitable[Reply]]
    ) -> Reply:
        """The reply to a request, whose pictures are smaller where that is needed.

        Args:
            request: What is asked.
            attempt: 0, and one more for each fresh sample.
            send: Sends a request.

        Raises:
            JudgeError: That of ``send``; also where pictures cannot be smaller.
        """
        if request.shrink is None:
            return await send(request)
        limit = self._limits.setdefault(request.model, _Limit())
        n_bytes = len(request.body(attempt))
        step, sent = 0, request
        if n_bytes >= limit.refused_bytes:
            step, sent = limit.step, await _smaller(request, limit.step) or request
        while True:
            try:
                return await send(sent)
            except JudgeError as error:
                if not is_too_large(error):
                    raise
                smaller = await _smaller(request, step + 1)
                if smaller is None:
                    raise
                step, sent = step + 1, smaller
                self._note(limit, step, n_bytes, error)

    def _note(self, limit: _Limit, step: int, n_bytes: int, error: JudgeError) -> None:
        limit.refused_bytes = min(limit.refused_bytes, n_bytes)
        if step > limit.step:
            limit.step = step
            logger.warning(
                "the {} takes no request of {:,} bytes: pictures are sent with 1/{} of their "
                "pixels from here on ({})",
                self._role.who,
                n_bytes,
                2**step,
                error,
            )


def is_too_large(error: JudgeError) -> bool:
    """Whether an error says that a request has too many bytes."""
    if error.status == _TOO_LARGE:
        return True
    return error.status in _REFUSING and _WORDS.search(str(error)) is not None


async def _smaller(request: Request, step: int) -> Request | None:
    """The request with smaller pictures, made beside the event loop: that takes time."""
    shrink = request.shrink
    messages = None if shrink is None else await asyncio.to_thread(shrink, step)
    return None if messages is None else request.sent_otherwise(instead=messages)
