"""Scores shards on a Ray cluster: tables are read and written here, and scored by actors."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import CaptionsError, JudgeStoppedError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.local_engine import Scoring
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import Failure, ScoreFile, Shard
from lmms_eval_captions.lmms_eval_tasks.commands.score.table_scorer import TableScorer, schema_of
from lmms_eval_captions.lmms_eval_tasks.commands.score.writing_captions import TableCaptioner
from lmms_eval_captions.lmms_eval_tasks.reasons import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec

_TABLE_ROWS: Final = 64
_AHEAD: Final = 8
"""Rows that a scorer has at once, as a multiple of its requests in flight."""
_THREADS: Final = 64
"""Tables that a scorer may have at once."""
_LEAST: Final = 0.05
"""Share of a limit of cost that is too small to be divided again."""
_START_S: Final = 600.0
_CONNECT_TIMEOUT_S: Final = 5.0
_MIN_CPUS: Final = 4
_CPUS_OF_ACTOR: Final = 0.01
"""Scorers wait for the judge: as many as are asked for find room on any node."""
_QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Errors of tables that were behind the first one that failed.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Ray cluster, and the number of actors."""

    address: str | None = None
    """``auto`` or ``host:port``; ``None`` for this machine."""
    n_actors: int | None = None
    """Scorers (default: one per node)."""
    n_caption_actors: int = 1
    n_gpus: float = 0.0
    """GPUs of each captioner."""


def score_on_ray(
    shards: Sequence[Shard],
    spec: ScoreSpec,
    on_done: Callable[[ScoreFile], None],
    cluster: Cluster,
) -> list[Failure]:
    """Score shards; one that fails does not affect the others. See :func:`.score_here`.

    Args:
        shards: The files.
        spec: Settings, with the limits of all scorers together.
        on_done: Called with each file of scores that is in place.
        cluster: The cluster.

    Returns:
        Shards that failed.

    Raises:
        CaptionsError: If the judge is asked nothing more; complete files stay.
        SettingsError: If Ray or the cluster cannot be reached, the judge cannot be asked, or an
            address holds a password, which would be handed to all nodes.
    """
    _require_no_passwords(spec)
    limit_usd, spent_usd = spec.settings.get("max_cost_usd"), 0.0
    failures: list[Failure] = []
    left = list(shards)

    def done(file: ScoreFile) -> None:
        left.remove(file.shard)
        on_done(file)

    with joined(cluster.address):
        while True:
            scorer = _RayScorer(spec, cluster)
            try:
                scoring = Scoring(scorer, None, done, n_rows=_TABLE_ROWS, n_ahead=scorer.n_ahead)
                return [*failures, *scoring.score(list(left))]
            except CaptionsError as error:
                if limit_usd is None or kind_of(str(error)) != "limit":
                    raise
            finally:
                scorer.close()
            # One scorer has spent its part: the rest of all parts is divided anew.
            spent_usd += scorer.spent_usd
            left_usd = limit_usd - spent_usd
            is_alone = cluster.n_actors == 1
            if (is_alone and not scorer.spent_usd) or left_usd < _LEAST * limit_usd:
                raise JudgeStoppedError(_limit_words(spent_usd, limit_usd))
            if not scorer.spent_usd:
                cluster = replace(cluster, n_actors=1)
            spec = spec.with_settings(max_cost_usd=left_usd)


class _RayScorer:
    """Scorers of a cluster, used like one :class:`.TableScorer`."""

    def __init__(self, spec: ScoreSpec, cluster: Cluster) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.spec = spec
        self.schema = schema_of(spec)
        self.spent_usd = 0.0
        """US dollars that all scorers have spent, once they are closed."""
        n = cluster.n_actors or _n_nodes()
        part = spec.divided(n)
        self.n_ahead = n * (2 + _AHEAD * part.concurrency // _TABLE_ROWS)
        # On this node, without which there is no run: it outlives scorers that are killed.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        remote: Any = ray.remote
        self._spending = remote(_Spending).options(num_cpus=0, scheduling_strategy=here).remote()
        lasting = {"max_restarts": -1, "max_task_retries": -1}
        scorers = remote(ScorerActor).options(
            num_cpus=_CPUS_OF_ACTOR, max_concurrency=_THREADS, **lasting
        )
        self._actors = [scorers.remote(part, index, self._spending) for index in range(n)]
        self._n_pending = [0] * n
        self._captioners: list[Any] = []
        if spec.captioning is not None:
            captioners = remote(CaptionActor).options(
                num_cpus=0 if cluster.n_gpus else _CPUS_OF_ACTOR, num_gpus=cluster.n_gpus, **lasting
            )
            self._captioners = [captioners.remote(spec) for _ in range(cluster.n_caption_actors)]
        self._n_submitted = 0
        try:
            opened = [actor.open.remote() for actor in (*self._actors, *self._captioners)]
            _result(opened, timeout=_START_S)
        except ray.exceptions.GetTimeoutError as error:
            raise SettingsError(
                f"--actors {n}: the cluster has no room for them: {error}"
            ) from error

    def submit(self, table: pa.Table) -> Callable[[], pa.Table]:
        """Hand rows to the least busy scorer; see :meth:`.TableScorer.submit`."""
        rows: Any = table
        if self._captioners:
            captioner = self._captioners[self._n_submitted % len(self._captioners)]
            rows = captioner.fill.remote(table)
        self._n_submitted += 1
        index = min(range(len(self._actors)), key=self._n_pending.__getitem__)
        self._n_pending[index] += 1
        scored = self._actors[index].score.remote(rows)

        def wait() -> pa.Table:
            try:
                return _result(scored)
            finally:
                self._n_pending[index] -= 1

        return wait

    def close(self) -> None:
        """End the actors; scorers end their requests first."""
        import ray

        with suppress(ray.exceptions.RayError):
            ray.get([actor.close.remote() for actor in self._actors], timeout=60.0)
        with suppress(ray.exceptions.RayError):
            self.spent_usd = ray.get(self._spending.total.remote(), timeout=60.0)
        for actor in (*self._actors, *self._captioners, self._spending):
            ray.kill(actor)


class ScorerActor:
    """A scorer of one node, to which several threads hand tables.

    Args:
        spec: The settings of this scorer.
        index: Number of the scorer, the same if it is started again.
        spending: Keeps what was spent.
    """

    def __init__(self, spec: ScoreSpec, index: int, spending: Any) -> None:  # noqa: ANN401 - of Ray
        self._spec = spec
        self._index = index
        self._spending = spending
        self._lock = Lock()
        self._scorer: TableScorer | None = None

    def open(self) -> None:
        """Make the scorer; a method, as Ray loses the cause of what a constructor raises."""
        self._opened()

    def score(self, table: pa.Table) -> pa.Table:
        """Return the scores of a table."""
        scorer = self._opened()
        try:
            return scorer.submit(table)()
        finally:
            self._report(scorer)

    def close(self) -> None:
        """Close the scorer; what its last requests cost is known only then."""
        with self._lock:
            if self._scorer is not None:
                self._scorer.close()
                self._report(self._scorer)

    def _report(self, scorer: TableScorer) -> None:
        _result(self._spending.spend.remote(self._index, scorer.spent_usd - self._spec.spent_usd))

    def _opened(self) -> TableScorer:
        with self._lock:
            if self._scorer is None:
                spent_usd = self._spec.spent_usd + _result(self._spending.by.remote(self._index))
                self._scorer = TableScorer(replace(self._spec, spent_usd=spent_usd))
            return self._scorer


class CaptionActor:
    """A captioner that writes missing captions.

    Args:
        spec: The settings.
    """

    def __init__(self, spec: ScoreSpec) -> None:
        self._spec = spec
        self._captioner: TableCaptioner | None = None

    def open(self) -> None:
        """Load the model."""
        if self._captioner is None and self._spec.captioning is not None:
            self._captioner = TableCaptioner(self._spec, self._spec.captioning)

    def fill(self, table: pa.Table) -> pa.Table:
        """Return a table with its captions."""
        self.open()
        return table if self._captioner is None else self._captioner.fill(table)


class _Spending:
    """US dollars that each scorer has spent, over all its starts."""

    def __init__(self) -> None:
        self._usd: dict[int, float] = {}

    def by(self, index: int) -> float:
        return self._usd.get(index, 0.0)

    def spend(self, index: int, usd: float) -> None:
        # Threads of one scorer come in any order.
        self._usd[index] = max(usd, self.by(index))

    def total(self) -> float:
        return sum(self._usd.values())


def _result(reference: Any, timeout: float | None = None) -> Any:  # noqa: ANN401 - of Ray
    """Return what an actor's method returned, or raise what it raised."""
    import ray

    try:
        return ray.get(reference, timeout=timeout)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CaptionsError):
            raise error.cause from None
        raise


@contextmanager
def joined(address: str | None) -> Iterator[None]:
    """Join a Ray cluster, or start one on this machine.

    Keys of judges are never handed on: scorers find them in the environment of their node.

    Args:
        address: ``None`` starts Ray on this machine; ``auto`` or ``host:port`` joins a cluster.

    Raises:
        SettingsError: If Ray is not installed or cannot be reached.
    """
    _check_that_it_listens(address)
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
        # Actors wait for the judge: a small machine has room for some.
        n_cpus = max(_MIN_CPUS, os.cpu_count() or 1)
        options |= {"num_cpus": n_cpus, "include_dashboard": False}
    try:
        ray.init("local" if address is None else address, **options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise SettingsError(
            f"--address {address or 'of this machine'}: Ray could not be reached: {error}; "
            "RAY_AUTH_MODE (token or disabled) must be here what it is there"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _check_that_it_listens(address: str | None) -> None:
    # Ray itself tries for minutes.
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdecimal() or "://" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"--address {address}: expected the head of a Ray cluster, got no answer: {error}"
        ) from error


def _n_nodes() -> int:
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call] # Ray leaves it untyped
    return max(1, len([node for node in nodes if node["Alive"] and "CPU" in node["Resources"]]))


def _limit_words(spent_usd: float, limit_usd: float) -> str:
    return (
        f"LMMS_CAPTIONS_MAX_COST: ${spent_usd:.4f} of ${limit_usd:g} are spent, by all scorers "
        "together, and one more request may cost more than a scorer's part of the rest. Files that "
        "are scored stay, replies of the others are kept: run the same command again with a higher "
        "limit"
    )


def _require_no_passwords(spec: ScoreSpec) -> None:
    for name, value in spec.settings.items():
        if name.endswith("url") and "@" in str(value or ""):
            raise SettingsError(
                f"--engine ray: expected an address of the judge without a user or password "
                f"({name}), as settings are handed to all nodes; set the key in the environment of "
                "each node"
            )
