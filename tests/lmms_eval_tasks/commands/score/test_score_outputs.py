"""What ``score`` writes over: lists, summary and scores of its own, and no file of the user's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clip_rows import read_rows, rows_of, write_rows
from conftest import ServerFactory
from judge_server import JudgeServer
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.score import local_engine

KEY = "right"


@pytest.fixture
def judge(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """A judge with a key, a cache of its own, and an input folder with one file."""
    server = serve(latency_s=0.0, key=KEY)
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    put("in/a.parquet")
    return server


def put(path: str, n_rows: int = 4) -> Path:
    """A file of rows."""
    return write_rows(Path(path), rows_of("capquiz", n_rows, Path()))


def score(*more: str, out: str = "out", inputs: str = "in") -> int:
    """The command, with both lists."""
    given = ["--in", inputs, "--out", out, "--protocol", "capquiz"]
    return main(["score", *given, "--keep", "0.5", "--worst", "0.5", *more])


def rows_to_score(path: Path) -> None:
    """Rows as those of the input."""
    write_rows(path, rows_of("capquiz", 3, Path()))


def a_list_by_others(path: Path) -> None:
    """The columns of a list, without the mark."""
    write_rows(path, [{"clip_id": "clip 0", "score": 1.0}])


def a_list_with_more(path: Path) -> None:
    """A list of the command's own to which the user has added a column."""
    assert score(out="earlier") == 0
    table = pq.read_table(f"earlier/{path.name}")
    pq.write_table(table.append_column("note", table.column("clip_id")), path)


def a_list_with_fewer(path: Path) -> None:
    """A list of the command's own of which the user has chosen some rows."""
    assert score(out="earlier") == 0
    pq.write_table(pq.read_table(f"earlier/{path.name}").slice(0, 0), path)


def scores_of_another_file(path: Path) -> None:
    """A file of scores that the user has copied."""
    assert score(out="earlier") == 0
    path.write_bytes(Path("earlier/scores/a.parquet").read_bytes())


def words(path: Path) -> None:
    """No Parquet, and no JSON."""
    path.write_text("my notes")


def a_folder(path: Path) -> None:
    """No file."""
    path.mkdir()


def a_summary_by_others(path: Path) -> None:
    """JSON with some of the names."""
    path.write_text(json.dumps({"protocol": "capquiz", "totals": {}}))


def deep_json(path: Path) -> None:
    """JSON too deep to read."""
    path.write_text("[" * 200_000)


def a_link_to_nowhere(path: Path) -> None:
    """A link of the user's whose file is not there now."""
    path.symlink_to("/nowhere/at/all")


def content(path: Path) -> tuple[int, int, bytes | None]:
    """What a file is, when it was last changed, and what is in it."""
    status = path.lstat()
    return status.st_ino, status.st_mtime_ns, path.read_bytes() if path.is_file() else None


LISTS = (
    rows_to_score, a_list_by_others, a_list_with_more, a_list_with_fewer, scores_of_another_file,
    words, a_folder, a_link_to_nowhere,
)  # fmt: skip
SUMMARIES = (a_summary_by_others, deep_json, words, a_folder, a_link_to_nowhere)
FILES = (
    *((name, make) for name in ("kept.parquet", "worst.parquet") for make in LISTS),
    *(("summary.json", make) for make in SUMMARIES),
    *(("scores/a.parquet", make) for make in (rows_to_score, words, a_link_to_nowhere)),
)


@pytest.mark.parametrize(("name", "make"), FILES)
def test_a_file_of_the_user_is_refused_and_left_as_it_is(
    name: str,
    make: Callable[[Path], None],
    judge: JudgeServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2 with its name before anything is asked; another folder is asked for."""
    path = Path("out") / name
    path.parent.mkdir(parents=True)
    make(path)
    before = content(path)
    n_calls = judge.counts.n_requests
    assert score() == 2
    error = capsys.readouterr().err
    assert f"--out: {path} was not written by this command, which would write over it" in error
    assert "name another folder with --out" in error
    assert content(path) == before
    assert judge.counts.n_requests == n_calls
    assert score(out="other") == 0


@pytest.mark.parametrize("name", ["kept.parquet", "worst.parquet"])
def test_an_input_is_not_left_out_for_its_name(
    name: str, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is refused where the command would write over it, and else scored as every other."""
    put(f"p1/{name}", 3)
    put("p1/b.parquet")
    before = Path("p1", name).read_bytes()
    for inputs in ("p1", f"p1/{name}", "p1/*.parquet"):
        assert score(inputs=inputs, out="p1") == 2
        assert f"--out: p1/{name} was not written by this command" in capsys.readouterr().err
    assert not judge.counts.n_requests
    assert score(inputs="p1") == 0
    assert len(read_rows(Path("out/scores") / name)) == 3
    assert Path("p1", name).read_bytes() == before


def test_inputs_below_a_folder_called_scores_are_scored(judge: JudgeServer) -> None:
    """Those that are no scores of the command's; its own are left out."""
    put("w/scores/mine.parquet", 3)
    put("w/b.parquet")
    for _ in range(2):
        assert score(inputs="w/**/*.parquet", out="w") == 0
        assert json.loads(Path("w/summary.json").read_text())["n_rows"] == 7
    assert len(read_rows(Path("w/scores/scores/mine.parquet"))) == 3
    assert "questions" in read_rows(Path("w/scores/mine.parquet"))[0]
    assert judge.counts.n_requests == 12


def _state() -> dict[str, bytes]:
    names = ("kept.parquet", "worst.parquet", "summary.json")
    return {name: Path("out", name).read_bytes() for name in names}


@pytest.mark.parametrize("end", ["refused", "interrupted"])
def test_a_run_that_does_not_end_leaves_lists_and_summary(
    end: str, judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the last run that did stay until there are new ones."""
    assert score() == 0
    before = _state()
    write_rows(Path("in/b.parquet"), rows_of("capquiz", 9, Path())[4:])
    with monkeypatch.context() as patch:
        if end == "refused":
            patch.setenv("OPENAI_API_KEY", "wrong")
        else:
            patch.setattr(local_engine, "read_shard", _interrupt)
        assert score() == (2 if end == "refused" else 130)
    assert _state() == before
    assert score() == 0
    assert json.loads(_state()["summary.json"])["n_rows"] == 9
    assert len(read_rows(Path("out/kept.parquet"))) == 4
    assert judge.counts.n_requests


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_lists_that_the_new_run_does_not_have_go(judge: JudgeServer) -> None:
    """Where nothing has a score, neither the worst nor the best of an earlier run stay."""
    assert score() == 0
    whole = pq.read_table("in/a.parquet")
    pq.write_table(whole.slice(0, 0), "in/a.parquet")
    assert score() == 0
    assert sorted(path.name for path in Path("out").iterdir() if path.suffix) == ["summary.json"]
    assert judge.counts.n_requests == 12


@pytest.mark.parametrize("name", ["scores/a.parquet", "kept.parquet", "summary.json"])
def test_a_file_without_a_byte_is_in_nobody_s_way(name: str, judge: JudgeServer) -> None:
    """A power cut may leave one of the command's own."""
    assert score() == 0
    n_requests = judge.counts.n_requests
    whole = Path("out", name).read_bytes()
    Path("out", name).write_bytes(b"")
    assert score() == 0
    assert len(Path("out", name).read_bytes()) == len(whole)
    assert judge.counts.n_requests == n_requests
