"""Parameters that a model refuses, and that its requests can do without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import RoleWords
from lmms_eval_captions.judges.errors import ParameterRefusedError

_WITHOUT: Final = {
    "logprobs": "scores will be plain numbers, not expectations",
    "max_tokens": "max_completion_tokens is sent in its place, which also counts reasoning",
    "temperature": (
        "the {role.who} chooses its temperature, so {role.results} vary more between runs"
    ),
    "seed": "requests are sent without, so that nobody can draw the same {role.results} again",
}


class RefusedParameters:
    """Sends requests without the parameters that their model was found to refuse.

    The store's key stays that of the asking, so that a rerun finds the reply at once, and that
    requests which differ in what is refused alone (their seeds) have a reply each.

    Args:
        role: Words for messages.
        not_taken: Parameters that no model takes at this API.
    """

    def __init__(self, role: RoleWords, not_taken: Sequence[str] = ()) -> None:
        self._role = role
        self._not_taken = tuple(not_taken)
        self._refused: dict[str, list[str]] = {}
        """Model to the parameters that it does not take."""

    async def send(
        self,
        request: Request,
        attempt: int,
        *,
        send: Callable[[Request], Awaitable[Reply]],
    ) -> Reply:
        """The reply, which says what was left out of the request.

        Args:
            request: What is asked.
            attempt: 0, and one more for each fresh sample.
            send: Sends a request.

        Raises:
            JudgeError: That of ``send``; also where a parameter is refused that is not there.
        """
        refused = self._refused.get(request.model)
        if refused is None:
            refused = self._refused[request.model] = list(self._not_taken)
        asked = request.parameters(attempt)
        left_out = tuple(parameter for parameter in refused if parameter in asked)
        sent = request.sent_otherwise(left_out=left_out) if left_out else request
        while True:
            try:
                reply = await send(sent)
            except ParameterRefusedError as error:
                parameter = error.parameter
                if parameter in left_out or parameter not in asked:
                    raise
                left_out = (*left_out, parameter)
                sent = request.sent_otherwise(left_out=left_out)
                if parameter not in refused:
                    refused.append(parameter)
                    words = _WITHOUT[parameter].format(role=self._role)
                    logger.warning("{}: {}", words, error)
            else:
                return replace(reply, refused=left_out) if left_out else reply
