"""The offline stand-in: a judge of word overlap, whose replies cost nothing and are not kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Client, Reply, Request

LEXICAL: Final = "lexical"
"""Name of the offline stand-in judge."""


class LexicalClient:
    """Answers each request with the stand-in that its protocol gave it."""

    async def complete(
        self,
        request: Request,
        attempt: int,  # noqa: ARG002 - every sample is the same
        *,
        timeout_s: float,  # noqa: ARG002 - nothing is waited for
    ) -> Reply:
        """The stand-in's reply."""
        return Reply(request.stand_in(), "stop", is_final=True)

    async def close(self) -> None:
        """Nothing is open."""


OFFLINE: Final[Mapping[str, Client]] = {LEXICAL: LexicalClient()}
"""Models that need no endpoint, and who answers as them."""


def is_offline(model: str | None) -> bool:
    """Whether a model needs no endpoint: its scores are a smoke test."""
    return model in OFFLINE
