"""How an engine talks to its endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lmms_eval_captions.judges.endpoint.batch.client import BatchPace
from lmms_eval_captions.judges.endpoint.budget import Purse
from lmms_eval_captions.judges.endpoint.cache_folder import StoreBy
from lmms_eval_captions.judges.endpoint.prices import JudgeMode
from lmms_eval_captions.judges.endpoint.roles import Api, Role
from lmms_eval_captions.judges.endpoint.urls import endpoint_names


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Settings of an engine, as it is handed them."""

    urls: tuple[str, ...]
    store: Path
    """Folder of the stored replies."""
    api_key: str | None = field(default=None, repr=False)
    api: Api = "openai"
    """Whose API the endpoint speaks."""
    concurrency: int = 64
    """Most requests in flight, >= 1."""
    max_rate: float | None = None
    """Most requests a second, all addresses together, > 0, or ``None``."""
    n_rereads: int = 3
    """Fresh samples asked for after an unreadable reply."""
    store_by: StoreBy = "model"
    """Whose stored replies serve."""
    ask_again: bool = False
    """Whether what the store holds unreadable replies to alone is asked anew, as often again."""
    n_attempts: int = 7
    """Attempts at a request that fails, 429 excepted, while others get through."""
    patience_s: float = 900.0
    """How long one request is tried against 429 answers."""
    outage_patience_s: float = 300.0
    """How long an endpoint that answered before may be gone."""
    backoff_s: float = 0.5
    """Wait after the first failure; doubles with each, at most ``max_backoff_s``."""
    max_backoff_s: float = 30.0
    store_patience_s: float = 60.0
    """How long a reply that cannot be written is held before judging stops."""
    progress: bool = False
    """Whether to draw a progress bar."""
    mode: JudgeMode = "now"
    """Whether requests are answered at once or through the provider's Batch API."""
    batch_pace: BatchPace = field(default_factory=BatchPace)
    """Waits of the Batch API."""
    max_cost_usd: float | None = None
    """Most US dollars this engine may be billed, or ``None``."""
    prices: Path | None = None
    """File of prices that is laid over the packaged ones, or ``None``."""
    purse: Purse | None = None
    """What this engine's limit is shared with, ``None`` where it has one of its own."""
    spent_usd: float = 0.0
    """US dollars of ``max_cost_usd`` that an engine before this one was billed."""
    role: Role = "judge"
    """What is asked, for messages."""
    alias: str | None = None
    """Name under which the endpoint answers as the model that is asked for, where it differs."""
    sampling: Mapping[str, object] = field(default_factory=dict)
    """Parameters sent beside a request's own where the endpoint takes them, in no store's key; see
    :mod:`.explicit_sampling`."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Names of the endpoint's addresses, as stored replies have them."""
        return endpoint_names(self.urls)

    @property
    def serving_endpoints(self) -> tuple[str, ...] | None:
        """Names of those whose stored replies serve, ``None`` for all."""
        return self.endpoints if self.store_by == "endpoint" else None

    @property
    def batches(self) -> Path:
        """Folder in which batches are written down that were submitted."""
        return self.store.with_name("batches")
