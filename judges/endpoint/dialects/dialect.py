"""The interface of an API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from lmms_eval_captions.judges.endpoint.failures import Source
from lmms_eval_captions.judges.endpoint.request import Reply, Request


class Dialect(ABC):
    """One API: addresses, keys, encoding of requests, reading of replies."""

    name: ClassVar[str]
    """Value of ``LMMS_CAPTIONS_JUDGE_API``."""
    key_variables: ClassVar[tuple[str, ...]]
    """Variables that hold the key; the first one that is set counts."""
    url_variables: ClassVar[tuple[str, ...]] = ()
    """Variables that hold the address if ``LMMS_CAPTIONS_JUDGE_URL`` is not set."""
    default_url: ClassVar[str] = ""
    """Address if no variable is set; empty if there is none."""
    not_taken: ClassVar[tuple[str, ...]] = ()
    """Parameters that the API does not have."""
    names_models: ClassVar[bool] = True
    """Whether replies carry the name that was asked for; Azure's have the model's own."""

    @classmethod
    def is_address(cls, url: str) -> bool:  # noqa: ARG003 - of APIs with addresses of their own
        """Return whether a URL is recognised as this API's."""
        return False

    @abstractmethod
    def completions_url(self, url: str) -> str:
        """Return the address that requests are posted to."""

    @abstractmethod
    def models_url(self, url: str) -> str:
        """Return the address of the list of models."""

    @abstractmethod
    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the headers of every request."""

    @abstractmethod
    def encode(self, request: Request, attempt: int) -> bytes:
        """Return a request's body.

        Raises:
            JudgeRequestError: If it holds what cannot be sent.
        """

    @abstractmethod
    def read_reply(self, raw: bytes, source: Source) -> Reply:
        """Read an answer of 200.

        Raises:
            JudgeError: If there is no reply in it.
        """
