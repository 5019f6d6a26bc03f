"""Endpoints, models and settings of an engine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from lmms_eval_captions.judges.endpoint.cost import JudgeMode, Purse
from lmms_eval_captions.judges.endpoint.dialects import OPENAI, api_of
from lmms_eval_captions.judges.endpoint.failures import Role
from lmms_eval_captions.judges.endpoint.urls import (
    Key,
    endpoint_names,
    is_http,
    is_loopback,
    parse_urls,
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


_HOW: Final = (
    "expected names of models, separated by commas, each with the address of its endpoint where it "
    "is another one than LMMS_CAPTIONS_JUDGE_URL's, and the variable that holds its key, where it "
    "needs one: gpt-4o,qwen@http://127.0.0.1:8000/v1,m@https://host/v1#MY_KEY"
)
_AT: Final = re.compile(r"@\s*(?=https?:)", re.IGNORECASE)
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_NO_VARIABLE: Final = "the variable behind its address"
"""Stands for the variable of a key, in messages, where none is named."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model behind an endpoint."""

    name: str
    endpoint: Endpoint


def parse_models(
    option: str, text: str, endpoint: Endpoint, environ: Mapping[str, str] | None = None
) -> tuple[Model, ...]:
    """The models that an option names, in its order.

    Args:
        option: The option, for messages.
        text: ``NAME[@URL[#VARIABLE]][,...]``; replicas of an address are separated by ``;``. The
            variable holds the key that is sent there. Without it none is, but to OpenAI and to
            the usual endpoint.
        endpoint: Where models are asked that come without an address.
        environ: Variables, by default the process's own.

    Raises:
        SettingsError: If no model is named, one is named twice, or its endpoint cannot be used.
    """
    env = os.environ if environ is None else environ
    models = tuple(_model(option, part.strip(), endpoint, env) for part in text.split(","))
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise SettingsError(f"{option}: expected different models, got {', '.join(names)}")
    return models


def split_address(text: str) -> tuple[str, str]:
    """A model's name, and what stands behind it: its addresses, and the variable of its key.

    Args:
        text: ``NAME[@URL[#VARIABLE]]``; a name may hold an ``@`` of its own, such as a version's.

    >>> split_address("m@2026@http://me:secret@httpd:1/v1#KEY"), split_address("m@2026")
    (('m@2026', 'http://me:secret@httpd:1/v1#KEY'), ('m@2026', ''))
    >>> split_address("m @ HTTPS://me:secret@httpd/v1")
    ('m', 'HTTPS://me:secret@httpd/v1')
    """
    # The first one, as what stands behind it may hold a password.
    at = _AT.search(text)
    return (text[: at.start()].strip(), text[at.end() :].strip()) if at else (text.strip(), "")


def is_variable_name(text: str) -> bool:
    """Return whether a text looks like the name of a variable, and not like a key.

    >>> is_variable_name("MY_KEY"), is_variable_name("sk-secret"), is_variable_name("gsk_secret")
    (True, False, False)
    """
    return _VARIABLE.fullmatch(text) is not None


def _model(option: str, text: str, endpoint: Endpoint, environ: Mapping[str, str]) -> Model:
    name, address = split_address(text)
    if not name or "://" in name or "#" in name:
        raise SettingsError(f"{option}: {_HOW}")
    model = Model(name, _endpoint(option, address, endpoint, environ) if address else endpoint)
    is_without = address and model.endpoint.key_name == _NO_VARIABLE
    model.endpoint.require_access(
        f"{option} {model.name} at",
        f"name its variable behind the address, as in {model.name}@URL#MY_KEY"
        if is_without
        else "set it, or name a server on this machine: "
        f"{option} {model.name}@http://127.0.0.1:8000/v1",
    )
    return model


def _endpoint(option: str, address: str, usual: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    text, _, variable = address.partition("#")
    urls = parse_urls(option, text, separators=";")
    key_name = variable.strip()
    if not key_name:
        # A key goes to nobody but whom it is meant for: OPENAI_API_KEY where it would go anyway.
        if set(endpoint_names(urls)) <= set(usual.names):
            return replace(usual, urls=urls)
        is_openai = set(endpoint_names(urls)) == set(endpoint_names([OPENAI.default_url]))
        key_name = OPENAI.key_variables[0] if is_openai else _NO_VARIABLE
    elif not (is_variable_name(key_name) or key_name in environ):
        # It may be the key itself, which is not shown.
        raise SettingsError(
            f"{option}: expected the name of a variable behind an address's #, such as MY_KEY, got "
            "something else; the key itself is the variable's value"
        )
    key = environ.get(key_name, "").strip()
    return Endpoint(
        urls=urls,
        api=api_of(urls),
        api_key=parse_key(key_name, key) if key else None,
        key_name=key_name,
    )


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
    """Most requests a second, all addresses together, > 0, or ``None``."""
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
    """Time for which a reply that cannot be written is held before judging stops."""
    progress: bool = False
    mode: JudgeMode = "now"
    batch_pace: BatchPace = field(default_factory=BatchPace)
    max_cost_usd: float | None = None
    """Most US dollars this engine may be billed, or ``None``."""
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
