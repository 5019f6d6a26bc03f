"""What ``score`` promises, for every protocol: the scorer's scores, row by row, come what may."""

from __future__ import annotations

import json
import shutil
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from clip_rows import COLUMNS, PROTOCOLS, read_rows, rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions import Scorer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.benchmark import _tokenizer_at
from recorded_runs import RECORDING


@pytest.fixture
def judge(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge that answers as its prompts have it, and a cache of its own."""
    server = serve(latency_s=0.0, logprobs="whole")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    return server


def run_score(tmp_path: Path, protocol: str, *more: str) -> int:
    """The command over ``in/*.parquet``."""
    return main(
        [
            "score", "--in", str(tmp_path / "in/*.parquet"), "--out", str(tmp_path / "out"),
            "--protocol", protocol, "--videos", str(tmp_path / "videos"), *more,
        ]
    )  # fmt: skip


def scores(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    """Rows of a file of scores."""
    return read_rows(tmp_path / "out/scores" / f"{name}.parquet")


def by_scorer(protocol: str, rows: list[dict[str, Any]], videos: Path) -> list[dict[str, Any]]:
    """What a scorer makes of the same rows, asked list by list."""
    with Scorer(protocol) as scorer:
        scored = scorer.score(
            [row["caption"] for row in rows],
            [row.get("questions", ()) for row in rows],
            [videos / row["video"] if "video" in row else None for row in rows],
            references=[row.get("reference") or () for row in rows],
            clip_ids=[row["clip_id"] for row in rows],
        )
        return [
            {name: None if isnan(value) else value for name, value in each.scores.items()}
            | {"verdicts": each.record.values[scorer.headline], "n_unscored": each.n_unscored}
            for each in scored
        ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scores_are_the_scorer_s(protocol: str, judge: JudgeServer, tmp_path: Path) -> None:
    """Row by row to the last bit, captions that are empty or not there included; no call twice."""
    rows = rows_of(protocol, 9, tmp_path / "videos")
    rows[2]["caption"], rows[5]["caption"] = " ... ", None
    write_rows(tmp_path / "in/a.parquet", rows[:4])
    write_rows(tmp_path / "in/b.parquet", rows[4:])
    assert run_score(tmp_path, protocol) == 1, "a caption that is not there is too much of 9"
    n_calls = judge.counts.n_requests
    found = scores(tmp_path, "a") + scores(tmp_path, "b")
    assert [row["clip_id"] for row in found] == [row["clip_id"] for row in rows]
    for row, expected in zip(found, by_scorer(protocol, rows, tmp_path / "videos"), strict=True):
        assert {name: row[name] for name in expected} == expected
    assert judge.counts.n_requests == n_calls, "the scorer finds all replies in the store"
    assert found[5]["why_unscored"] == "no caption: none was given"
    assert found[2]["is_empty"]
    assert any(row["n_unscored"] == 0 for row in found)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rerun_asks_and_writes_nothing(protocol: str, judge: JudgeServer, tmp_path: Path) -> None:
    """A finished file is left alone; one whose rows changed is scored again, by the replies."""
    rows = rows_of(protocol, 6, tmp_path / "videos")
    write_rows(tmp_path / "in/a.parquet", rows[:3])
    write_rows(tmp_path / "in/b.parquet", rows[3:])
    assert run_score(tmp_path, protocol) == 0
    n_calls = judge.counts.n_requests
    files = [tmp_path / f"out/scores/{name}.parquet" for name in "ab"]
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in files]
    assert run_score(tmp_path, protocol) == 0
    assert [(path.stat().st_mtime_ns, path.read_bytes()) for path in files] == before
    assert judge.counts.n_requests == n_calls
    write_rows(tmp_path / "in/a.parquet", rows[:2])
    assert run_score(tmp_path, protocol) == 0
    assert [row["clip_id"] for row in scores(tmp_path, "a")] == ["clip 0", "clip 1"]
    assert files[1].read_bytes() == before[1][1]
    assert judge.counts.n_requests == n_calls


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_endpoint_is_asked_where_its_own_replies_serve(
    protocol: str,
    judge: JudgeServer,
    serve: ServerFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Once, though its model has the same name; by default the replies of the first one serve."""
    other = serve(latency_s=0.0, logprobs="whole")
    write_rows(tmp_path / "in/a.parquet", rows_of(protocol, 3, tmp_path / "videos"))
    assert run_score(tmp_path, protocol) == 0
    n_calls = judge.counts.n_requests
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", other.url)
    assert run_score(tmp_path, protocol) == 0
    assert other.counts.n_requests == 0
    monkeypatch.setenv("LMMS_CAPTIONS_STORE_BY", "endpoint")
    for _ in range(2):
        assert run_score(tmp_path, protocol) == 0
        assert other.counts.n_requests == n_calls
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", judge.url)
    assert run_score(tmp_path, protocol) == 0
    assert judge.counts.n_requests == n_calls, "its replies are in the store"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_metric_that_could_not_be_computed_is_there_once_it_can(
    protocol: str, judge: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same command, of the replies that are there; until then nothing is written anew."""
    tokenizer, file = tmp_path / "t5/tokenizer.json", tmp_path / "out/scores/a.parquet"
    monkeypatch.setenv("LMMS_CAPTIONS_T5", str(tokenizer))
    write_rows(tmp_path / "in/a.parquet", rows_of(protocol, 3, tmp_path / "videos"))

    def written_at() -> int:
        _tokenizer_at.cache_clear()  # as in a process of its own
        assert run_score(tmp_path, protocol) == 0
        return file.stat().st_mtime_ns

    first = written_at()
    n_calls = judge.counts.n_requests
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    lacking = [name for name, value in summary["totals"].items() if value is None]
    assert lacking == (["con"] if protocol == "vidcapbench" else [])
    assert written_at() == first
    tokenizer.parent.mkdir()
    shutil.copy(RECORDING / "t5/tokenizer.json", tokenizer)
    mended = written_at()
    assert (mended != first) == bool(lacking)
    assert written_at() == mended
    assert judge.counts.n_requests == n_calls
    assert all(row[name] is not None for row in scores(tmp_path, "a") for name in lacking)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert None not in summary["totals"].values()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_totals_are_those_of_the_scorer(protocol: str, judge: JudgeServer, tmp_path: Path) -> None:
    """The summary's numbers are the task's arithmetic over all rows, here of two judge runs."""
    assert judge.url
    rows = rows_of(protocol, 12, tmp_path / "videos")
    write_rows(tmp_path / "in/a.parquet", rows[:5])
    write_rows(tmp_path / "in/b.parquet", rows[5:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
        assert run_score(tmp_path, protocol) == 0
        with Scorer(protocol) as scorer:
            scored = scorer.score(
                [row["caption"] for row in rows],
                [row.get("questions", ()) for row in rows],
                [tmp_path / "videos" / row["video"] if "video" in row else None for row in rows],
                references=[row.get("reference") or () for row in rows],
            )
            totals = scorer.totals(scored)
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["n_scored"] == 12
    for name, value in totals.items():
        if isnan(value):
            assert summary["totals"][name] is None
        else:
            assert summary["totals"][name] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(("protocol", "missing"), COLUMNS)
def test_a_file_without_a_column_leaves_the_others_alone(
    protocol: str,
    missing: str,
    judge: JudgeServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is named with the columns that it has; the other file is scored."""
    rows = rows_of(protocol, 4, tmp_path / "videos")
    write_rows(tmp_path / "in/a.parquet", [_without(row, missing) for row in rows[:2]])
    write_rows(tmp_path / "in/b.parquet", rows[2:])
    assert run_score(tmp_path, protocol) == 1
    assert [row["clip_id"] for row in scores(tmp_path, "b")] == ["clip 2", "clip 3"]
    assert not (tmp_path / "out/scores/a.parquet").exists()
    out = capsys.readouterr().out
    assert f"{missing} is not there of" in out
    assert "a.parquet: expected the columns clip_id, caption" in out
    assert judge.counts.n_requests
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert [Path(each["file"]).name for each in summary["failed"]] == ["a.parquet"]


@pytest.mark.parametrize(("protocol", "name"), COLUMNS)
def test_nulls_are_unscored_rows(
    protocol: str, name: str, judge: JudgeServer, tmp_path: Path
) -> None:
    """A row that lacks something has no score and says why; all others have theirs."""
    rows = rows_of(protocol, 4, tmp_path / "videos")
    rows[1][name] = None
    write_rows(tmp_path / "in/a.parquet", rows)
    run_score(tmp_path, protocol)
    found = scores(tmp_path, "a")
    with Scorer(protocol) as scorer:
        headline = scorer.headline
    assert [row[headline] is None for row in found] == [False, True, False, False]
    expected = {
        "clip_id": "the row has no clip_id",
        "caption": "no caption: none was given",
        "questions": "expected at least one question of the clip, got none",
        "reference": "expected at least one reference caption of the clip, got none",
        "video": "expected the video or frames of the clip, got none",
    }
    assert expected[name] in found[1]["why_unscored"]
    assert judge.counts.n_requests


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {column: value for column, value in row.items() if column != name}
