"""Requests to the models of a build, as many at once as their endpoints take."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.endpoint.adapt import added_params
from lmms_eval_captions.judges.endpoint.cost import Purse
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Chain, Message, Reply, Request
from lmms_eval_captions.judges.errors import (
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)
from lmms_eval_captions.judges.protocols.asking import object_schema, response_format
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model
from lmms_eval_captions.model_wrappers.paid_endings import finishing

R = TypeVar("R")
T = TypeVar("T")

FINISH_S: Final = 30.0
"""Longest wait for replies that are paid for when a build is stopped."""
_MAX_LOST: Final = 0.05
"""Share of a stage's requests without a reply above which the build stops."""
_MAX_REASONS: Final = 3
_PROTOCOL: Final = 1
"""Version of the readers of replies; requests of another version are sent again."""


class Tally:
    """Counts of one stage's requests, which come from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped: dict[str, str] = {}
        self._reasons: dict[str, None] = {}
        self.failures: Counter[str] = Counter()
        """Requests without a result, by kind of failure."""
        self.by_model: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        """Faults of unreadable replies, and of parts of readable ones."""

    def count(self, model: str, asked: Asked[Any]) -> None:
        """Count a request."""
        with self._lock:
            self.by_model[model] += 1
            if asked.failure is None:
                return
            # Whether it ever answered, and what stopped it, makes no difference here.
            failure = {"never": "silent", "limit": "stopped"}.get(asked.failure, asked.failure)
            self.failures[failure] += 1
            if failure in ("stopped", "silent"):
                self._stopped[failure] = str(asked.reason)
            if failure != "unreadable" and len(self._reasons) < _MAX_REASONS:
                self._reasons[str(asked.reason)[:300]] = None

    def raise_if_stopped(self, n: int) -> None:
        """Raise if a model is asked nothing more, for other reasons than a few last requests."""
        if "stopped" in self._stopped:
            raise JudgeStoppedError(self._stopped["stopped"])
        if self.failures["silent"] > max(1.0, _MAX_LOST * n):
            raise JudgeStoppedError(self._stopped["silent"])

    @property
    def n_lost(self) -> int:
        """Requests without a reply, which the next run sends again."""
        return self.failures["unavailable"] + self.failures["silent"]

    def check(self, stage: str) -> None:
        """Raise if too many requests of a stage have no reply, and log those that were refused."""
        n, n_refused = self.by_model.total(), self.failures["refused"]
        why = "; ".join(self._reasons)
        if n_refused:
            logger.warning("{}: {:,} of {:,} requests were refused: {}", stage, n_refused, n, why)
        if n and n_refused == n:
            raise JudgeRequestError(
                f"{stage}: all {n:,} requests were refused: {why}. {length_advice(why)}".rstrip()
            )
        if self.n_lost > max(1.0, _MAX_LOST * n):
            raise JudgeUnavailableError(
                f"{stage}: {self.n_lost:,} of {n:,} requests have no reply, too many to go on. "
                f"Replies are stored: rerun the same command to retry only those that failed. {why}"
            )

    def to_json(self) -> Mapping[str, object]:
        """Return the counts for the head of the stage's file."""
        failures = {kind: n for kind, n in sorted(self.failures.items()) if kind != "silent"}
        return {
            "n_requests": self.by_model.total(),
            "by_model": dict(sorted(self.by_model.items())),
            "failures": failures | ({"unavailable": self.n_lost} if self.n_lost else {}),
            "faults": dict(sorted(self.faults.items())),
            "reasons": list(self._reasons),
        }


def length_advice(reasons: str) -> str:
    """Return what to do about a context that is too short; empty for other reasons."""
    if not re.search(r"max_\w*tokens|max_model_len|context (?:length|size|window)", reasons, re.I):
        return ""
    return "Give a smaller --max-tokens, about half of the server's context, or fewer --frames"


@dataclass(frozen=True, slots=True)
class Job(Generic[R]):
    """Requests to one model that lead to one result."""

    model: Model
    chain: Chain[R]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T]):
    """One request, and the reader of its reply."""

    model: Model
    prompt: str
    """Name of the prompt."""
    messages: Sequence[Message]
    read: Callable[[Reply], T | None]
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int = 256
    keys: Sequence[str] = ()
    """Keys of each item, if the reply is a list of objects."""

    def job(self, timeout_s: float, *, is_structured: bool) -> Job[Asked[T]]:
        """Return the job that sends the request."""
        text, schema = {"type": "string"}, dict[str, object]()
        if is_structured and self.keys:
            texts = {"type": "array", "items": text}
            item = object_schema(**{k: texts if k == "options" else text for k in self.keys})
            items = object_schema(items={"type": "array", "items": item})
            schema = {"response_format": response_format(self.prompt, items)}
        request = Request(
            protocol=f"{self.prompt}:{_PROTOCOL}",
            model=self.model.name,
            messages=self.messages,
            params={"temperature": self.temperature, "max_tokens": self.max_tokens, **schema},
            seed=self.seed,
            timeout_s=timeout_s,
            stand_in=str,
        )

        return Job(self.model, lambda ask: ask(request, self.read))


class ModelPool:
    """One engine per endpoint; all of them share one cost limit."""

    def __init__(self, settings: JudgeSettings, max_cost_usd: float | None) -> None:
        self._settings = settings
        self._max_cost_usd = max_cost_usd
        self._purse = Purse()
        self._engines: dict[tuple[object, ...], Engine] = {}
        self._closed = Totals()
        """Totals of engines that were closed."""

    def run(self, jobs: Iterable[Job[R]], tally: Tally, *, n: int, what: str) -> list[R]:
        """Return the results of jobs, in their order; they are made as there is room for them."""
        room = threading.BoundedSemaphore(2 * self._settings.concurrency)
        futures: list[Future[list[R]]] = []
        with finishing(self._finish), tqdm(total=n, desc=what, unit="", disable=None) as bar:

            def done(_: Future[list[R]]) -> None:
                room.release()
                bar.update()

            for job in jobs:
                room.acquire()
                tally.raise_if_stopped(n)
                future = self._engine(job.model).submit([partial(_counted, job.chain, tally)])
                futures.append(future)
                future.add_done_callback(done)
            results = [future.result()[0] for future in futures]
        tally.raise_if_stopped(n)
        if tally.failures["silent"]:
            # A stopped engine asks nothing more: the next stage gets new ones.
            for engine in self._engines.values():
                engine.close()
            self._closed, self._engines = self.totals, {}
        return results

    @property
    def totals(self) -> Totals:
        """Counts and cost of all requests so far."""
        return sum((engine.totals() for engine in self._engines.values()), self._closed)

    def close(self) -> None:
        """Close, once the replies under way have arrived."""
        for engine in self._engines.values():
            engine.close(FINISH_S)

    def _finish(self) -> None:
        """Store the replies under way, which are paid for, and send nothing more."""
        if n := sum(engine.n_in_flight for engine in self._engines.values()):
            logger.warning(
                "stopping: waiting up to {:.0f} s for {} requests that are paid for; press Ctrl-C "
                "again to stop at once. Replies are stored, and the same command resumes",
                FINISH_S,
                n,
            )
        self.close()

    def _engine(self, model: Model) -> Engine:
        endpoint, settings = model.endpoint, self._settings
        key = (endpoint.urls, endpoint.api, endpoint.api_key, endpoint.alias)
        if key not in self._engines:
            config = EngineConfig(
                urls=endpoint.urls,
                store=settings.cache / "build_replies",
                api=endpoint.api,
                api_key=endpoint.api_key,
                concurrency=settings.concurrency,
                max_rate=settings.rate if endpoint == settings.endpoint else None,
                store_by=settings.store_by,
                ask_again=settings.ask_again,
                max_cost_usd=self._max_cost_usd,
                purse=self._purse,
                prices=settings.prices,
                role="builder",
                alias=endpoint.alias,
                added_params=added_params(endpoint.urls, endpoint.api),
            )
            self._engines[key] = Engine(config)
        return self._engines[key]


async def _counted(chain: Chain[R], tally: Tally, ask: Ask) -> R:
    """Return a chain's result, and count each of its requests."""

    async def counted(request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        asked = await ask(request, read)
        tally.count(request.model, asked)
        return asked

    return await chain(counted)
