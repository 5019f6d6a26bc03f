"""Scoring on a Ray cluster: actors read and score parts of shards, the command writes the files."""

from __future__ import annotations

import logging
import math
import os
import pickle
import socket
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
_CONNECT_TIMEOUT_S: Final = 5.0
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
    """Score shards; see :func:`.score_here`.

    Raises:
        CaptionsError: If the judge is asked nothing more; complete files stay.
        SettingsError: If Ray or the cluster cannot be reached, the judge cannot be asked, or an
            address holds a password, which all nodes would be handed.
    """
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
    """Yield the scores of shards, in their order."""
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
            found = pickle.loads(pickled)  # noqa: S301 - of our own actors # nosec B301
            if isinstance(found, CaptionsError):
                raise JudgeStoppedError(str(found))
            yield found


class ScorerActor:
    """A scorer of one node, with a captioner if there is one.

    Args:
        shards: All shards.
        spec: The spec of this scorer.
        ledger: Shares the cost limit, ``None`` without a limit.
    """

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
    """Return rows in a table of one row, next to which others say why there are none."""
    import pyarrow as pa

    return pa.table({"rows": pa.array([pickle.dumps(found)], pa.large_binary())})


class Ledger:
    """Keeps what each scorer may spend, so that all together stay within the limit.

    Args:
        limit_usd: US dollars.
    """

    def __init__(self, limit_usd: float) -> None:
        self._limit_usd = limit_usd
        self._of_dead = 0.0
        self._spent: dict[str, float] = {}
        self._allowed: dict[str, float] = {}

    def start(self, scorer: str) -> None:
        """Take what a scorer might spend for spent, which died and starts again."""
        self._of_dead += self._allowed.pop(scorer, 0.0)
        self._spent.pop(scorer, None)

    def settle(
        self, scorer: str, spent: float, taken: float, wanted: float | None
    ) -> tuple[float, bool]:
        """Return what a scorer may spend in all, and whether others may yet give back.

        Args:
            scorer: Name of the scorer.
            spent: US dollars that it was billed.
            taken: These, and what it has set aside.
            wanted: US dollars that it would like to take, ``None`` to give back the rest.
        """
        others = [name for name in self._allowed if name != scorer]
        left = self._limit_usd - self._of_dead - sum(self._allowed[name] for name in others)
        amounts = () if wanted is None else (wanted + self._limit_usd / _SLICES, wanted)
        self._spent[scorer] = spent
        self._allowed[scorer] = next((usd for usd in amounts if usd <= left), taken)
        is_busy = any(self._allowed[name] > self._spent[name] for name in others)
        return self._allowed[scorer], is_busy

    def spent_usd(self) -> float:
        """Return US dollars that all scorers have spent."""
        return self._of_dead + sum(self._spent.values())


class LedgerPurse(Purse):
    """A scorer's part of a cost limit.

    Args:
        ledger: The ledger's actor.
    """

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
        self._allowed_usd, self._are_others_busy = ray.get(
            self._ledger.settle.remote(self._name, *figures)
        )


@contextmanager
def joined(address: str | None) -> Iterator[None]:
    """Join a Ray cluster, or start one on this machine.

    Keys of judges are never handed on: scorers find them in the environment of their node.

    Args:
        address: ``None`` starts Ray on this machine; ``auto`` or ``host:port`` joins a cluster.

    Raises:
        SettingsError: If Ray is not installed, cannot be reached or cannot start.
    """
    _require_answer(address)
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


def _require_answer(address: str | None) -> None:
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
