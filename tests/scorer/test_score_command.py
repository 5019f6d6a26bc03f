"""``lmms-eval-captions score``: files that cannot be read or written, lists, and what is said."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from clip_rows import read_rows, rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.scorer import parquet


@pytest.fixture
def judge(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge that answers as its prompts have it, and a cache of its own."""
    server = serve(latency_s=0.0, logprobs="whole")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    return server


def run_score(tmp_path: Path, *more: str, protocol: str = "capquiz") -> int:
    """The command over the folder ``in``."""
    folders = ["--in", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    return main(["score", *folders, "--protocol", protocol, *more])


def put(tmp_path: Path, name: str, n_rows: int = 4, **changes: Any) -> Path:
    """A file of rows below ``in``."""
    rows = [{**row, **changes} for row in rows_of("capquiz", n_rows, tmp_path)]
    return write_rows(tmp_path / "in" / f"{name}.parquet", rows)


def test_a_caption_too_long_for_the_judge_is_one_unscored_row(
    serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 400 fails its questions alone, in the server's words; other rows have their scores."""
    server = serve(latency_s=0.0)
    monkeypatch.setattr(server, "_refusal", lambda body: "too long" if len(body) > 50_000 else None)
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    rows = rows_of("capquiz", 3, tmp_path)
    rows[1]["caption"] = "A dog runs. " * 84_000
    write_rows(tmp_path / "in/a.parquet", rows)
    assert run_score(tmp_path) == 1
    found = read_rows(tmp_path / "out/scores/a.parquet")
    assert [row["n_unscored"] for row in found] == [0, 3, 0]
    assert "400" in found[1]["why_unscored"]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _words(path: Path) -> None:
    path.write_text("clip_id,caption\n1,A dog\n")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [_cut, _words, _empty])
def test_a_file_that_is_no_parquet_leaves_the_others_alone(
    damage: Callable[[Path], None],
    judge: JudgeServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is named with what is wrong; exit code 1, the other file is scored."""
    damage(put(tmp_path, "a"))
    put(tmp_path, "b")
    assert run_score(tmp_path) == 1
    assert "a.parquet: cannot be read as Parquet" in capsys.readouterr().out
    assert len(read_rows(tmp_path / "out/scores/b.parquet")) == 4
    assert judge.counts.n_requests


def test_a_file_that_vanishes_leaves_the_others_alone(
    judge: JudgeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Found, then gone when its turn comes; put back, a rerun scores it alone."""
    gone, rows = put(tmp_path, "b"), (tmp_path / "kept.parquet")
    put(tmp_path, "a")
    put(tmp_path, "c")
    read = parquet.read_shard

    def vanishing(shard: parquet.Shard, *args: Any, **kwargs: Any) -> Any:
        if shard.path == gone:
            gone.rename(rows)
        return read(shard, *args, **kwargs)

    monkeypatch.setattr(parquet, "read_shard", vanishing)
    assert run_score(tmp_path) == 1
    assert "b.parquet: is not there any more" in capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "out/scores").iterdir()) == [
        "a.parquet",
        "c.parquet",
    ]
    monkeypatch.setattr(parquet, "read_shard", read)
    rows.rename(gone)
    n_calls = judge.counts.n_requests
    assert run_score(tmp_path) == 0
    assert judge.counts.n_requests == n_calls, "the same rows: all replies are there"
    assert len(read_rows(tmp_path / "out/scores/b.parquet")) == 4


def test_a_file_that_changes_while_it_is_read_is_not_scored(
    judge: JudgeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scores of some of its rows are no scores of the file."""
    changed = put(tmp_path, "a")
    put(tmp_path, "b")
    read = parquet.read_shard

    def changing(shard: parquet.Shard, *args: Any, **kwargs: Any) -> Any:
        if shard.path == changed:
            put(tmp_path, "a", 3)
        return read(shard, *args, **kwargs)

    monkeypatch.setattr(parquet, "read_shard", changing)
    assert run_score(tmp_path) == 1
    assert "it was changed while it was read" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "out/scores").iterdir()] == ["b.parquet"]
    assert judge.counts.n_requests


@pytest.mark.parametrize("step", ["write_table", "close"])
def test_a_full_disk_leaves_no_half_file(
    step: str,
    judge: JudgeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(tmp_path, "a")
    put(tmp_path, "b")
    write = getattr(pq.ParquetWriter, step)
    failed: list[object] = []

    def full(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "a.parquet" in str(self.where) and not failed:
            failed.append(self.where)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetWriter, step, full)
    assert run_score(tmp_path) == 1
    assert "No space left on device; make room" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "out/scores").iterdir()] == ["b.parquet"]
    monkeypatch.setattr(pq.ParquetWriter, step, write)
    n_calls = judge.counts.n_requests
    assert run_score(tmp_path) == 0
    assert judge.counts.n_requests == n_calls


def test_a_judge_that_is_not_asked_any_more_ends_the_command(
    serve: ServerFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A wrong key: no file of rows without scores is written, and the server's words are said."""
    server = serve(latency_s=0.0, key="right")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    put(tmp_path, "a")
    assert run_score(tmp_path) == 2
    assert "401" in capsys.readouterr().err
    assert not list((tmp_path / "out").rglob("*.parquet*"))
    monkeypatch.setenv("OPENAI_API_KEY", "right")
    assert run_score(tmp_path) == 0
    assert len(read_rows(tmp_path / "out/scores/a.parquet")) == 4


def test_the_best_clips_are_kept_and_the_worst_listed(
    judge: JudgeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "a", 30)
    put(tmp_path, "b", 20, clip_id="twice")
    assert run_score(tmp_path, "--keep", "0.8", "--worst", "0.1") == 0
    rows = [row for name in "ab" for row in read_rows(tmp_path / f"out/scores/{name}.parquet")]
    by_score = sorted((row["capf1"] for row in rows), reverse=True)
    kept, worst = (read_rows(tmp_path / f"out/{name}.parquet") for name in ("kept", "worst"))
    assert sorted((row["score"] for row in kept), reverse=True) == by_score[:40]
    assert sorted(row["score"] for row in worst) == by_score[:-6:-1]
    assert {(row["clip_id"], row["score"]) for row in kept} <= {
        (row["clip_id"], row["capf1"]) for row in rows
    }
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["kept"]["n_clips"] == 40
    assert summary["n_repeated"] == 19
    assert 0 <= summary["kept"]["error"]["share"] <= 0.2
    out = capsys.readouterr().out
    assert "kept: the best 0.8, 40 clips" in out
    assert "would not be kept by their true scores" in out
    assert "19 rows with a clip_id that another row has, too" in out
    assert judge.counts.n_requests


def test_columns_may_be_called_otherwise(judge: JudgeServer, tmp_path: Path) -> None:
    """``--column`` says how; a name that is none of ours is a usage error."""
    rows = [
        {"id": row["clip_id"], "text": row["caption"], "questions": json.dumps(row["questions"])}
        for row in rows_of("capquiz", 3, tmp_path)
    ]
    write_rows(tmp_path / "in/a.parquet", rows)
    assert run_score(tmp_path, "--column", "clip_id=id", "--column", "caption=text") == 0
    found = read_rows(tmp_path / "out/scores/a.parquet")
    assert [row["clip_id"] for row in found] == ["clip 0", "clip 1", "clip 2"]
    assert judge.counts.n_requests == 9
    with pytest.raises(SystemExit):
        run_score(tmp_path, "--column", "title=text")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--protocol", "capquizz"], "was capquiz meant?"),
        (["--protocol", "vdc_classic_camera"], "asks none"),
        (["--in", "nowhere/*.parquet", "--protocol", "capquiz"], "none is there of"),
    ],
)
def test_what_cannot_be_begun_is_said(
    arguments: list[str],
    words: str,
    judge: JudgeServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, and nothing is asked."""
    put(tmp_path, "a")
    inputs = [] if "--in" in arguments else ["--in", str(tmp_path / "in")]
    assert main(["score", *inputs, *arguments, "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not judge.counts.n_requests


def test_captions_that_are_not_there_are_written(
    judge: JudgeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of("gveval_ref_free", 4, tmp_path / "videos")
    for row in rows[1:]:
        row["caption"] = None
    rows[3]["video"] = "broken.mp4"
    (tmp_path / "videos/broken.mp4").write_text("no video")
    write_rows(tmp_path / "in/a.parquet", rows)
    captioner = ["--captioner", "caption_baseline", "--videos", str(tmp_path / "videos")]
    assert run_score(tmp_path, *captioner, protocol="gveval_ref_free") == 1
    found = read_rows(tmp_path / "out/scores/a.parquet")
    assert found[0]["caption"] == rows[0]["caption"]
    assert all(len(row["caption"]) > 20 for row in found[1:3])
    assert [row["n_unscored"] for row in found] == [0, 0, 0, 1]
    assert found[3]["caption"] is None
    assert found[3]["why_unscored"].startswith("no caption: ")
    n_calls = judge.counts.n_requests
    assert n_calls == 3
    assert "1 row: no caption: " in capsys.readouterr().out


def test_a_file_may_have_no_captions_at_all(judge: JudgeServer, tmp_path: Path) -> None:
    """Then the captioner writes all of them, and a rerun writes none."""
    rows = rows_of("vllm_judge", 3, tmp_path / "videos")
    for row in rows:
        del row["caption"]
    write_rows(tmp_path / "in/a.parquet", rows)
    captioner = ["--captioner", "caption_baseline", "--videos", str(tmp_path / "videos")]
    for _ in range(2):
        assert run_score(tmp_path, *captioner, protocol="vllm_judge") == 0
    assert all(row["caption"] for row in read_rows(tmp_path / "out/scores/a.parquet"))
    assert judge.counts.n_requests == 3
