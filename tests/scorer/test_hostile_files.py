"""Files and names that come from elsewhere: what is wrong costs itself, and stays in its folder."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clip_rows import read_rows, rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions import CaptionReward, Scorer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.scorer import keeping, summary


@pytest.fixture(autouse=True)
def judge(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge, and a current folder of its own."""
    server = serve(latency_s=0.0, logprobs="whole")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    monkeypatch.chdir(tmp_path)
    return server


def score(*more: str, protocol: str = "capquiz", inputs: str = "in") -> int:
    """The command over a folder."""
    return main(["score", "--in", inputs, "--out", "out", "--protocol", protocol, *more])


def write_table(name: str, columns: dict[str, Any], names: list[str] | None = None) -> None:
    """A file below ``in``."""
    Path("in").mkdir(exist_ok=True)
    table = pa.Table.from_arrays(
        [pa.array(c) if isinstance(c, list) else c for c in columns.values()],
        names=names or list(columns),
    )
    pq.write_table(table, f"in/{name}.parquet", compression="zstd")


def good_columns(n: int) -> dict[str, Any]:
    """Columns of rows that can be scored."""
    rows = rows_of("capquiz", n, Path())
    return {name: [row[name] for row in rows] for name in rows[0]}


def not_utf8(texts: list[str], *bad: int) -> pa.Array:
    """Texts, some of which are not UTF-8, as writers that do not look leave them."""
    raw = [b"A caf\xe9." if index in bad else text.encode() for index, text in enumerate(texts)]
    return pa.array(raw, pa.binary()).view(pa.string())


def test_a_text_that_is_not_utf8_costs_its_row() -> None:
    """Caption, name or question: the others are scored, the row says why it is not."""
    columns = good_columns(4)
    asked = [json.dumps(question) for question in columns["questions"]]
    columns["caption"] = not_utf8(columns["caption"], 1)
    columns["clip_id"] = not_utf8(columns["clip_id"], 2)
    columns["questions"] = not_utf8(asked, 3)
    write_table("a", columns)
    assert score() == 0
    rows = read_rows(Path("out/scores/a.parquet"))
    assert [row["n_questions"] for row in rows] == [3, None, None, None]
    why = [row["why_unscored"] for row in rows[1:]]
    assert all("expected text in UTF-8" in text for text in why)
    assert [text.partition(":")[0] for text in why] == ["caption", "clip_id", "questions"]


def test_two_columns_of_one_name_cost_their_file(capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, the other file is scored."""
    columns = good_columns(2)
    write_table("b", columns)
    write_table("a", {**columns, "again": columns["caption"]}, [*columns, "caption"])
    assert score() == 1
    assert "expected one column 'caption', there are several" in capsys.readouterr().out
    assert len(read_rows(Path("out/scores/b.parquet"))) == 2


@pytest.mark.parametrize("kind", ["packed", "repeated"])
def test_a_file_that_expands_without_bound_is_refused(
    kind: str, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what it declares, or by what its first rows take."""
    columns = good_columns(2)
    write_table("b", columns)
    n, long = 20, "a" * 5_000_000
    big = {name: [values[0]] * n for name, values in columns.items()} | {"caption": [long] * n}
    path = Path("in/a.parquet")
    pq.write_table(pa.table(big), path, compression="zstd", use_dictionary=kind == "repeated")
    assert path.stat().st_size < 200_000
    assert score() == 1
    out = capsys.readouterr().out
    assert ("expands from" if kind == "packed" else "rows take") in out
    assert len(read_rows(Path("out/scores/b.parquet"))) == 2
    assert judge.counts.n_requests == 6


def test_a_file_of_another_folder_is_not_taken_for_done() -> None:
    """Also of the same name, size, time and number of rows."""
    for folder, text in (("one", "A dog runs."), ("two", "A cat naps.")):
        rows = [{**row, "caption": text} for row in rows_of("capquiz", 2, Path())]
        write_rows(Path(folder) / "a.parquet", rows)
    stats = [Path(folder, "a.parquet").stat() for folder in ("one", "two")]
    assert stats[0].st_size == stats[1].st_size
    os.utime("two/a.parquet", ns=(stats[0].st_atime_ns, stats[0].st_mtime_ns))
    found = []
    for folder in ("one", "two"):
        assert score(inputs=folder) == 0
        found.append(pq.read_metadata("out/scores/a.parquet").metadata[b"lmms_eval_captions"])
    assert found[0] != found[1]


def test_a_link_at_an_unfinished_file_is_not_followed() -> None:
    Path("precious").write_text("mine")
    Path("out/scores").mkdir(parents=True)
    for name in ("scores/a.parquet", "worst.parquet"):
        Path(f"out/{name}.unfinished").symlink_to(Path("precious").absolute())
    write_table("a", good_columns(3))
    assert score() == 0
    assert Path("precious").read_text() == "mine"
    assert len(read_rows(Path("out/scores/a.parquet"))) == 3


def test_names_of_more_than_two_gib_are_summarised(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no array of 32-bit offsets: the list has 64-bit ones."""
    write_table("a", good_columns(3))
    kinds = set()
    kept = keeping.kept_clips

    def looked(names: Any, *rest: Any, **more: Any) -> Any:
        kinds.add(names.type)
        return kept(names, *rest, **more)

    monkeypatch.setattr(summary, "kept_clips", looked)
    assert score("--keep", "80") == 0
    assert kinds == {pa.large_string()}
    assert json.loads(Path("out/summary.json").read_text())["kept"]["share"] == 0.8


@pytest.fixture
def outside(tmp_path: Path) -> list[str]:
    """Names of a video that lies outside of ``clips``."""
    rows_of("vllm_judge", 1, tmp_path / "private")
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/link.mp4").symlink_to(tmp_path / "private/0.mp4")
    return ["../private/0.mp4", str(tmp_path / "private/0.mp4"), "link.mp4"]


def test_videos_outside_of_their_folder_are_not_opened(
    outside: list[str], judge: JudgeServer, tmp_path: Path
) -> None:
    """By ``score``, captioner and all, a scorer and a reward."""
    rows = [{"clip_id": name, "caption": "A dog.", "video": name} for name in outside]
    write_rows(Path("in/a.parquet"), rows)
    for more in ([], ["--captioner", "caption_baseline"]):
        assert score("--videos", "clips", *more, protocol="vllm_judge") == 1
        assert all(
            "lies elsewhere" in row["why_unscored"]
            for row in read_rows(Path("out/scores/a.parquet"))
        )
    with (
        Scorer("vllm_judge", videos="clips") as scorer,
        CaptionReward("vllm_judge", videos="clips", evaluation=None) as reward,
    ):
        for name in outside:
            with pytest.raises(DataError, match="lies elsewhere"):
                scorer.score(["A dog."], frames=[name])
            with pytest.raises(DataError, match="lies elsewhere"):
                reward([""], ["A dog."], clip_id=["a"], video=[name])
        assert not judge.counts.n_requests
        [found] = scorer.score(["A dog."], frames=[tmp_path / "private/0.mp4"])
    assert found.n_unscored == 0


def test_scorers_and_rewards_of_a_process_share_one_engine(
    serve: ServerFactory, tmp_path: Path
) -> None:
    """A request that several make at once is sent once, within one limit of concurrency."""
    server = serve(latency_s=0.1)
    questions = [[{"question": f"Number {n}?", "answer": "yes"} for n in range(8)]] * 2
    more: Any = {"judge_url": server.url, "concurrency": 4, "cache": tmp_path / "c"}
    captions = ["A dog runs.", "A cat runs."]
    columns: dict[str, object] = {"clip_id": ["a", "b"], "questions": questions}
    rewards = [CaptionReward("vdc", evaluation=None, **more) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        found = [pool.submit(each, [""] * 2, captions, **columns) for each in rewards]
        assert found[0].result() == found[1].result()
    with Scorer("vdc", **more) as scorer:
        scores = scorer.score(captions, questions)
        rewards[0].close()
        assert scorer.score(["A cow."], questions[:1])[0].n_unscored == 0
    rewards[1].close()
    assert server.counts.n_repeated == 0
    assert server.counts.most_in_flight <= 4
    assert "record" not in repr(scores[0])
    assert len(repr(scores[0])) < 200
