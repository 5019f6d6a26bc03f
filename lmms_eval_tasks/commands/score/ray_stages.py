"""What runs on the nodes of a Ray cluster: reading shards, captioning clips, scoring captions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import pyarrow as pa

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_chunks import (
    Chunk,
    Shard,
    chunks_of,
    packed,
    unpacked,
)

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_SCHEMA: Final = pa.schema(
    [
        pa.field("shard", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("rows", pa.large_binary()),
        pa.field("error", pa.string()),
    ]
)


class Spec(Protocol):
    """How captions are scored: a frozen dataclass that can be pickled."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def concurrency(self) -> int:
        """Requests that may be under way at once."""

    @property
    def spent_usd(self) -> float:
        """What was spent already, of the limit that the spec has."""

    def divided(self, n: int) -> Spec:
        """The part of one of ``n`` scorers: of concurrency, rate, limit of cost, and spending."""


class Scorer(Protocol):
    """Scores tables."""

    @property
    def spent_usd(self) -> float:
        """What was spent so far, with what its spec began with."""

    def submit(self, table: pa.Table) -> Callable[[], pa.Table]:
        """Hand rows in; the callable waits for them, scored, in the same order."""

    def close(self) -> None:
        """End what it has running."""


class Captioner(Protocol):
    """Writes captions."""

    def captions(self, clips: list[str]) -> list[str]:
        """One caption per clip, in the same order."""


class Ledger:
    """What the scorers have spent and why one stopped; it outlives scorers that are killed."""

    def __init__(self) -> None:
        self._spent_usd: dict[str, float] = {}
        self._error: CaptionsError | None = None
        self._process_ids: dict[str, int] = {}

    def enter(self, scorer: str, process_id: int) -> float:
        """Say that a scorer begins, and get what was spent by those in its place before."""
        self._process_ids[scorer] = process_id
        return self._spent_usd.get(scorer, 0.0)

    def spend(self, scorer: str, spent_usd: float) -> None:
        """Note what a scorer has spent, those in its place before with it."""
        self._spent_usd[scorer] = max(spent_usd, self._spent_usd.get(scorer, 0.0))

    def stop(self, error: CaptionsError) -> None:
        """Note why nothing more can be scored: the first reason stands."""
        self._error = self._error or error

    def error(self) -> CaptionsError | None:
        """Why nothing more can be scored, ``None`` where it can."""
        return self._error

    def spent_usd(self) -> float:
        """What all scorers have spent."""
        return sum(self._spent_usd.values())

    def process_ids(self) -> list[int]:
        """Process of each scorer, on its node."""
        return list(self._process_ids.values())


class ScorerActor:
    """A scorer of one node, to which several threads hand chunks.

    Args:
        make_scorer: Makes the scorer.
        spec: The part of this scorer.
        ledger: Handle of the actor that keeps what was spent.
    """

    def __init__(
        self, make_scorer: Callable[[Any], Scorer], spec: Spec, ledger: ActorHandle[Ledger]
    ) -> None:
        import ray

        self._ledger = ledger
        self._scorer: Scorer | None = None
        # It stays the same where Ray starts the actor again.
        self._id = str(ray.get_runtime_context().get_actor_id())
        self._before_usd = spec.spent_usd
        spent_usd = ray.get(ledger.enter.remote(self._id, os.getpid()))
        try:
            self._scorer = make_scorer(replace(spec, spent_usd=self._before_usd + spent_usd))
        except CaptionsError as error:
            # Raised here, it would be a death of the actor to Ray, whose cause is lost.
            ray.get(ledger.stop.remote(error))

    def __call__(self, chunks: pa.Table) -> Iterator[pa.Table]:
        """Score chunks, one by one: other threads score others at the same time."""
        for chunk in _chunks(chunks):
            yield _table(chunk if chunk["error"] else self._scored(chunk))

    def __del__(self) -> None:
        """End the scorer where Ray lets go of the actor."""
        if self._scorer is not None:
            self._scorer.close()

    def _scored(self, chunk: Chunk) -> Chunk:
        import ray

        if self._scorer is None:
            raise CaptionsError("the scorer could not be opened")
        rows = unpacked(chunk["rows"])
        try:
            scored = self._scorer.submit(rows)()
            if scored.num_rows != rows.num_rows:
                raise CaptionsError(f"expected {rows.num_rows} rows, got {scored.num_rows}")
        except CaptionsError as error:
            ray.get(self._ledger.stop.remote(error))
            raise
        spent_usd = self._scorer.spent_usd - self._before_usd
        ray.get(self._ledger.spend.remote(self._id, spent_usd))
        return {**chunk, "rows": packed(scored)}


class CaptionActor:
    """A captioner that writes the captions which are not there.

    Args:
        make_captioner: Makes the captioner, with its model.
        clip_column: Column of the clips.
        batch_size: Clips that the captioner is handed at once, at most.
        ledger: Handle of the actor that is told why nothing more can be captioned.
    """

    def __init__(
        self,
        make_captioner: Callable[[], Captioner],
        clip_column: str,
        batch_size: int,
        ledger: ActorHandle[Ledger],
    ) -> None:
        import ray

        self._clip_column = clip_column
        self._batch_size = batch_size
        self._ledger = ledger
        self._captioner: Captioner | None = None
        try:
            self._captioner = make_captioner()
        except CaptionsError as error:
            ray.get(ledger.stop.remote(error))

    def __call__(self, chunks: pa.Table) -> Iterator[pa.Table]:
        """Fill the captions of chunks."""
        import ray

        for chunk in _chunks(chunks):
            if chunk["error"]:
                yield _table(chunk)
                continue
            try:
                rows = self._captioned(unpacked(chunk["rows"]))
            except CaptionsError as error:
                ray.get(self._ledger.stop.remote(error))
                raise
            yield _table({**chunk, "rows": packed(rows)})

    def _captioned(self, rows: pa.Table) -> pa.Table:
        if self._captioner is None:
            raise CaptionsError("the captioner could not be opened")
        there = "caption" in rows.column_names
        captions: list[str | None] = (
            rows["caption"].to_pylist() if there else [None] * rows.num_rows
        )
        missing = [index for index, caption in enumerate(captions) if caption is None]
        clips = rows[self._clip_column].to_pylist()
        for start in range(0, len(missing), self._batch_size):
            indices = missing[start : start + self._batch_size]
            written = self._captioner.captions([clips[index] for index in indices])
            if len(written) != len(indices):
                raise CaptionsError(f"expected {len(indices)} captions, got {len(written)}")
            for index, caption in zip(indices, written, strict=True):
                captions[index] = caption
        column = pa.array(captions, pa.string())
        if there:
            return rows.set_column(rows.column_names.index("caption"), "caption", column)
        return rows.append_column("caption", column)


class Reader:
    """Reads shards, on whatever node has time.

    Args:
        shards: All shards.
        columns: Columns to read, ``None`` for all.
        n_rows: Rows of a chunk, at most.
    """

    def __init__(self, shards: Sequence[Shard], columns: list[str] | None, n_rows: int) -> None:
        self._shards = shards
        self._columns = columns
        self._n_rows = n_rows

    def __call__(self, indices: pa.Table) -> Iterator[pa.Table]:
        """The chunks of some shards, one after the other."""
        for index in indices["id"].to_pylist():
            for chunk in chunks_of(index, self._shards[index], self._columns, self._n_rows):
                yield _table(chunk)


def _chunks(table: pa.Table) -> list[Chunk]:
    return [Chunk(**row) for row in table.to_pylist()]


def _table(chunk: Chunk) -> pa.Table:
    return pa.Table.from_pylist([dict(chunk)], schema=_SCHEMA)
