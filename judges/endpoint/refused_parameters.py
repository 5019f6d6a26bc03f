"""Parameters that a model refuses, and that its requests can do without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply, without
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
    """

    def __init__(self, role: RoleWords) -> None:
        self._role = role
        self._refused: dict[str, list[str]] = {}
        """Model to the parameters that it does not take."""

    async def send(
        self, model: str, body: bytes, *, send: Callable[[bytes], Awaitable[Reply]]
    ) -> Reply:
        """The reply, which says what was left out of the request.

        Args:
            model: Name of the model.
            body: JSON of the request.
            send: Sends a body.

        Raises:
            JudgeError: That of ``send``; also where a parameter is refused that is not there.
        """
        refused = self._refused.setdefault(model, [])
        plain, left_out = body, list[str]()
        for parameter in refused:
            plain = _leave_out(plain, parameter, left_out)
        while True:
            try:
                reply = await send(plain)
            except ParameterRefusedError as error:
                n_left_out = len(left_out)
                plain = _leave_out(plain, error.parameter, left_out)
                if len(left_out) == n_left_out:
                    raise
                if error.parameter not in refused:
                    refused.append(error.parameter)
                    words = _WITHOUT[error.parameter].format(role=self._role)
                    logger.warning("{}: {}", words, error)
            else:
                return replace(reply, refused=tuple(left_out)) if left_out else reply


def _leave_out(body: bytes, parameter: str, left_out: list[str]) -> bytes:
    """The body without a parameter, which is then added to the list if it was in it."""
    plain = without(body, parameter)
    if plain != body:
        left_out.append(parameter)
    return plain
