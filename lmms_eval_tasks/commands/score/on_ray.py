"""Scores shards on a Ray cluster: rows come back in order, and are written here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import (
    CaptionsError,
    DataError,
    JudgeStoppedError,
    SettingsError,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import Failure, ScoreFile, Shard
from lmms_eval_captions.lmms_eval_tasks.commands.score.table_scorer import TableScorer, schema_of
from lmms_eval_captions.lmms_eval_tasks.commands.score.writing_captions import TableCaptioner
from lmms_eval_captions.lmms_eval_tasks.reasons import kind_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec


_LEAST: Final = 0.05
"""Share of a limit of cost that is too little to be divided again."""


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
    on_done: Callable[[ScoreFile], None],
    cluster: Cluster,
) -> list[Failure]:
    """Score shards; one that fails leaves the others alone. See :func:`.score_here`.

    Args:
        shards: At the same paths on every node.
        spec: What is scored, with the limits of all scorers together.
        on_done: Told of each file of scores that is in place.
        cluster: Where.

    Returns:
        Those that failed.

    Raises:
        CaptionsError: If the judge is asked nothing more; files that are whole stay.
        SettingsError: If Ray or the cluster is not there, the judge cannot be asked, or an address
            holds a password, which would be handed to Ray.
    """
    from lmms_eval_captions.lmms_eval_tasks.commands.score import ray_cluster

    _require_no_passwords(spec)
    limit_usd, spent_usd = spec.settings.get("max_cost_usd"), 0.0
    with ray_cluster.cluster(cluster.address):
        while True:
            writing = _Writing(shards, schema_of(spec), on_done)
            spent: list[float] = []
            try:
                return _score(writing, spec, cluster, spent.append)
            except CaptionsError as error:
                spent_usd += sum(spent)
                if limit_usd is None or kind_of(str(error)) != "limit":
                    raise
                # One scorer has spent its part: what all have left is divided anew.
                left_usd = limit_usd - spent_usd
                if not any(spent) or left_usd < _LEAST * limit_usd:
                    raise JudgeStoppedError(_limit_words(spent_usd, limit_usd)) from None
                spec = spec.with_settings(max_cost_usd=left_usd)
            finally:
                writing.drop()
            shards = writing.left


def _score(
    writing: _Writing, spec: ScoreSpec, cluster: Cluster, on_spent: Callable[[float], None]
) -> list[Failure]:
    from lmms_eval_captions.lmms_eval_tasks.commands.score import ray_chunks, ray_engine

    captioning = None
    if spec.captioning is not None:
        captioning = ray_engine.Captioning(
            partial(TableCaptioner, spec, spec.captioning),
            n_actors=cluster.n_caption_actors,
            gpus_per_actor=cluster.n_gpus,
        )
    run = ray_engine.score_with_ray(
        [ray_chunks.Shard(str(shard.path), shard.n_rows) for shard in writing.left],
        TableScorer,
        spec,
        writing.take,
        columns=spec.read_columns,
        address=cluster.address,
        n_actors=cluster.n_actors,
        captioning=captioning,
        on_spent=on_spent,
    )
    return writing.end(run.unreadable)


def _limit_words(spent_usd: float, limit_usd: float) -> str:
    return (
        f"LMMS_CAPTIONS_MAX_COST: ${spent_usd:.4f} of ${limit_usd:g} are spent, by all scorers "
        "together, and one more request of one of them may cost more than its part of what is "
        "left. Files that are scored stay, replies of the others are kept: run the same command "
        "again with a higher limit to go on"
    )


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
        self, shards: Sequence[Shard], schema: pa.Schema, on_done: Callable[[ScoreFile], None]
    ) -> None:
        self._files = {str(shard.path): ScoreFile(shard, schema) for shard in shards}
        self._failures: dict[str, Failure] = {}
        self._done: set[str] = set()
        self._on_done = on_done

    def take(self, path: str, table: pa.Table) -> None:
        """Write the next rows of a shard; its file is put in place with the last ones."""
        if path in self._failures:
            return
        file = self._files[path]
        try:
            file.write(table.cast(file.schema))
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

    @property
    def left(self) -> list[Shard]:
        """Those whose files are not in place."""
        return [file.shard for path, file in self._files.items() if path not in self._done]

    def drop(self) -> None:
        """Remove what is not whole."""
        for path, file in self._files.items():
            if path not in self._done:
                file.drop()

    def _finish(self, path: str) -> None:
        file = self._files[path]
        file.finish()
        self._done.add(path)
        self._on_done(file)

    def _fail(self, path: str, why: str) -> None:
        file = self._files[path]
        file.drop()
        self._failures.setdefault(path, Failure(Path(file.shard.path), why))
