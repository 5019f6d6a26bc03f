"""Where a model is asked: the addresses, the API behind them, and the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.roles import KEYS, Api
from lmms_eval_captions.judges.endpoint.urls import (
    endpoint_names,
    is_http,
    is_loopback,
    proxy_of,
    redact_url,
)
from lmms_eval_captions.judges.errors import SettingsError

PROVIDER_URLS: Final[Mapping[Api, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
"""Where models are asked when no other address is set."""


class Key(str):
    """A key that shows itself nowhere but where it is sent: not in a record, a list, a traceback.

    >>> [Key("sk-secret")], f"Bearer {Key('sk-secret')}"
    ([[key]], 'Bearer sk-secret')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "[key]"


def parse_key(setting: str, value: str) -> Key:
    """A key that can be sent.

    Args:
        setting: The variable that holds it, for messages.
        value: What was set.

    Raises:
        SettingsError: If it holds what cannot stand in a header.
    """
    if not (value.isascii() and value.isprintable()):
        # aiohttp's error for what cannot be sent in a header holds the whole header.
        raise SettingsError(
            f"{setting}: expected printable ASCII characters, got a key with others in it (a "
            "line end, a typographic hyphen); copy it again"
        )
    return Key(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is asked, one server or several replicas of it.

    Raises:
        SettingsError: If there is no URL, or one of them is none.
    """

    urls: tuple[str, ...]
    """Base URLs of the replicas, without a trailing slash, at least one."""
    api: Api = "openai"
    """Which API they speak."""
    api_key: Key | None = field(default=None, repr=False)
    """Key that is sent, or ``None``. Never printed."""
    key_name: str = KEYS["openai"]
    """Variable that holds the key, for messages."""
    alias: str | None = None
    """Name under which the endpoint answers as the model that is asked for, where it differs."""

    def __post_init__(self) -> None:
        n_usable = sum(map(is_http, self.urls))
        if not self.urls or n_usable < len(self.urls):
            # A text that is no URL may hold a password anywhere: it is not shown.
            raise SettingsError(
                "endpoint: expected at least one URL such as http://127.0.0.1:8000/v1, and no "
                f"other text, got {n_usable} of {len(self.urls)}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What its replies in the store are told from other endpoints' by, one for each address."""
        return endpoint_names(self.urls)

    @property
    def local_url(self) -> str | None:
        """The first URL that names this machine, if there is one."""
        return next(filter(is_loopback, self.urls), None)

    def require_access(self, who: str, advice: str) -> None:
        """Raise where the endpoint would be called without a key, or cannot be called.

        Args:
            who: What is asked, before its URL: ``the judge at``.
            advice: What to do where the key is missing.

        Raises:
            SettingsError: If a URL is not on this machine and there is neither a key nor a user in
                it, if there are both, or if the environment's proxy cannot be used.
        """
        for url in self.urls:
            has_user = urlsplit(url).username is not None
            if not (is_loopback(url) or self.api_key or has_user):
                raise SettingsError(
                    f"{who} {redact_url(url)} needs a key and {self.key_name} is not set; {advice}"
                )
            if has_user and self.api_key:
                raise SettingsError(
                    f"{who} {redact_url(url)} has a user in its URL and {self.key_name} is set: "
                    "only one of them can be sent, take the other out"
                )
            proxy_of(url)
