"""The address, API and key of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.redaction import Key
from lmms_eval_captions.judges.endpoint.urls import (
    endpoint_names,
    is_http,
    is_loopback,
    proxy_of,
    redact_url,
)
from lmms_eval_captions.judges.errors import SettingsError


def parse_key(setting: str, value: str) -> Key:
    """Return a key that can be sent in a header.

    Args:
        setting: The variable that holds it, for messages.
        value: Its value.

    Raises:
        SettingsError: If it cannot stand in a header.
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
    """An endpoint: one server or several replicas.

    Raises:
        SettingsError: If there is no URL, or one of them is none.
    """

    urls: tuple[str, ...]
    """Base URLs of the replicas, without trailing slashes, at least one."""
    api: str = OPENAI.name
    api_key: Key | None = field(default=None, repr=False)
    key_name: str = OPENAI.key_variables[0]
    """Variable that holds the key, for messages."""
    alias: str | None = None
    """Name under which the endpoint answers as the model, if it differs."""

    def __post_init__(self) -> None:
        n_usable = sum(map(is_http, self.urls))
        if not self.urls or n_usable < len(self.urls):
            # A text that is not a URL may hold a password anywhere.
            raise SettingsError(
                "endpoint: expected at least one URL such as http://127.0.0.1:8000/v1, and no "
                f"other text, got {n_usable} of {len(self.urls)}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its addresses, as in stored replies."""
        return endpoint_names(self.urls)

    @property
    def local_url(self) -> str | None:
        """First URL that names this machine."""
        return next(filter(is_loopback, self.urls), None)

    def require_access(self, who: str, advice: str) -> None:
        """Raise if the endpoint would be called without a key, or cannot be called.

        Args:
            who: Start of the message, before the URL: ``the judge at``.
            advice: What to do if the key is missing.

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
