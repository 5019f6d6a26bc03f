"""What an API is to a client, and which there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from lmms_eval_captions.judges.endpoint.dialects.anthropic import ANTHROPIC
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import Api, Role
from lmms_eval_captions.judges.errors import JudgeError


class Dialect(Protocol):
    """How one API is asked and read: paths, key, encoding, replies, words of errors."""

    not_taken: tuple[str, ...]
    """Parameters that no model takes there."""

    def completions_url(self, url: str) -> str:
        """Where requests are posted, from a base URL."""

    def models_url(self, url: str) -> str:
        """What lists the models."""

    def headers(self, api_key: str | None) -> dict[str, str]:
        """What every request carries."""

    def encode(self, request: Request, attempt: int) -> bytes:
        """A request as it goes over the wire.

        Raises:
            JudgeRequestError: If it holds what cannot be sent.
        """

    def read_reply(
        self, raw: bytes, url: str, api_key: str | None, *, role: Role = "judge"
    ) -> Reply:
        """The reply in an answer of 200.

        Raises:
            JudgeUnavailableError: If there is none.
        """

    def failure(
        self,
        status: int,
        raw: bytes,
        url: str,
        *,
        headers: Mapping[str, str],
        api_key: str | None,
        role: Role = "judge",
    ) -> JudgeError:
        """The error that an answer other than 200 is."""


DIALECTS: Final[Mapping[Api, Dialect]] = {"openai": OPENAI, "anthropic": ANTHROPIC}
"""Each API that is spoken."""
