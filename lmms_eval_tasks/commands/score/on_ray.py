"""Scores shards on a Ray cluster: rows come back in order, and are written here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.again import n_again
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import Failure, ScoreFile, Shard
from lmms_eval_captions.lmms_eval_tasks.commands.score.table_scorer import TableScorer, schema_of
from lmms_eval_captions.lmms_eval_tasks.commands.score.writing_captions import TableCaptioner

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where shards are scored, and by how many."""

    address: str | None = None
    """``auto`` or ``host:port``, ``None`` for this machine."""
    n_actors: int | None = None
    """Scorers, by default one per node."""
    n_caption_actors: int = 1
    n_gpus: float = 0.0
    """GPUs of each captioner."""


def score_on_ray(
    shards: Sequence[Shard],
    spec: ScoreSpec,
    on_done: Callable[[Shard], None],
    cluster: Cluster,
) -> list[Failure]:
    """Score shards; one that fails leaves the others alone. See :func:`.score_here`.

    Args:
        shards: At the same paths on every node.
        spec: What is scored, with the limits of all scorers together.
        on_done: Told of each whose scores are in place.
        cluster: Where.

    Returns:
        Those that failed.

    Raises:
        CaptionsError: If the judge is asked nothing more; files that are whole stay.
        SettingsError: If Ray or the cluster is not there, the judge cannot be asked, or an address
            holds a password, which would be handed to Ray.
    """
    from lmms_eval_captions.lmms_eval_tasks.commands.score import ray_chunks, ray_engine

    _require_no_passwords(spec)
    captioning = None
    if spec.captioning is not None:
        captioning = ray_engine.Captioning(
            partial(TableCaptioner, spec, spec.captioning),
            n_actors=cluster.n_caption_actors,
            gpus_per_actor=cluster.n_gpus,
        )
    writing = _Writing(shards, schema_of(spec), on_done)
    try:
        run = ray_engine.score_with_ray(
            [ray_chunks.Shard(str(shard.path.absolute()), shard.n_rows) for shard in shards],
            TableScorer,
            spec,
            writing.take,
            columns=spec.read_columns,
            address=cluster.address,
            n_actors=cluster.n_actors,
            captioning=captioning,
        )
        return writing.end(run.unreadable)
    except BaseException:
        writing.drop()
        raise


def _require_no_passwords(spec: ScoreSpec) -> None:
    """Raise where settings that are handed to all nodes hold a password or key.

    Raises:
        SettingsError: If an address does.
    """
    for name, value in spec.settings.items():
        if name.endswith("url") and "@" in str(value or ""):
            raise SettingsError(
                f"--engine ray: expected an address of the judge without a user or password "
                f"({name}), as settings are handed to all nodes; set the key in the environment of "
                "each node"
            )


class _Writing:
    """Files of scores, of which rows come in order, one shard after the other."""

    def __init__(
        self, shards: Sequence[Shard], schema: pa.Schema, on_done: Callable[[Shard], None]
    ) -> None:
        self._files = {str(shard.path.absolute()): ScoreFile(shard, schema) for shard in shards}
        self._failures: dict[str, Failure] = {}
        self._done: set[str] = set()
        self._on_done = on_done

    def take(self, path: str, table: pa.Table) -> None:
        """Write the next rows of a shard; its file is put in place with the last ones."""
        if path in self._failures:
            return
        file = self._files[path]
        try:
            file.write(table.cast(file.schema), n_again=n_again(table))
            if file.n_rows == file.shard.n_rows:
                self._finish(path)
        except DataError as error:
            self._fail(path, str(error))

    def end(self, unreadable: Mapping[str, str]) -> list[Failure]:
        """Put files without rows in place; what failed, with those that could not be read."""
        for path, why in unreadable.items():
            self._fail(path, why)
        for path in self._files:
            if path not in self._done and path not in self._failures:
                try:
                    self._finish(path)
                except DataError as error:
                    self._fail(path, str(error))
        return list(self._failures.values())

    def drop(self) -> None:
        """Remove what is not whole."""
        for path, file in self._files.items():
            if path not in self._done:
                file.drop()

    def _finish(self, path: str) -> None:
        file = self._files[path]
        file.finish()
        self._done.add(path)
        self._on_done(file.shard)

    def _fail(self, path: str, why: str) -> None:
        file = self._files[path]
        file.drop()
        self._failures.setdefault(path, Failure(Path(file.shard.path), why))
