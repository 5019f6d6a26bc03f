"""Scoring on a Ray cluster: actors read and score parts of shards, the command writes the files."""

from __future__ import annotations

import logging
import math
import os
import pickle  # of our own actors # nosec B403
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.endpoint.cost import LIMIT_REACHED, Purse
from lmms_eval_captions.judges.errors import CaptionsError, JudgeStoppedError, SettingsError
from lmms_eval_captions.scorer.parquet import Shard, read_part, write_scores
from lmms_eval_captions.scorer.table import ScoreSpec, TableScorer

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.scorer.table import Rows

_LEAST_ROWS: Final = 64
"""Rows of a part of the work, if there are so many."""
_PARTS: Final = 8
"""Parts of the work for each actor, at least, if there are enough rows."""
_SLICES: Final = 50
"""Slices of the cost limit, of which an actor has one ahead."""
_MIN_CPUS: Final = 4
_CPUS_OF_ACTOR: Final = 0.01
"""Actors wait for the judge: any number of them fits on a node."""
_QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster, and the number of actors."""

    address: str | None = None
    """``auto`` or ``host:port``; ``None`` for this machine."""
    n_actors: int | None = None
    """Scorers, each with a captioner if there is one (default: one per node)."""
    n_gpus: float = 0.0
    """GPUs of each actor."""


def score_on_ray(
    shards: Sequence[Shard],
    spec: ScoreSpec,
    on_done: Callable[[Shard, int], None],
    cluster: Cluster,
) -> dict[Path, str]:
    """Score shards; see :func:`.score_here`. No address may hold a password, as nodes get it."""
    for name, value in spec.settings.items():
        if name.endswith("url") and "@" in str(value or ""):
            raise SettingsError(
                f"--engine ray: expected an address of the judge without a user or password "
                f"({name}), as settings are handed to all nodes; set the key in the environment of "
                "each node"
            )
    with joined(cluster.address):
        import ray

        limit_usd = spec.settings.get("max_cost_usd")
        remote: Any = ray.remote
        ledger = None if limit_usd is None else remote(Ledger).options(num_cpus=0).remote(limit_usd)
        failures: dict[Path, str] = {}
        try:
            write_scores(shards, spec, _results(shards, spec, cluster, ledger), failures, on_done)
        except JudgeStoppedError as error:
            if ledger is None or not str(error).startswith(LIMIT_REACHED):
                raise
            spent_usd = ray.get(ledger.spent_usd.remote())
            raise JudgeStoppedError(
                f"LMMS_CAPTIONS_MAX_COST: ${spent_usd:.4f} of ${limit_usd:g} are spent, by all "
                "scorers together, and one more request may cost more than the rest. Files that "
                "are scored stay, replies of the others are kept: run the same command again with "
                "a higher limit"
            ) from error
        return failures


def _results(
    shards: Sequence[Shard],
    spec: ScoreSpec,
    cluster: Cluster,
    ledger: Any,  # noqa: ANN401 - an actor
) -> Iterator[Rows]:
    import ray.data

    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    n = cluster.n_actors or _n_nodes()
    size = max(_LEAST_ROWS, math.ceil(sum(shard.n_rows for shard in shards) / (_PARTS * n)))
    parts = [
        {"number": number, "start": start, "stop": min(shard.n_rows, start + size)}
        for number, shard in enumerate(shards)
        for start in range(0, max(1, shard.n_rows), size)
    ]
    n = min(n, len(parts))
    data: Any = ray.data.from_items(parts, override_num_blocks=len(parts))
    data = data.map_batches(
        ScorerActor,
        fn_constructor_args=(shards, spec.divided(n), ledger),
        batch_size=None,
        batch_format="pyarrow",
        concurrency=n,
        num_cpus=0 if cluster.n_gpus else _CPUS_OF_ACTOR,
        num_gpus=cluster.n_gpus,
    )
    for table in data.iter_batches(batch_size=None, batch_format="pyarrow"):
        for pickled in table["rows"].to_pylist():
            found = pickle.loads(pickled)  # noqa: S301 # nosec B301
            if isinstance(found, CaptionsError):
                raise JudgeStoppedError(str(found))
            yield found


class ScorerActor:
    """A scorer of one node, with a captioner if there is one; the ledger shares the cost limit."""

    def __init__(self, shards: Sequence[Shard], spec: ScoreSpec, ledger: Any) -> None:  # noqa: ANN401
        self._shards = shards
        self._spec = spec
        self._purse = None if ledger is None else LedgerPurse(ledger)
        self._scorer: TableScorer | None = None

    def __call__(self, parts: pa.Table) -> Iterator[pa.Table]:
        """Yield the scores of parts of the work, or why nothing more is scored."""
        try:
            # Not in the constructor, of whose errors Ray loses the cause.
            if self._scorer is None:
                self._scorer = TableScorer(self._spec, purse=self._purse)
            tables = (
                rows
                for part in parts.to_pylist()
                for rows in read_part(self._shards, self._spec, **part)
            )
            for rows in self._scorer.scored(tables):
                yield _packed(rows)
        except CaptionsError as error:
            yield _packed(JudgeStoppedError(str(error)))
        finally:
            if self._purse is not None:
                self._purse.settle()


def _packed(found: Rows | CaptionsError) -> pa.Table:
    import pyarrow as pa

    return pa.table({"rows": pa.array([pickle.dumps(found)], pa.large_binary())})


class Ledger:
    """Divides a cost limit among scorers: each may spend what it is allowed, slice by slice."""

    def __init__(self, limit_usd: float) -> None:
        self._limit_usd = limit_usd
        self._shares: dict[str, tuple[float, float]] = {}
        """Scorer to the US dollars that it has spent, and that it may spend."""
        self._usd_of_dead = 0.0
        """US dollars that scorers may have spent before they died."""

    def start(self, scorer: str) -> None:
        """Take what a scorer might spend for spent, which died and starts again."""
        _, allowed = self._shares.pop(scorer, (0.0, 0.0))
        self._usd_of_dead += allowed

    def settle(
        self, scorer: str, spent: float, taken: float, wanted: float | None
    ) -> tuple[float, bool]:
        """Return what a scorer may spend in all, and whether others may yet give back.

        It has spent and taken, which includes what it has set aside, US dollars; it wants to take
        more, or with ``None`` gives back the rest.
        """
        others = [share for name, share in self._shares.items() if name != scorer]
        left = self._limit_usd - self._usd_of_dead - sum(allowed for _, allowed in others)
        amounts = () if wanted is None else (wanted + self._limit_usd / _SLICES, wanted)
        allowed = next((usd for usd in amounts if usd <= left), taken)
        self._shares[scorer] = spent, allowed
        return allowed, any(may > has for has, may in others)

    def spent_usd(self) -> float:
        """Return US dollars that all scorers have spent."""
        return self._usd_of_dead + sum(spent for spent, _ in self._shares.values())


class LedgerPurse(Purse):
    """A scorer's part of a cost limit, which the ledger's actor divides."""

    def __init__(self, ledger: Any) -> None:  # noqa: ANN401 - of Ray
        import ray

        super().__init__()
        self._ledger = ledger
        self._name = ray.get_runtime_context().get_actor_id()
        self._allowed_usd = 0.0
        self._are_others_busy = False
        ray.get(ledger.start.remote(self._name))

    @property
    def is_busy(self) -> bool:
        """True if this scorer or another may yet give back."""
        return super().is_busy or self._are_others_busy

    def allows(self, taken_usd: float, limit_usd: float) -> bool:
        """Return whether so much may be taken, if need be after the ledger is asked."""
        del limit_usd
        if taken_usd > self._allowed_usd:
            self._settle(taken_usd)
        return taken_usd <= self._allowed_usd

    def settle(self) -> None:
        """Give back what is not taken."""
        with self.lock:
            self._settle(None)

    def _settle(self, wanted_usd: float | None) -> None:
        import ray

        figures = (self.spent_usd, self.taken_usd, wanted_usd)
        settled = self._ledger.settle.remote(self._name, *figures)
        self._allowed_usd, self._are_others_busy = ray.get(settled)


@contextmanager
def joined(address: str | None) -> Iterator[None]:
    """Join a Ray cluster, or start one on this machine.

    Keys of judges are never handed on: scorers find them in the environment of their node.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise SettingsError(
            f"--engine ray needs Ray ({error}): pip install 'lmms-eval-captions[ray]'"
        ) from error
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options |= {"num_cpus": max(_MIN_CPUS, os.cpu_count() or 1), "include_dashboard": False}
    try:
        ray.init("local" if address is None else address, **options)
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        if address is None:
            raise SettingsError(
                f"--engine ray: Ray could not start on this machine: {why}; see that there is room "
                "in /dev/shm and in the temporary folder, or use --engine local"
            ) from error
        raise SettingsError(
            f"--address {address}: Ray could not be reached: {why}; RAY_AUTH_MODE (token or "
            "disabled) must be here what it is there"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _n_nodes() -> int:
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call] # Ray leaves it untyped
    return max(1, len([node for node in nodes if node["Alive"] and "CPU" in node["Resources"]]))
