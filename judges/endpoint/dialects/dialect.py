"""What an API is to a client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from lmms_eval_captions.judges.endpoint.answers.failures import ApiWords, failure
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.endpoint.roles import Role
from lmms_eval_captions.judges.errors import JudgeError


class Dialect(ABC):
    """How one API is asked and read: paths, key, encoding, replies, words of errors."""

    not_taken: tuple[str, ...] = ()
    """Parameters that no model takes there."""
    words: ApiWords
    """How its errors are told."""

    @abstractmethod
    def completions_url(self, url: str) -> str:
        """Where requests are posted, from a base URL."""

    @abstractmethod
    def models_url(self, url: str) -> str:
        """What lists the models."""

    @abstractmethod
    def headers(self, api_key: str | None) -> dict[str, str]:
        """What every request carries."""

    @abstractmethod
    def encode(self, request: Request, attempt: int) -> bytes:
        """A request as it goes over the wire.

        Raises:
            JudgeRequestError: If it holds what cannot be sent.
        """

    @abstractmethod
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
        """The error that an answer other than 200 is.

        Args:
            status: HTTP status.
            raw: Body of the answer.
            url: Where from, for messages.
            headers: Of the answer.
            api_key: What must not be in the message, should the server echo it.
            role: What is asked, for messages.
        """
        words = self.words
        return failure((status, raw), url, words=words, headers=headers, api_key=api_key, role=role)
