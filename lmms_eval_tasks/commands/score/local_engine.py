"""Scores shards in this process: the judge is never idle between tables or shards."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.score.shards import (
    Failure,
    ScoreFile,
    Shard,
    read_shard,
)
from lmms_eval_captions.lmms_eval_tasks.commands.score.table_scorer import TableScorer
from lmms_eval_captions.lmms_eval_tasks.commands.score.writing_captions import TableCaptioner

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec

TABLE_ROWS: Final = 256
"""Rows that are handed in at once."""
_AHEAD: Final = 8
"""Rows that are handed in and not answered, as a multiple of the requests in flight."""


@dataclass(slots=True)
class _Open:
    """A shard at work."""

    file: ScoreFile
    is_read: bool = False
    n_pending: int = 0
    failure: Failure | None = None


def score_here(
    shards: Sequence[Shard], spec: ScoreSpec, on_done: Callable[[ScoreFile], None]
) -> list[Failure]:
    """Score shards; one that fails leaves the others alone.

    Args:
        shards: In the order in which they are scored.
        spec: What is scored.
        on_done: Told of each file of scores that is in place.

    Returns:
        Those that failed.

    Raises:
        JudgeStoppedError: If the judge is asked nothing more; files that are whole stay.
        SettingsError: If it cannot be asked.
    """
    with ExitStack() as stack:
        captioner = (
            None
            if spec.captioning is None
            else stack.enter_context(TableCaptioner(spec, spec.captioning))
        )
        scorer = stack.enter_context(TableScorer(spec, progress=True))
        n_ahead = 1 + max(1, _AHEAD * spec.concurrency // TABLE_ROWS)
        scoring = Scoring(scorer, captioner, on_done, n_rows=TABLE_ROWS, n_ahead=n_ahead)
        return scoring.score(shards)


class AnyScorer(Protocol):
    """A scorer of tables, here or on other nodes; see :class:`.TableScorer`."""

    spec: ScoreSpec
    schema: pa.Schema

    def submit(self, table: pa.Table) -> Callable[[], pa.Table]:
        """Hand rows in; the callable waits for their scores."""


class Scoring:
    """Reads shards, has their tables scored, and writes the scores in order.

    Args:
        scorer: Scores tables.
        captioner: Writes missing captions, ``None`` if the scorer does or none are missing.
        on_done: Called with each file that is in place.
        n_rows: Rows of a table.
        n_ahead: Tables that are handed in and not scored, at most.
    """

    def __init__(
        self,
        scorer: AnyScorer,
        captioner: TableCaptioner | None,
        on_done: Callable[[ScoreFile], None],
        *,
        n_rows: int,
        n_ahead: int,
    ) -> None:
        self._scorer = scorer
        self._n_rows = n_rows
        self._n_ahead = n_ahead
        self._captioner = captioner
        self._on_done = on_done
        self._pending: deque[tuple[_Open, Callable[[], pa.Table]]] = deque()
        self._failures: list[Failure] = []

    def score(self, shards: Sequence[Shard]) -> list[Failure]:
        """Score shards in their order; returns those that failed."""
        opened: list[_Open] = []
        try:
            for shard in shards:
                work = _Open(ScoreFile(shard, self._scorer.schema))
                opened = [each for each in opened if each.n_pending or not each.is_read]
                opened.append(work)
                for table in self._tables(work):
                    self._pending.append((work, self._scorer.submit(table)))
                    work.n_pending += 1
                    while len(self._pending) > self._n_ahead:
                        self._take()
                    if work.failure is not None:
                        break
                work.is_read = True
                self._end(work)
            while self._pending:
                self._take()
        except BaseException:
            for work in opened:
                work.file.drop()
            raise
        return self._failures

    def _tables(self, work: _Open) -> Iterator[pa.Table]:
        try:
            tables = read_shard(work.file.shard, self._scorer.spec, n_rows=self._n_rows)
            yield from tables if self._captioner is None else map(self._captioner.fill, tables)
        except DataError as error:
            self._fail(work, error)

    def _take(self) -> None:
        """Wait for the oldest table, and write it."""
        work, wait = self._pending.popleft()
        table = wait()
        work.n_pending -= 1
        if work.failure is None:
            try:
                work.file.write(table)
            except DataError as error:
                self._fail(work, error)
        self._end(work)

    def _end(self, work: _Open) -> None:
        if not work.is_read or work.n_pending or work.failure is not None:
            return
        try:
            work.file.finish()
        except DataError as error:
            self._fail(work, error)
        else:
            self._on_done(work.file)

    def _fail(self, work: _Open, error: DataError) -> None:
        if work.failure is None:
            work.failure = Failure(work.file.shard.path, str(error))
            self._failures.append(work.failure)
            work.file.drop()
