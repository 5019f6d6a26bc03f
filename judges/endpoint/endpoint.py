"""Endpoints, models and settings of an engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.cost import JudgeMode, Purse
from lmms_eval_captions.judges.endpoint.dialects import OPENAI
from lmms_eval_captions.judges.endpoint.failures import Role
from lmms_eval_captions.judges.endpoint.urls import (
    Key,
    endpoint_names,
    is_loopback,
    proxy_of,
    redact_url,
)
from lmms_eval_captions.judges.errors import SettingsError


def parse_key(setting: str, value: str) -> Key:
    """Return a key that can be sent in a header."""
    if not (value.isascii() and value.isprintable()):
        # aiohttp's error for what cannot be sent in a header holds the whole header.
        raise SettingsError(
            f"{setting}: expected printable ASCII characters, got a key with others in it (a "
            "line end, a typographic hyphen); copy it again"
        )
    return Key(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint: one server or several replicas."""

    urls: tuple[str, ...]
    """Base URLs of the replicas, without trailing slashes, at least one."""
    api: str = OPENAI.name
    api_key: Key | None = field(default=None, repr=False)
    key_name: str = OPENAI.key_variables[0]
    """Variable that holds the key, for messages."""
    alias: str | None = None
    """Name under which the endpoint answers as the model, if it differs."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its addresses, as in stored replies."""
        return endpoint_names(self.urls)

    def require_access(self, who: str, advice: str) -> None:
        """Raise if the endpoint would be called without a key, or cannot be called."""
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


CACHE_VARIABLE: Final = "LMMS_CAPTIONS_CACHE"
DEFAULT_CACHE: Final = "~/.cache/lmms-eval-captions"
StoreBy = Literal["model", "endpoint"]
"""Stored replies that are used: those of the model's name, or those of the endpoint alone."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the cache folder."""
    env = os.environ if environ is None else environ
    return Path(env.get(CACHE_VARIABLE, "").strip() or DEFAULT_CACHE).expanduser()


@dataclass(frozen=True, slots=True)
class BatchPace:
    """Waits and sizes of the Batch API."""

    quiet_s: float = 5.0
    """A batch is submitted when no new request came for so long."""
    first_poll_s: float = 10.0
    """Wait before a batch is looked at again; grows by half each time."""
    most_poll_s: float = 300.0
    patience_s: float = 6 * 3600.0
    """Time to wait for a provider that does not answer."""
    most_wait_s: float = 48 * 3600.0
    """Age at which a batch is not waited for any more; they end within 24 hours."""
    max_requests: int = 50_000
    max_bytes: int = 100_000_000


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of an engine."""

    urls: tuple[str, ...]
    store: Path
    api_key: str | None = field(default=None, repr=False)
    api: str = "openai"
    concurrency: int = 64
    max_rate: float | None = None
    """Most requests a second, all addresses together."""
    n_rereads: int = 3
    """Fresh samples after an unreadable reply."""
    store_by: StoreBy = "model"
    ask_again: bool = False
    """If every stored reply to a request is unreadable, ask it again."""
    n_attempts: int = 7
    """Attempts at a request that fails, except with 429."""
    patience_s: float = 900.0
    """Time for which a request is sent again after a 429."""
    outage_patience_s: float = 300.0
    """Time for which an endpoint that has answered before may be unreachable."""
    outage_is_final: bool = True
    """An outage ends judging; otherwise the next captions are tried after it."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubles with each, up to ``max_backoff_s``."""
    max_backoff_s: float = 30.0
    store_patience_s: float = 60.0
    """Time for which a reply that cannot be written is held."""
    progress: bool = False
    mode: JudgeMode = "now"
    batch_pace: BatchPace = field(default_factory=BatchPace)
    max_cost_usd: float | None = None
    prices: Path | None = None
    purse: Purse | None = None
    spent_usd: float = 0.0
    """US dollars of ``max_cost_usd`` that an earlier engine was billed."""
    role: Role = "judge"
    alias: str | None = None
    """Name under which the endpoint answers as the model, if it differs."""
    added_params: Mapping[str, object] = field(default_factory=dict)
    """Parameters that are added to every request if the endpoint takes them; not in the key."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Names of the endpoint's addresses, as in stored replies."""
        return endpoint_names(self.urls)

    @property
    def batches(self) -> Path:
        """Folder of the ledger of batches."""
        return self.store.with_name("batches")
