"""Shards: files of rows, and the files of scores that become of them, whole or not at all."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.counted import counted
from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec

FOLDER: Final = "scores"
"""Below the output folder: a file for each shard."""
MADE_OF: Final = b"lmms_eval_captions"
"""Key of the metadata in which a file that was written here says what it was made of."""
_UNFINISHED: Final = ".unfinished"
_ROW_GROUP: Final = 16_384
"""Rows that are written at once."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of rows that can be read."""

    path: Path
    n_rows: int
    origin: Mapping[str, Any]
    """What tells the file from others, and from what it was before."""
    scores: Path
    """Where its scores go."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A shard that could not be scored."""

    path: Path
    why: str


def find_shards(pattern: str) -> list[Path]:
    """Files by a name, a folder of Parquet files, or a pattern, by name; each as it really is.

    Raises:
        SettingsError: If there is none.
    """
    path = Path(pattern).expanduser()
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
    elif path.exists():
        found = [path]
    else:
        # A pattern may be absolute, which Path.glob does not take.
        found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
    shards = [each.resolve() for each in found if each.is_file()]
    if not shards:
        raise SettingsError(f"--in: expected Parquet files, none is there of {pattern!r}")
    return shards


def score_files(paths: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Where the scores of each shard go: its name, with the folders that tell it from others.

    Args:
        paths: Resolved, each once.
        folder: The output folder.

    Raises:
        SettingsError: If two would go to one file, or one would go where a shard is.
    """
    common = Path(os.path.commonpath([path.parent for path in paths]))
    files: dict[Path, Path] = {}
    for path in paths:
        name = path.relative_to(common)
        if name.suffix != ".parquet":
            name = name.with_name(f"{name.name}.parquet")
        files[path] = folder / FOLDER / name
    taken: dict[Path, Path] = {}
    for path, scores in files.items():
        other = taken.setdefault(scores.resolve(), path)
        if other != path:
            raise SettingsError(
                f"--in: the scores of {other} and of {path} would be one file, {scores}; score "
                "them into different folders"
            )
        if scores.resolve() in files:
            raise SettingsError(
                f"--out: the scores of {path} would replace {scores}, which is to be scored; name "
                "another folder"
            )
    return files


def open_shard(path: Path, scores: Path, spec: ScoreSpec) -> Shard:
    """A shard, whose rows are not read yet.

    Raises:
        DataError: If the file cannot be read, or lacks a column; the text says which.
    """
    import pyarrow.parquet as pq

    with reading(path):
        status = path.stat()
        with pq.ParquetFile(path) as file:
            names, n_rows = file.schema_arrow.names, file.metadata.num_rows
    missing = [name for name in spec.columns if name not in names]
    if missing:
        ours = next(name for name in COLUMNS if spec.name_of(name) == missing[0])
        raise DataError(
            f"{path}: expected the columns {', '.join(spec.columns)} for {spec.protocol_name}, "
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there of "
            f"{', '.join(names)}; --column {ours}=NAME says what a column is called"
        )
    origin = {"file": path.name, "bytes": status.st_size, "changed_ns": status.st_mtime_ns}
    return Shard(path, n_rows, {**origin, "n_rows": n_rows, "spec": spec.digest}, scores)


def read_shard(shard: Shard, spec: ScoreSpec, *, n_rows: int) -> Iterator[pa.Table]:
    """The rows of a shard, a few at a time.

    Raises:
        DataError: If they cannot be read to the end.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(shard.path), pq.ParquetFile(shard.path) as file:
        columns = [name for name in spec.read_columns if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=n_rows, columns=columns):
            yield pa.Table.from_batches([batch])


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Puts what is raised while a file is read in words.

    Raises:
        DataError: In the place of what readers raise.
    """
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        why = f"cannot be read as Parquet: {error}" if path.exists() else "is not there any more"
        raise DataError(f"{path}: {why}") from error


def changed(path: Path, n_rows: int, n_read: int) -> str:
    """What is said of a shard that has other rows than it had when it was found."""
    return (
        f"{path}: expected {counted(n_rows, 'row')}, as it had when it was found, "
        f"got {n_read:,}: it was changed while it was read"
    )


def is_done(shard: Shard, *, ask_again: bool) -> bool:
    """Whether its scores are there, of these rows by this spec, with nothing to ask again.

    Args:
        shard: Which one.
        ask_again: Whether what was unreadable is asked anew.
    """
    made_of = origin_of(shard.scores) or {}
    n_open, n_unscored = made_of.pop("n_open", None), made_of.pop("n_unscored", None)
    return made_of == shard.origin and n_open == 0 and not (ask_again and n_unscored)


def is_scores(path: Path) -> bool:
    """Whether a file is one of scores, of any rows by any spec."""
    return "spec" in (origin_of(path) or {})


def origin_of(path: Path) -> dict[str, Any] | None:
    """What a file was made of, ``None`` where there is none, or none that was written here."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path).metadata or {}
        found = json.loads(metadata[MADE_OF])
    except (OSError, pa.ArrowException, LookupError, ValueError):
        return None
    return found if isinstance(found, dict) else None


class ScoreFile:
    """A shard's scores as they are written; another file, or none, until they are whole."""

    def __init__(self, shard: Shard, schema: pa.Schema) -> None:
        self.shard = shard
        self.n_rows = 0
        self.schema = schema
        self.n_unasked = 0
        """Rows that could not be asked about."""
        self._n_open = self._n_unscored = 0
        self._rows: list[pa.Table] = []
        self._n_held = 0
        self._path = shard.scores.with_name(f"{shard.scores.name}{_UNFINISHED}")
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Append the next rows.

        Raises:
            DataError: If they cannot be written.
        """
        self.n_rows += table.num_rows
        self.n_unasked += table.column("n_questions").null_count
        self._n_open += column_sum(table, "is_open")
        self._n_unscored += column_sum(table, "n_unscored")
        self._rows.append(table)
        self._n_held += table.num_rows
        if self._n_held >= _ROW_GROUP:
            with self._writing():
                self._flush()

    def finish(self) -> None:
        """Put the file in its place.

        Raises:
            DataError: If it cannot be written, or there are not as many rows as the shard has.
        """
        if self.n_rows != self.shard.n_rows:
            raise DataError(changed(self.shard.path, self.shard.n_rows, self.n_rows))
        with self._writing():
            self._flush()
            counts = {"n_open": self._n_open, "n_unscored": self._n_unscored}
            made_of = json.dumps({**self.shard.origin, **counts})
            self._writer.add_key_value_metadata({MADE_OF: made_of.encode("utf-8")})
            self._writer.close()
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
            self._path.replace(self.shard.scores)

    def drop(self) -> None:
        """Remove what was written so far."""
        with suppress(OSError, ValueError):  # a full disk: what counts is that it goes
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._writer is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._path, self.schema, compression="zstd")
        if self._rows:
            self._writer.write_table(pa.concat_tables(self._rows))
        self._rows, self._n_held = [], 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Puts what is raised while the file is written in words."""
        try:
            yield
        except OSError as error:
            raise DataError(
                f"{self.shard.scores}: cannot be written: {error}; make room, and run the same "
                "command again: replies are kept, nothing is asked twice"
            ) from error


def column_sum(table: pa.Table, name: str) -> int:
    """The sum of a column of whole numbers, or how often it is true; nulls are left out."""
    import pyarrow.compute as pc

    return int(pc.sum(table.column(name)).as_py() or 0)
