"""What ``score`` says: numbers that are there, with their nouns."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clip_rows import rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main


@pytest.fixture
def judge(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge that answers as its prompts have it, and a cache of its own."""
    server = serve(latency_s=0.0)
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return server


def score(*more: str, protocol: str = "capquiz", inputs: tuple[str, ...] = ("in",)) -> int:
    """The command over these inputs."""
    return main(["score", "--in", *inputs, "--out", "out", "--protocol", protocol, *more])


def put(path: str, n_rows: int, caption: str | None = None) -> Path:
    """A file of rows."""
    rows = rows_of("capquiz", n_rows, Path())
    for row in rows:
        row["caption"] = row["caption"] if caption is None else caption
    return write_rows(Path(path), rows)


def test_where_all_are_kept_nothing_is_said_of_others(
    judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """There are none."""
    put("in/a.parquet", 30)
    assert score("--keep", "1") == 0
    out = capsys.readouterr().out
    assert "of the kept clips" in out
    assert "of the others" not in out
    assert "nan" not in out
    assert score("--keep", "0.8") == 0
    assert "for the model; of the others" in capsys.readouterr().out
    assert judge.counts.n_requests


def test_files_without_rows_are_nothing_to_score(
    judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said; exit code 0."""
    whole = pq.read_table(put("in/a.parquet", 4))
    for name in "ab":
        pq.write_table(whole.slice(0, 0), f"in/{name}.parquet")
    assert score() == 0
    out = capsys.readouterr().out
    assert "capquiz: there was nothing to score, the files have no rows" in out
    assert "nan" not in out
    assert not judge.counts.n_requests


def test_names_of_files_may_come_without_quotes(judge: JudgeServer) -> None:
    """As a shell hands them over, and in several groups."""
    for name in "abc":
        put(f"in/{name}.parquet", 2)
    inputs = ("in/a.parquet", "in/b.parquet", "--in", "in/c.parquet")
    assert score(inputs=inputs) == 0
    found = sorted(path.name for path in Path("out/scores").iterdir())
    assert found == ["a.parquet", "b.parquet", "c.parquet"]
    assert judge.counts.n_requests == 6


def test_one_is_not_said_as_many(judge: JudgeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """One row, file, caption or clip."""
    put("in/a.parquet", 1, caption="...")
    assert score("--keep", "1", "--worst", "1") == 0
    said = capsys.readouterr()
    assert "1 row in 1 file\n" in said.err
    assert "1 row scored\n" in said.err
    assert (
        "capquiz: 1 of 1 clip has a score; 0 of 3 questions are unscored, 1 caption is empty"
        in said.out
    )
    assert "the worst 1 of them, 1 clip:" in said.out
    assert "kept: the best 1, 1 clip," in said.out
    put("in/b.parquet", 3, caption="...")
    Path("in/c.parquet").write_text("no Parquet")
    assert score() == 1
    said = capsys.readouterr()
    assert "4 rows in 2 files, 3 of them in 1 file to score" in said.err
    assert "; 1 file cannot be scored\n" in said.err
    assert "4 of 4 clips have a score; 0 of 12 questions are unscored, 4 captions are empty" in (
        said.out
    )
    assert not judge.counts.n_requests


def test_where_no_file_can_be_scored_they_are_called_files(
    judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """As everywhere else."""
    for name in "abc":
        Path("in").mkdir(exist_ok=True)
        Path(f"in/{name}.parquet").write_text("no Parquet")
    assert score() == 2
    assert "no file of 3 could be scored; the first: " in capsys.readouterr().err
    assert not judge.counts.n_requests


def test_rows_that_could_not_be_asked_about_are_not_called_scored(
    judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A protocol that asks other questions; and some rows of a file."""
    put("in/a.parquet", 5)
    assert score(protocol="vcapsbench") == 1
    assert "a.parquet: 0 rows scored, 5 could not be asked about\n" in capsys.readouterr().err
    assert not judge.counts.n_requests
    rows = rows_of("capquiz", 3, Path())
    rows[1]["questions"] = None
    write_rows(Path("in/a.parquet"), rows)
    assert score() == 1
    assert "a.parquet: 2 rows scored, 1 could not be asked about\n" in capsys.readouterr().err
