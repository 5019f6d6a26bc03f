"""Settings of an engine, and where replies are kept."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.cost import JudgeMode, Purse
from lmms_eval_captions.judges.endpoint.failures import Role
from lmms_eval_captions.judges.endpoint.urls import endpoint_names

CACHE_VARIABLE: Final = "LMMS_CAPTIONS_CACHE"
DEFAULT_CACHE: Final = "~/.cache/lmms-eval-captions"
StoreBy = Literal["model", "endpoint"]
"""Stored replies that are used: those of the model's name, or those of the endpoint alone."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the cache folder.

    Args:
        environ: Variables to read (default: the process's own).
    """
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
    """How long a provider that does not answer is waited for."""
    backoff_s: float = 1.0
    most_wait_s: float = 48 * 3600.0
    """Age at which a batch is not waited for any more; they end within 24 hours."""
    max_requests: int = 50_000
    """Of one batch."""
    max_bytes: int = 100_000_000


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of an engine."""

    urls: tuple[str, ...]
    store: Path
    """Folder of the stored replies."""
    api_key: str | None = field(default=None, repr=False)
    api: str = "openai"
    concurrency: int = 64
    """Most requests in flight, >= 1."""
    max_rate: float | None = None
    """Most requests a second, all addresses together, > 0, or ``None``."""
    n_rereads: int = 3
    """Fresh samples after an unreadable reply."""
    store_by: StoreBy = "model"
    ask_again: bool = False
    """Whether requests whose stored replies are all unreadable are asked anew."""
    n_attempts: int = 7
    """Attempts at a request that fails, except with 429."""
    patience_s: float = 900.0
    """How long a request is sent again after 429."""
    outage_patience_s: float = 300.0
    """How long an endpoint that answered before may be gone."""
    outage_is_final: bool = True
    """Whether an outage ends judging; else the next captions are tried after it."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubles with each, up to ``max_backoff_s``."""
    max_backoff_s: float = 30.0
    store_patience_s: float = 60.0
    """How long a reply that cannot be written is held before judging stops."""
    progress: bool = False
    """Whether to draw a progress bar."""
    mode: JudgeMode = "now"
    batch_pace: BatchPace = field(default_factory=BatchPace)
    max_cost_usd: float | None = None
    """Most US dollars this engine may be billed, or ``None``."""
    prices: Path | None = None
    """The user's price file."""
    purse: Purse | None = None
    """Spending that is shared with other engines."""
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
