"""Behaviour of the Ray engine, with a real Ray on this machine and scorers that ask nobody."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval_captions.judges.errors import CaptionsError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_chunks import Shard
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_cluster import cluster
from lmms_eval_captions.lmms_eval_tasks.commands.score.ray_engine import (
    Captioning,
    RayRun,
    score_with_ray,
)

pytest.importorskip("ray", reason="Ray is an extra, lmms-eval-captions[ray]")


@dataclass(frozen=True)
class DummySpec:
    """Limits, and how the dummy scorer behaves."""

    concurrency: int = 16
    spent_usd: float = 0.0
    wait_s: float = 0.0
    folder: str = ""
    fault: str = ""

    def divided(self, n: int) -> DummySpec:
        """The part of one of ``n`` scorers."""
        return replace(self, concurrency=self.concurrency // n, spent_usd=self.spent_usd / n)


def dummy_scorer(spec: DummySpec) -> Any:
    """A scorer that doubles numbers, and notes its process."""

    class DummyScorer:
        def __init__(self) -> None:
            if spec.fault == "opening":
                raise SettingsError("expected a judge, got none: set LMMS_CAPTIONS_JUDGE")
            self.spent_usd = spec.spent_usd
            self._lock = threading.Lock()
            self._begun_usd = spec.spent_usd
            (Path(spec.folder) / f"{os.getpid()}.pid").write_text(
                f"{spec.concurrency} {spec.spent_usd}"
            )

        def submit(self, table: pa.Table) -> Callable[[], pa.Table]:
            def wait() -> pa.Table:
                time.sleep(spec.wait_s)
                if spec.fault == "scoring" and 77 in table["row"].to_pylist():
                    raise CaptionsError("the judge's key is refused")
                if spec.fault == "bug" and 77 in table["row"].to_pylist():
                    raise KeyError("no such column")
                with self._lock:
                    self.spent_usd += table.num_rows
                score = pa.array([2 * row for row in table["row"].to_pylist()])
                begun = pa.array([self._begun_usd] * table.num_rows)
                return table.append_column("score", score).append_column("begun_usd", begun)

            return wait

        def close(self) -> None:
            pass

    return DummyScorer()


@pytest.fixture(scope="module", autouse=True)
def one_ray() -> Iterator[None]:
    """One Ray for all tests of this file."""
    patch = pytest.MonkeyPatch()
    # Otherwise it makes a token in the home folder.
    patch.setenv("RAY_AUTH_MODE", "disabled")
    with cluster(None):
        from ray import cloudpickle

        # Workers do not import the tests. Ray leaves both functions untyped.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
        yield
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    patch.undo()


def shards(folder: Path, n_shards: int = 6, n_rows: int = 50) -> list[Shard]:
    """Shards whose rows are numbered through, with a column that Ray has a name for."""
    made = []
    for index in range(n_shards):
        path = folder / f"{index:03}.parquet"
        rows = list(range(index * n_rows, (index + 1) * n_rows))
        caption = [f"caption {row}" if row % 3 else None for row in rows]
        table = pa.table({"row": rows, "path": [f"{row}.mp4" for row in rows], "caption": caption})
        pq.write_table(table, path)
        made.append(Shard(str(path), n_rows))
    return made


class Rows:
    """A sink that keeps what came."""

    def __init__(self) -> None:
        self.tables: dict[str, list[pa.Table]] = {}
        self.n_rows = 0
        self.on_rows: Callable[[], None] = lambda: None

    def __call__(self, path: str, table: pa.Table) -> None:
        """Take rows."""
        self.tables.setdefault(path, []).append(table)
        self.n_rows += table.num_rows
        self.on_rows()

    def column(self, name: str) -> list[Any]:
        """All values of a column in the order in which they came."""
        return [
            value
            for tables in self.tables.values()
            for table in tables
            for value in table[name].to_pylist()
        ]


def score(files: list[Shard], rows: Rows, spec: DummySpec, **options: Any) -> RayRun:
    """Score with two scorers."""
    return score_with_ray(files, dummy_scorer, spec, rows, **{"n_actors": 2, **options})


def test_rows_come_back_in_order_each_once_with_all_columns(tmp_path: Path) -> None:
    """Every shard's rows come in order, in as many tables as it takes, as they were."""
    files, rows = shards(tmp_path), Rows()
    run = score(files, rows, DummySpec(folder=str(tmp_path)))
    assert rows.column("row") == list(range(300))
    assert rows.column("score") == [2 * row for row in range(300)]
    assert list(rows.tables) == [file.path for file in files]
    for file in files:
        whole = pa.concat_tables(rows.tables[file.path]).drop_columns(["score", "begun_usd"])
        assert whole.equals(pq.read_table(file.path))
    assert run.spent_usd == 300
    assert run.unreadable == {}


def test_limits_are_divided_among_scorers(tmp_path: Path) -> None:
    """Each scorer has its part of the concurrency and of what is spent."""
    score(shards(tmp_path), Rows(), DummySpec(folder=str(tmp_path), spent_usd=10.0))
    parts = [path.read_text() for path in tmp_path.glob("*.pid")]
    assert parts == ["8 5.0"] * len(parts)
    assert parts


def test_a_killed_scorer_goes_on_with_what_was_spent_and_no_row_is_lost(tmp_path: Path) -> None:
    """A scorer whose process is killed is started again, on its rows and on its money."""
    files, rows = shards(tmp_path, n_rows=100), Rows()

    def kill() -> None:
        if rows.n_rows > 150:
            rows.on_rows = lambda: None
            os.kill(int(next(tmp_path.glob("*.pid")).stem), signal.SIGKILL)

    rows.on_rows = kill
    score(files, rows, DummySpec(folder=str(tmp_path), wait_s=0.3))
    assert rows.column("row") == list(range(600))
    assert len(list(tmp_path.glob("*.pid"))) == 3
    assert max(rows.column("begun_usd")) > 0


@pytest.mark.parametrize("fault", ["gone", "truncated", "broken pages", "shorter"])
def test_a_shard_that_cannot_be_read_is_told_and_the_others_are_scored(
    tmp_path: Path, fault: str
) -> None:
    """One bad file ends nothing."""
    files, rows = shards(tmp_path), Rows()
    bad = Path(files[2].path)
    whole = bad.read_bytes()
    if fault == "gone":
        bad.unlink()
    elif fault == "truncated":
        bad.write_bytes(whole[:-50])
    elif fault == "broken pages":
        bad.write_bytes(whole[:10] + bytes(200) + whole[210:])
    else:
        pq.write_table(pq.read_table(bad).slice(0, 7), bad)
    run = score(files, rows, DummySpec(folder=str(tmp_path)))
    assert list(run.unreadable) == [str(bad)]
    assert run.unreadable[str(bad)]
    good = [row for row in rows.column("row") if not 100 <= row < 150]
    assert good == [*range(100), *range(150, 300)]


def test_shards_may_have_columns_of_their_own(tmp_path: Path) -> None:
    """Types of one shard are not changed for another's sake."""
    files, rows = shards(tmp_path, n_shards=2), Rows()
    other = pa.table({"row": pa.array(range(50, 100), pa.int16()), "note": [["a", "b"]] * 50})
    pq.write_table(other, files[1].path)
    score(files, rows, DummySpec(folder=str(tmp_path)))
    scored = pa.concat_tables(rows.tables[files[1].path])
    assert scored.drop_columns(["score", "begun_usd"]).equals(other)


@pytest.mark.parametrize(
    ("fault", "message"),
    [("opening", "expected a judge, got none"), ("scoring", "^the judge's key is refused$")],
)
def test_an_error_of_the_scorer_is_raised_as_itself(
    tmp_path: Path, fault: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """What is wrong with a setting is said in its own words, with nothing of Ray around it."""
    with pytest.raises(CaptionsError, match=message) as raised:
        score(shards(tmp_path), Rows(), DummySpec(folder=str(tmp_path), fault=fault))
    assert type(raised.value) is (SettingsError if fault == "opening" else CaptionsError)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_mistake_in_the_scorer_keeps_its_traceback(tmp_path: Path) -> None:
    """An error that nobody raised on purpose can be looked into."""
    import ray

    with pytest.raises(ray.exceptions.RayError, match="no such column"):
        score(shards(tmp_path), Rows(), DummySpec(folder=str(tmp_path), fault="bug"))


def test_captions_that_are_null_are_written_first(tmp_path: Path) -> None:
    """Tables go through the captioner before they are scored."""

    def make_captioner() -> Any:
        class DummyCaptioner:
            def fill(self, table: pa.Table) -> pa.Table:
                captions = [
                    caption or f"seen in {clip}"
                    for caption, clip in zip(
                        table["caption"].to_pylist(), table["path"].to_pylist(), strict=True
                    )
                ]
                at = table.column_names.index("caption")
                return table.set_column(at, "caption", pa.array(captions))

        return DummyCaptioner()

    rows = Rows()
    captioning = Captioning(make_captioner)
    score(shards(tmp_path), rows, DummySpec(folder=str(tmp_path)), captioning=captioning)
    assert rows.column("caption") == [
        f"caption {row}" if row % 3 else f"seen in {row}.mp4" for row in range(300)
    ]


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    """Other columns stay on disk."""
    rows = Rows()
    score(shards(tmp_path), rows, DummySpec(folder=str(tmp_path)), columns=["row"])
    assert next(iter(rows.tables.values()))[0].column_names == ["row", "score", "begun_usd"]


def test_ray_keeps_its_settings(tmp_path: Path) -> None:
    """What Ray Data was set to before is what it is set to afterwards."""
    import ray.data

    context = ray.data.DataContext.get_current()
    before = (context.target_max_block_size, context.execution_options.preserve_order)
    score(shards(tmp_path, n_shards=1), Rows(), DummySpec(folder=str(tmp_path)))
    assert (context.target_max_block_size, context.execution_options.preserve_order) == before


def test_no_shards_are_no_work() -> None:
    """A run of which nothing is left ends at once."""
    assert score([], Rows(), DummySpec()) == RayRun(unreadable={}, spent_usd=0.0)


def test_an_address_where_nobody_listens_is_told_at_once() -> None:
    """A wrong port is not tried for minutes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SettingsError, match=f"^--address {address}: "):
            score([Shard("a.parquet", 1)], Rows(), DummySpec(), address=address)
