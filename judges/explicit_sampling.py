"""Sampling parameters that are sent so that a server's own defaults do not take their place.

vLLM fills what a request leaves out from the checkpoint's ``generation_config.json``; llama.cpp has
defaults of its own (``top_k`` 40, ``top_p`` 0.95, ``min_p`` 0.05) and takes others from the GGUF
file. So the same judge would answer otherwise on another server, at temperature 0 too where a
repetition penalty is among them. The values sent here are those that change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.errors import JudgeError
from lmms_eval_captions.judges.request import Reply
from lmms_eval_captions.judges.settings import is_self_hosted

NEUTRAL: Final[Mapping[str, object]] = {
    "top_p": 1,
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "repeat_penalty": 1,
}
"""Values that leave a model's distribution as it is. ``top_k`` of -1 is all tokens for vLLM, SGLang
and llama.cpp; ``repeat_penalty`` is llama.cpp's name, and LM Studio's, for the penalty."""
_REFUSING: Final = {400, 403, 404, 405, 409, 415, 422}
"""Statuses that may be about a parameter: not those of keys, bills, time-outs and rates."""

Send = Callable[[bytes], Awaitable[Reply]]


def explicit_sampling(urls: Sequence[str]) -> Mapping[str, object]:
    """What is sent explicitly to these endpoints: nothing where one is a provider's.

    Providers have no defaults of a checkpoint, and refuse what OpenAI's API does not name.
    """
    return NEUTRAL if all(map(is_self_hosted, urls)) else {}


class ExplicitSampling:
    """Sends parameters explicitly to the models that take them.

    Args:
        parameters: Their names and values; empty to send nothing.
    """

    def __init__(self, parameters: Mapping[str, object]) -> None:
        self._parameters = parameters
        self._taken: set[str] = set()
        self._refused: set[str] = set()

    async def send(
        self, model: str, params: Mapping[str, object], body: bytes, *, send: Send
    ) -> Reply:
        """The reply to a request, with the parameters that it has none of its own of.

        As long as none of a model's requests was answered with them, one that is refused is sent
        once more without; where that is answered, they are left out from then on.

        Args:
            model: Name of the model.
            params: The request's own parameters, which win.
            body: JSON of the request, an object.
            send: Sends a body.

        Raises:
            JudgeError: That of ``send``; of the request without them where that fails as well.
        """
        missing = {name: value for name, value in self._parameters.items() if name not in params}
        if not missing or model in self._refused:
            return await send(body)
        explicit = body[:-1] + b"," + json.dumps(missing, separators=(",", ":")).encode()[1:]
        try:
            reply = await send(explicit)
        except JudgeError as error:
            if model in self._taken or error.status not in _REFUSING:
                raise
            words = str(error)
        else:
            self._taken.add(model)
            return reply
        reply = await send(body)
        if model not in self._taken and model not in self._refused:
            self._refused.add(model)
            logger.info(
                "{} is asked without {}, as it does not take them: its server's own settings are "
                "used ({})",
                model,
                ", ".join(missing),
                words,
            )
        return reply
