"""Scoring the shards on a Ray cluster: a pipeline of Ray Data, whose rows come back in order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from lmms_eval_captions.judges.errors import CaptionsError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.counted import counted
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_chunks import (
    RowCounts,
    Shard,
    chunks_in,
    unpacked,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_cluster import cluster, n_nodes
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_ledger import Ledger
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_stages import (
    CaptionActor,
    Captioner,
    Reader,
    Scorer,
    ScorerActor,
    Spec,
)

if TYPE_CHECKING:
    from ray.data import Dataset

# Of as many rows each as there are requests at once: slow rows leave no request unsent.
_PACKAGES_AT_ONCE: Final = 16
_MIN_PACKAGE_ROWS: Final = 8
_MAX_PACKAGE_ROWS: Final = 1024
_PACKAGES_PER_PART: Final = 8
_CPUS_OF_READER: Final = 1
# They wait for the judge: as many as are asked for find room on any node.
_CPUS_OF_ACTOR: Final = 0.01
_MAX_PARTS: Final = 1000
_START_S: Final = 600
"""Seconds that all actors have to start in."""


class Sink(Protocol):
    """Takes scored rows."""

    def __call__(self, path: str, table: pa.Table) -> None:
        """Take the next rows of a shard, each row once, in order, one shard after the other.

        A shard without rows is never named.
        """


@dataclass(frozen=True, slots=True)
class Captioning:
    """How captions are written that are not there."""

    make_captioner: Callable[[], Captioner]
    """Makes a captioner within its actor: a function that can be pickled."""
    n_actors: int = 1
    """Captioners at work."""
    gpus_per_actor: float = 0.0
    """GPUs of each."""


@dataclass(frozen=True, slots=True)
class RayRun:
    """What came of a run."""

    unreadable: Mapping[str, str]
    """Why, by path, for each shard that could not be read to its end: the rows of it that came
    before are worth nothing."""
    spent_usd: float
    """What the scorers have spent."""


def score_with_ray(  # noqa: PLR0913 - where rows come from, go to and are scored
    shards: Sequence[Shard],
    make_scorer: Callable[[Any], Scorer],
    spec: Spec,
    sink: Sink,
    *,
    columns: Sequence[str] | None = None,
    address: str | None = None,
    n_actors: int | None = None,
    captioning: Captioning | None = None,
    on_spent: Callable[[float], None] = lambda _usd: None,
) -> RayRun:
    """Score the rows of all shards.

    A scorer that is killed is started again, and its rows are scored again; it goes on with what
    the one before has spent.

    Args:
        shards: The files; each has the same path on every node.
        make_scorer: Makes a scorer of a spec within its actor: a class or function that can be
            pickled.
        spec: How to score, with the limits of all scorers together.
        sink: Takes the rows, in this thread.
        columns: Columns to read, ``None`` for all.
        address: ``None`` starts Ray on this machine; ``auto`` or ``host:port`` joins a cluster.
        n_actors: Scorers, by default one per node.
        captioning: How captions that are null are written first, ``None`` where they are not.
        on_spent: Told what was spent, however the run ends.

    Returns:
        What could not be read, and what was spent.

    Raises:
        CaptionsError: What a scorer raised, or rows that did not come.
        SettingsError: If Ray is not installed, or there is no cluster at the address.
    """
    if not shards:
        return RayRun(unreadable={}, spent_usd=0.0)
    with cluster(address), _streaming():
        import ray

        ledger = Ledger()
        n = n_actors or n_nodes()
        part = spec.divided(n)
        pipeline = _read(shards, columns, _package_rows(part.concurrency))
        if captioning is not None:
            pipeline = _captioned(pipeline, captioning, ledger)
        pipeline = _scored(pipeline, n, make_scorer, part, ledger)
        try:
            unreadable = _drain(pipeline, list(shards), sink)
        except ray.exceptions.RayError as error:
            stopped = ledger.error()
            if stopped is None and isinstance(error, ray.exceptions.GetTimeoutError):
                stopped = SettingsError(f"--actors {n}: the cluster has no room for them: {error}")
            if stopped is None:
                raise
            raise stopped from None
        finally:
            spent_usd = ledger.spent_usd()
            on_spent(spent_usd)
        return RayRun(unreadable=unreadable, spent_usd=spent_usd)


def _package_rows(concurrency: int) -> int:
    return min(max(concurrency, _MIN_PACKAGE_ROWS), _MAX_PACKAGE_ROWS)


def _read(shards: Sequence[Shard], columns: Sequence[str] | None, n_rows: int) -> Dataset:
    import ray.data

    n_packages = sum(shard.n_rows for shard in shards) // n_rows
    n_parts = min(len(shards), max(n_packages // _PACKAGES_PER_PART, 1), _MAX_PARTS)
    # Ray's own reader ends the pipeline at the first file that is broken.
    reader = Reader(shards, n_parts, None if columns is None else list(columns), n_rows)
    parts = ray.data.range(n_parts, override_num_blocks=n_parts)
    return parts.map_batches(
        reader.__call__, batch_size=None, batch_format="pyarrow", num_cpus=_CPUS_OF_READER
    )


def _captioned(pipeline: Dataset, captioning: Captioning, ledger: Ledger) -> Dataset:
    from ray.data import ActorPoolStrategy

    return pipeline.map_batches(
        CaptionActor,
        fn_constructor_args=(captioning.make_captioner, ledger),
        compute=ActorPoolStrategy(size=captioning.n_actors),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=None if captioning.gpus_per_actor else _CPUS_OF_ACTOR,
        num_gpus=captioning.gpus_per_actor or None,
    )


def _scored(
    pipeline: Dataset,
    n: int,
    make_scorer: Callable[[Any], Scorer],
    part: Spec,
    ledger: Ledger,
) -> Dataset:
    from ray.data import ActorPoolStrategy

    # Ray Data starts actors again and repeats what they had, as often as it takes.
    return pipeline.map_batches(
        ScorerActor,
        fn_constructor_args=(make_scorer, part, ledger),
        compute=ActorPoolStrategy(
            size=n,
            max_tasks_in_flight_per_actor=2 * _PACKAGES_AT_ONCE,
            max_concurrent_calls_per_actor=_PACKAGES_AT_ONCE,
            enable_true_multi_threading=True,
        ),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=_CPUS_OF_ACTOR,
    )


def _drain(pipeline: Dataset, shards: list[Shard], sink: Sink) -> dict[str, str]:
    unreadable: dict[str, str] = {}
    counts = RowCounts(shards)
    for batch in pipeline.iter_batches(batch_size=None, batch_format="pyarrow"):
        for chunk in chunks_in(batch):
            path = shards[chunk["shard"]].path
            if chunk["error"]:
                unreadable[path] = chunk["error"]
                continue
            table = unpacked(chunk["rows"])
            counts.add(chunk, table.num_rows)
            sink(path, table)
    missing = [path for path in counts.incomplete() if path not in unreadable]
    if missing:
        raise CaptionsError(
            f"{missing[0]}: not all of its rows came back from Ray "
            f"({counted(len(missing), 'such file')}); run the same command again"
        )
    return unreadable


@contextmanager
def _streaming() -> Iterator[None]:
    """Rows in order, each package handed on as it is there."""
    import ray.data

    with warnings.catch_warnings():
        # Ray warns of its own defaults where it makes them, and of few rows for many scorers.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "The minimum number of concurrent actors", UserWarning)
        context = ray.data.DataContext.get_current()
        before = (context.execution_options.preserve_order, context.target_max_block_size)
        bars, wait_s = context.enable_progress_bars, context.wait_for_min_actors_s
        context.execution_options.preserve_order = True
        # The first scorer that is there would be handed all rows, and the limits are divided.
        context.wait_for_min_actors_s = _START_S
        # A block per package: by default they are held back until there are 128 MiB of them.
        context.target_max_block_size = 1
        context.enable_progress_bars = False
        try:
            yield
        finally:
            context.execution_options.preserve_order, context.target_max_block_size = before
            context.enable_progress_bars, context.wait_for_min_actors_s = bars, wait_s
