"""What runs on the nodes of a Ray cluster: reading shards, captioning clips, scoring captions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, replace
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_chunks import (
    Chunk,
    Shard,
    chunks_in,
    package,
    packages_of,
    packed,
    unpacked,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_ledger import Ledger


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
    """Writes the captions that tables lack."""

    def fill(self, table: pa.Table) -> pa.Table:
        """The same rows, with captions."""


class ScorerActor:
    """A scorer of one node, to which several threads hand packages.

    Args:
        make_scorer: Makes the scorer.
        spec: The part of this scorer.
        ledger: Keeps what was spent.
    """

    def __init__(self, make_scorer: Callable[[Any], Scorer], spec: Spec, ledger: Ledger) -> None:
        self._scorer: Scorer | None = None
        import ray

        self._ledger = ledger
        # It stays the same where Ray starts the actor again.
        self._id = str(ray.get_runtime_context().get_actor_id())
        self._before_usd = spec.spent_usd
        spent_usd = ledger.spent_by(self._id)
        try:
            self._scorer = make_scorer(replace(spec, spent_usd=self._before_usd + spent_usd))
        except CaptionsError as error:
            # Raised here, it would be a death of the actor to Ray, whose cause is lost.
            ledger.stop(error)

    def __call__(self, packages: pa.Table) -> pa.Table:
        """Score packages: other threads score others at the same time."""
        if self._scorer is None:
            raise CaptionsError("the scorer could not be opened")
        chunks = chunks_in(packages)
        try:
            waits = [self._submitted(self._scorer, chunk) for chunk in chunks]
            scored = [wait() for wait in waits]
        except CaptionsError as error:
            self._ledger.stop(error)
            raise
        finally:
            self._ledger.spend(self._id, self._scorer.spent_usd - self._before_usd)
        return package(scored)

    def __del__(self) -> None:
        """End the scorer where Ray lets go of the actor."""
        if self._scorer is not None:
            self._scorer.close()

    @staticmethod
    def _submitted(scorer: Scorer, chunk: Chunk) -> Callable[[], Chunk]:
        if chunk["error"]:
            return lambda: chunk
        rows = unpacked(chunk["rows"])
        wait = scorer.submit(rows)

        def scored() -> Chunk:
            table = wait()
            if table.num_rows != rows.num_rows:
                raise ValueError(f"expected {rows.num_rows} scored rows, got {table.num_rows}")
            return {**chunk, "rows": packed(table)}

        return scored


class CaptionActor:
    """A captioner that writes the captions which are not there.

    Args:
        make_captioner: Makes the captioner, with its model.
        ledger: Is told why nothing more can be captioned.
    """

    def __init__(self, make_captioner: Callable[[], Captioner], ledger: Ledger) -> None:
        self._ledger = ledger
        self._captioner: Captioner | None = None
        try:
            self._captioner = make_captioner()
        except CaptionsError as error:
            ledger.stop(error)

    def __call__(self, packages: pa.Table) -> pa.Table:
        """Fill the captions of packages."""
        if self._captioner is None:
            raise CaptionsError("the captioner could not be opened")
        try:
            return package([self._filled(self._captioner, chunk) for chunk in chunks_in(packages)])
        except CaptionsError as error:
            self._ledger.stop(error)
            raise

    @staticmethod
    def _filled(captioner: Captioner, chunk: Chunk) -> Chunk:
        if chunk["error"]:
            return chunk
        return {**chunk, "rows": packed(captioner.fill(unpacked(chunk["rows"])))}


class Reader:
    """Reads shards, on whatever node has time.

    Args:
        shards: All shards.
        n_parts: Parts that the shards are read in.
        columns: Columns to read, ``None`` for all.
        n_rows: Rows of a package.
    """

    def __init__(
        self, shards: Sequence[Shard], n_parts: int, columns: list[str] | None, n_rows: int
    ) -> None:
        self._shards = list(enumerate(shards))
        self._n_parts = n_parts
        self._columns = columns
        self._n_rows = n_rows

    def __call__(self, parts: pa.Table) -> Iterator[pa.Table]:
        """The rows of some parts in packages."""
        for part in parts["id"].to_pylist():
            first = part * len(self._shards) // self._n_parts
            end = (part + 1) * len(self._shards) // self._n_parts
            yield from packages_of(self._shards[first:end], self._columns, self._n_rows)
