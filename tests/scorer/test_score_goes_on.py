"""Resumed runs of ``score``, their files, and the cost of one bad row."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clip_rows import WITH_QUESTIONS, read_rows, rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.model_wrappers.caption_clips import ClipCaptioner


@pytest.fixture
def judge(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge that answers as its prompts have it, and a cache of its own."""
    server = serve(latency_s=0.0, logprobs="whole")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return server


def score(*inputs: object, out: str = "out", protocol: str = "capquiz", more: object = ()) -> int:
    """The command over these inputs."""
    given = [word for each in inputs for word in ("--in", str(each))]
    words = [str(word) for word in more] if isinstance(more, (list, tuple)) else []
    return main(["score", *given, "--out", out, "--protocol", protocol, *words])


def put(path: str, n_rows: int = 4, **changes: Any) -> Path:
    """A file of rows."""
    rows = [{**row, **changes} for row in rows_of("capquiz", n_rows, Path())]
    return write_rows(Path(path), rows)


def test_scores_stay_in_their_folder(judge: JudgeServer) -> None:
    """Wherever inputs are, by whatever path: none of them is written over."""
    put("w/precious.parquet")
    put("w/sub/deep/q.parquet", 3)
    before = Path("w/precious.parquet").read_bytes()
    os.chdir("w/sub/deep")
    assert score("../../precious.parquet", "q.parquet", out="../../../out") == 0
    os.chdir("../../..")
    assert Path("w/precious.parquet").read_bytes() == before
    found = sorted(str(path) for path in Path().rglob("*.parquet") if "out" in path.parts)
    assert found == [
        "out/scores/precious.parquet",
        "out/scores/sub/deep/q.parquet",
    ]
    assert judge.counts.n_requests


def test_a_video_that_was_not_there_is_looked_for_again(judge: JudgeServer) -> None:
    """In another folder, or in the same once it is there."""
    rows = rows_of("vllm_judge", 3, Path("videos"))
    write_rows(Path("in/a.parquet"), rows)
    nowhere = ["--videos", "nowhere"]
    assert score("in", protocol="vllm_judge", more=nowhere) == 1
    assert score("in", protocol="vllm_judge", more=["--videos", "videos"]) == 0
    assert judge.counts.n_requests == 3, "nothing was asked about what was not there"
    Path("videos").rename("nowhere")
    assert score("in", protocol="vllm_judge", more=nowhere) == 0
    assert judge.counts.n_requests == 3


def test_what_a_judge_refused_is_asked_again(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rerun finds it mended."""
    put("in/a.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(judge, "_refusal", lambda _body: "not today")
        assert score("in") == 1
    assert score("in") == 0
    assert all(row["n_unscored"] == 0 for row in read_rows(Path("out/scores/a.parquet")))


def test_unreadable_replies_are_asked_anew_where_that_is_wanted(
    serve: ServerFactory, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of them is done, until ``LMMS_CAPTIONS_ASK_AGAIN=1``."""
    babbling = serve(latency_s=0.0)
    monkeypatch.setattr(babbling, "reply", lambda _prompt: "Hm.")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", babbling.url)
    put("in/a.parquet", 2)
    assert score("in") == 1
    n_calls = babbling.counts.n_requests
    assert n_calls == 6 * 4
    assert score("in") == 1
    assert babbling.counts.n_requests == n_calls
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", judge.url)
    monkeypatch.setenv("LMMS_CAPTIONS_ASK_AGAIN", "1")
    assert score("in") == 0
    assert judge.counts.n_requests == 6


BAD_QUESTIONS: Mapping[str, object] = {
    "deep": "[" * 100_000,
    "no JSON": "Who runs?",
    "an object": '{"question": "Who?"}',
    "numbers": "[1, 2]",
    "none": "[]",
}


@pytest.mark.parametrize("protocol", WITH_QUESTIONS)
@pytest.mark.parametrize("kind", BAD_QUESTIONS)
def test_questions_that_are_none_cost_their_row_alone(
    kind: str, protocol: str, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says why; the exit code is 1 and there are no totals where such rows are many."""
    rows = rows_of(protocol, 4, Path())
    for number, row in enumerate(rows):
        bad = number == 1
        row["questions"] = BAD_QUESTIONS[kind] if bad else json.dumps(row["questions"])
    write_rows(Path("in/a.parquet"), rows)
    assert score("in", protocol=protocol) == 1
    found = read_rows(Path("out/scores/a.parquet"))
    assert [row["n_questions"] is None for row in found] == [False, True, False, False]
    assert "question" in found[1]["why_unscored"]
    assert not found[1]["is_open"]
    out = capsys.readouterr().out
    assert "1 row could not be asked about" in out
    assert "nan: more questions are unscored, or rows not asked about, than" in out
    assert judge.counts.n_requests


@pytest.mark.parametrize("name", ["caption", "video"])
def test_odd_columns_cost_no_other_row(name: str, judge: JudgeServer) -> None:
    """Pandas' column of nan, and a structure for a name, with a captioner and without."""
    rows = rows_of("vllm_judge", 3, Path("videos"))
    table = pa.Table.from_pylist(rows)
    odd = pa.array([float("nan")] * 3) if name == "caption" else pa.array([{"path": "0.mp4"}] * 3)
    table = table.set_column(table.column_names.index(name), name, odd)
    Path("in").mkdir()
    pq.write_table(table, "in/odd.parquet")
    write_rows(Path("in/good.parquet"), rows)
    for more in ([], ["--captioner", "caption_baseline"]):
        words = ["--videos", "videos", *more]
        score("in", protocol="vllm_judge", out=f"out{len(more)}", more=words)
        good = read_rows(Path(f"out{len(more)}/scores/good.parquet"))
        assert all(row["n_unscored"] == 0 for row in good)
        odd_rows = read_rows(Path(f"out{len(more)}/scores/odd.parquet"))
        is_mended = name == "caption" and bool(more)
        assert all((row["why_unscored"] is None) == is_mended for row in odd_rows)
    assert judge.counts.n_requests


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--actors", "2"], "--engine: expected ray"),
        (["--address", "auto"], "--engine: expected ray"),
        (["--gpus", "1"], "--captioner: expected one for --gpus"),
        (["--captioner", "nope"], "caption_hf"),
    ],
)
def test_arguments_that_do_not_go_together_are_told(
    more: list[str], words: str, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read."""
    assert score("nowhere", more=more) == 2
    assert words in capsys.readouterr().err
    assert not judge.counts.n_requests


def test_a_captioner_s_error_is_not_reported_as_a_full_disk(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that it asks may be gone: that is an OSError, too."""

    def ask(_: object, videos: list[Path]) -> list[str]:
        if videos:
            raise ConnectionError("the captioner's server is gone")
        return []

    rows = rows_of("vllm_judge", 20, Path("videos"))
    write_rows(Path("in/a.parquet"), rows)
    write_rows(Path("in/b.parquet"), [{**row, "caption": None} for row in rows])
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    monkeypatch.setattr(ClipCaptioner, "captions", ask)
    captioner = ["--videos", "videos", "--captioner", "caption_baseline"]
    with pytest.raises(ConnectionError):
        score("in", protocol="vllm_judge", more=captioner)
    assert not list(Path("out").rglob("*.unfinished"))
