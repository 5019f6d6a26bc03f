"""``score --engine ray``: the rows of the local engine, whatever happens to the actors."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from clip_rows import rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.scorer.on_ray import Ledger, joined

pytest.importorskip("ray", reason="Ray is an extra, lmms-eval-captions[ray]")
# Of Ray's own settings, as it starts.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    """One Ray for all tests of this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        with joined(None):
            yield


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A cache of its own."""
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    return monkeypatch


@pytest.fixture
def judge(serve: ServerFactory, settings: pytest.MonkeyPatch) -> JudgeServer:
    """A judge that answers as its prompts have it."""
    server = serve(latency_s=0.0, logprobs="whole")
    settings.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    return server


def run_score(tmp_path: Path, protocol: str, out: str, *more: str) -> int:
    """The command over the folder ``in``."""
    return main(
        [
            "score", "--in", str(tmp_path / "in"), "--out", str(tmp_path / out),
            "--protocol", protocol, "--videos", str(tmp_path / "videos"), *more,
        ]
    )  # fmt: skip


def on_ray(n_actors: int) -> list[str]:
    """Arguments for so many scorers."""
    return ["--engine", "ray", "--actors", str(n_actors)]


def scores(tmp_path: Path, out: str) -> dict[str, Any]:
    """The tables of all files of scores."""
    folder = tmp_path / out / "scores"
    return {path.name: pq.read_table(path) for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("protocol", ["vdc"])
def test_rows_are_those_of_the_local_engine(
    protocol: str, judge: JudgeServer, tmp_path: Path, settings: pytest.MonkeyPatch
) -> None:
    """With two scorers, files of all sizes, rows that cannot be asked about too."""
    rows = rows_of(protocol, 100, tmp_path / "videos")
    rows[3]["caption"], rows[7]["clip_id"], rows[20]["caption"] = None, None, "..."
    for name, first, end in (("a", 0, 70), ("b", 70, 71), ("c", 71, 100)):
        write_rows(tmp_path / "in" / f"{name}.parquet", rows[first:end])
    assert run_score(tmp_path, protocol, "local") == 1
    n_calls = judge.counts.n_requests
    for n_actors in (2,):
        # Asked anew: nothing of the other run is in this store.
        settings.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / f"cache {n_actors}"))
        out = f"ray {n_actors}"
        assert run_score(tmp_path, protocol, out, *on_ray(n_actors)) == 1
        assert scores(tmp_path, out) == scores(tmp_path, "local")
        assert (tmp_path / out / "summary.json").read_bytes() == (
            tmp_path / "local/summary.json"
        ).read_bytes()
    assert judge.counts.n_requests <= 3 * n_calls


def test_a_killed_scorer_costs_nothing_but_time(
    serve: ServerFactory, tmp_path: Path, settings: pytest.MonkeyPatch
) -> None:
    """It is started again; all rows are there, and no reply that was there is asked for again."""
    server = serve(latency_s=0.05)
    settings.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    settings.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "16")
    for name in range(4):
        rows = rows_of("capquiz", 100, tmp_path)
        for row in rows:
            row["clip_id"] = f"{name} {row['clip_id']}"
            row["caption"] = f"{name} {row['caption']}"
        write_rows(tmp_path / "in" / f"{name}.parquet", rows)
    killed: list[int] = []

    def kill() -> None:
        while not killed and server.counts.n_requests < 1_200:
            time.sleep(0.05)
            if server.counts.n_requests > 300:
                killed.extend(_scorers()[:1])
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    assert run_score(tmp_path, "capquiz", "out", *on_ray(2)) == 0
    killer.join()
    assert killed
    n_calls = server.counts.n_requests
    assert 1_200 <= n_calls <= 1_200 + 16
    assert run_score(tmp_path, "capquiz", "local") == 0
    assert server.counts.n_requests == n_calls
    assert scores(tmp_path, "out") == scores(tmp_path, "local")


def _scorers() -> list[int]:
    """Processes that score."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                parent = (folder / "status").read_text()
            except OSError:
                continue
            if "ScorerActor" in words and parent:
                found.append(int(folder.name))
    return sorted(found)


def test_what_fails_leaves_other_files_alone(
    judge: JudgeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without a column, one that is no Parquet, and one that ends in the middle."""
    rows = rows_of("capquiz", 6, tmp_path)
    write_rows(tmp_path / "in/a.parquet", rows)
    write_rows(tmp_path / "in/b.parquet", [{"clip_id": "x", "caption": "y"}])
    (tmp_path / "in/c.parquet").write_text("no Parquet")
    assert run_score(tmp_path, "capquiz", "out", *on_ray(2)) == 1
    assert list(scores(tmp_path, "out")) == ["a.parquet"]
    out = capsys.readouterr().out
    assert "questions is not there of" in out
    assert "c.parquet: cannot be read as Parquet" in out
    assert judge.counts.n_requests


def test_a_judge_that_is_not_asked_any_more_ends_the_command(
    serve: ServerFactory,
    tmp_path: Path,
    settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the server's own words, not in Ray's; no file of rows without scores is there."""
    server = serve(latency_s=0.0, status=404)
    settings.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    write_rows(tmp_path / "in/a.parquet", rows_of("capquiz", 6, tmp_path))
    assert run_score(tmp_path, "capquiz", "out", *on_ray(2)) == 2
    error = capsys.readouterr().err
    assert "404" in error
    assert "Traceback" not in error
    assert not list((tmp_path / "out").rglob("*.parquet*"))


def test_a_limit_of_cost_is_kept_over_all_scorers(
    judge: JudgeServer,
    tmp_path: Path,
    settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Most of it is spent, however the rows fall to scorers; a higher one goes on."""
    settings.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o")
    settings.setenv("LMMS_CAPTIONS_MAX_COST", "0.05")
    for name in range(4):
        rows = rows_of("capquiz", 20, tmp_path)
        for row in rows:
            row["caption"] = f"{name} {row['caption']}"
        write_rows(tmp_path / "in" / f"{name}.parquet", rows)
    assert run_score(tmp_path, "capquiz", "out", *on_ray(2)) == 2
    assert "of $0.05 are spent, by all scorers together" in capsys.readouterr().err
    n_calls = judge.counts.n_requests
    # The server says 152 or 153 tokens in, 1 out.
    assert 90 <= n_calls <= 0.05 / (150 * 2.5e-6 + 1e-5)
    settings.setenv("LMMS_CAPTIONS_MAX_COST", "1")
    assert run_score(tmp_path, "capquiz", "out", *on_ray(2)) == 0
    assert judge.counts.n_requests == 240


def test_the_spending_of_dead_scorers_counts() -> None:
    """However many died; they were allowed more than they said."""
    ledger = Ledger(10.0)
    for name in ("a", "b"):
        ledger.start(name)
        assert ledger.settle(name, 4.0, 4.0, 4.5)[0] >= 4.5
    for name in ("a", "b"):
        ledger.start(name)
    assert ledger.spent_usd() >= 9.0
    assert [ledger.settle(name, 0.0, 0.0, 1.1)[0] for name in ("a", "b")] == [0.0, 0.0]


def test_ray_that_cannot_start_ends_in_a_sentence(
    judge: JudgeServer,
    tmp_path: Path,
    settings: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever kind of error it raises."""
    import ray

    def fail(*_: object, **__: object) -> None:
        raise Exception("The current node timed out during startup.\nSee the logs.")

    settings.setattr(ray, "is_initialized", lambda: False)
    settings.setattr(ray, "init", fail)
    write_rows(tmp_path / "in/a.parquet", rows_of("capquiz", 2, tmp_path))
    assert run_score(tmp_path, "capquiz", "out", *on_ray(1)) == 2
    error = capsys.readouterr().err
    assert "Ray could not start on this machine: The current node timed out" in error
    assert "Traceback" not in error
    assert not judge.counts.n_requests
