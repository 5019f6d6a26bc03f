"""Sampling parameters that are sent so that a server's own defaults do not take their place.

vLLM fills what a request leaves out from the checkpoint's ``generation_config.json``; llama.cpp has
defaults of its own (``top_k`` 40, ``top_p`` 0.95, ``min_p`` 0.05) and takes others from the GGUF
file. So the same judge would answer otherwise on another server, at temperature 0 too where a
repetition penalty is among them. The values sent here are those that change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from loguru import logger

from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import Api
from lmms_eval_captions.judges.endpoint.urls import is_self_hosted
from lmms_eval_captions.judges.errors import BROKEN_OFF, JudgeError, JudgeUnavailableError

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
_FAILED: Final = 500
"""Status that is about a parameter only where it names one."""
_ENOUGH: Final = 3
"""Connections that are broken off with them, where the same is answered without, until they are
taken for the cause: mlx_lm.server ends a connection so where ``top_k`` is negative."""

Send = Callable[[Request], Awaitable[Reply]]


def explicit_sampling(urls: Sequence[str], api: Api = "openai") -> Mapping[str, object]:
    """What is sent explicitly to these endpoints: nothing where one is a provider's.

    Providers have no defaults of a checkpoint, and refuse what OpenAI's API does not name.
    """
    return NEUTRAL if api == "openai" and all(map(is_self_hosted, urls)) else {}


class ExplicitSampling:
    """Sends parameters explicitly to the models that take them.

    Args:
        parameters: Their names and values; empty to send nothing.
        n_replicas: Servers that share the requests; one may take what another does not.
    """

    def __init__(self, parameters: Mapping[str, object], *, n_replicas: int = 1) -> None:
        self._parameters = parameters
        self._n_replicas = n_replicas
        self._taken: set[str] = set()
        self._refused: set[str] = set()
        self._n_broken_off: Counter[str] = Counter()

    async def send(self, request: Request, *, send: Send) -> Reply:
        """The reply to a request that is sent with those parameters that it does not set itself.

        As long as none of a model's requests was answered with them, one that is refused is sent
        once more without; where that is answered, they are left out from then on. Later one is
        where another replica may not take them, or where the refusal names one of them.

        Args:
            request: The request, whose own parameters win.
            send: Sends a request.

        Raises:
            JudgeError: That of ``send``; of the request without them where that fails as well.
        """
        model = request.model
        missing = {
            name: value for name, value in self._parameters.items() if name not in request.params
        }
        if not missing or model in self._refused:
            return await send(request)
        try:
            reply = await send(request.sent_otherwise(beside=missing))
        except JudgeError as error:
            if not self._may_be_refused(model, error, missing):
                raise
            failed = error
        else:
            self._taken.add(model)
            return reply
        reply = await send(request)
        self._n_broken_off[model] += self._is_broken_off(failed)
        is_cause = not self._is_broken_off(failed) or self._n_broken_off[model] >= _ENOUGH
        if is_cause and model not in self._taken and model not in self._refused:
            self._refused.add(model)
            logger.info(
                "{} is asked without {}, as it does not take them: its server's own settings are "
                "used ({})",
                model,
                ", ".join(missing),
                failed,
            )
        return reply

    def _may_be_refused(self, model: str, error: JudgeError, names: Iterable[str]) -> bool:
        is_refusal, is_named = error.status in _REFUSING, any(name in str(error) for name in names)
        # A server of a few lines of Python fails where it is handed what it does not expect.
        if is_named and (is_refusal or error.status == _FAILED):
            return True
        if model not in self._taken:
            return is_refusal or self._is_broken_off(error)
        return is_refusal and self._n_replicas > 1

    @staticmethod
    def _is_broken_off(error: JudgeError) -> bool:
        return isinstance(error, JudgeUnavailableError) and error.kind == BROKEN_OFF
