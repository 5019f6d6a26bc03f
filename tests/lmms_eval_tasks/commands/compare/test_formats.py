"""Every format holds the same numbers, and can be read back or pasted."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.compare.cli import FORMATS
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.verdicts import verdicts
from planted_pairs import TASKS, drawn, plant, records
from planted_runs import STAMP, write_run

NAMES: Final = ("plain", "50%_of_A&B#1", "a_captioner_whose_name_is_long_indeed_{x}")


@pytest.fixture(params=TASKS)
def folders(tmp_path: Path, request: pytest.FixtureRequest) -> list[str]:
    """Three captioners whose names are hard on every format."""
    task = request.param
    return [
        str(plant(tmp_path / name, task, drawn(task, seed, n_videos=15), words=4 + seed))
        for seed, name in enumerate(NAMES)
    ]


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["compare", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--paper"]], ids=["compare", "paper"])
def test_csv_and_json_hold_the_same_numbers(
    folders: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A line of CSV for each row of JSON, and no NaN in it."""
    text = _printed(capsys, *folders, *more, "--format", "json")
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    rows = document if more else [row for one in document["compared"] for row in one["rows"]]
    lines = list(csv.DictReader(io.StringIO(_printed(capsys, *folders, *more, "--format", "csv"))))
    assert len(lines) == len(rows) > 3
    for line, row in zip(lines, rows, strict=True):
        for name, cell in line.items():
            expected = row[name]
            if isinstance(expected, float):
                assert float(cell) == expected
            else:
                assert cell == ("" if expected is None else str(expected))


@pytest.mark.parametrize("more", [[], ["--paper"]], ids=["compare", "paper"])
def test_text_is_at_most_100_columns_wide(
    folders: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever captioners are called; wide tables continue below themselves."""
    lines = _printed(capsys, *folders, *more).splitlines()
    assert [line for line in lines if len(line) > 100] == []


@pytest.mark.parametrize("more", [[], ["--paper"]], ids=["compare", "paper"])
def test_latex_has_as_many_cells_in_every_row_and_escapes_what_it_must(
    folders: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No special character stands bare outside a comment, and braces are closed."""
    lines = _printed(capsys, *folders, *more, "--format", "latex").splitlines()
    n_columns = 0
    for line in (line for line in lines if not line.startswith("%")):
        begin = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", line)
        n_columns = len(begin[1]) if begin else n_columns
        bare = re.sub(r"\\[&%$#_{}]", "", line)
        assert not re.search(r"[%#_~^<>|]", bare)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        if line.endswith(r"\\"):
            over = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", bare))
            assert bare.count(" & ") + 1 + over == n_columns
    text = "\n".join(lines)
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") > 0
    assert r"50\%\_of\_A\&B\#1" in text


@pytest.mark.parametrize("more", [[], ["--paper"]], ids=["compare", "paper"])
def test_markdown_has_as_many_cells_in_every_row(
    folders: list[str], more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a name holds what Markdown takes for its own."""
    lines = _printed(capsys, *folders, *more, "--format", "markdown").splitlines()
    n_cells = [len(re.findall(r"(?<!\\)\|", line)) if line[:1] == "|" else 0 for line in lines]
    assert any(n_cells)
    for before, now in pairwise(n_cells):
        assert not before or not now or before == now


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("folders", ["vcapsbench"], indirect=True)
def test_output_goes_into_a_file(
    folders: list[str], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same that would be printed."""
    expected = _printed(capsys, *folders, "--format", kind)
    path = tmp_path / "new" / "out"
    assert _printed(capsys, *folders, "--format", kind, "--output", str(path)) == ""
    assert path.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("folders", ["vcapsbench"], indirect=True)
def test_the_text_says_in_words_who_is_better(
    folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence for each captioner; a metric of which less is better is told as such."""
    good = plant(tmp_path / "good", "vcapsbench", drawn("vcapsbench", 1, n_videos=15, good=0.9))
    bad = plant(tmp_path / "bad", "vcapsbench", drawn("vcapsbench", 2, n_videos=15, good=0.2))
    told = _printed(capsys, str(bad), str(good), folders[0])
    flat = " ".join(told.split())
    assert "good is better than bad on ar of vcapsbench: +" in flat
    assert "better in 2 of 2 groups" in flat
    assert "ir (lower is better)" in told
    lines = told.splitlines()
    after_ir = lines[next(n for n, line in enumerate(lines) if line.startswith("ir ")) + 1]
    assert after_ir.split()[0] == "good"
    assert re.search(r"-\d+\.\d+ \[-.*better$", after_ir)
    assert "Holm's correction over the 2 captioners" in flat


def test_a_tie_is_called_a_tie(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With how many videos would tell a difference of that size."""
    folders = [
        str(plant(tmp_path / name, "vcapsbench", drawn("vcapsbench", seed, n_videos=40)))
        for name, seed in (("a", 3), ("b", 4))
    ]
    flat = " ".join(_printed(capsys, *folders).split())
    assert "b and a are tied on ar of vcapsbench" in flat
    assert "which is better cannot be told from these videos" in flat
    assert re.search(r"About [\d,]+ videos like these \(now 40\) would tell", flat)


def test_a_section_of_the_breakdown_can_be_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one of free words; a name that there is not is an error that lists them."""
    folders = [
        str(plant(tmp_path / name, "vdc_camera", drawn("vdc_camera", seed)))
        for name, seed in (("a", 3), ("b", 4))
    ]
    assert "vdc_acc by categories" in _printed(capsys, *folders, "--group", "categories")
    assert main(["compare", *folders, "--group", "nothing"]) == 2
    assert "any of aspects, categories, got 'nothing'" in capsys.readouterr().err


def test_words_and_tokens_of_captions_stand_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words are of the captions compared; VidCapBench's runs count T5's tokens themselves."""
    task = "vidcapbench_ae"
    folders = [
        str(plant(tmp_path / name, task, drawn(task, n), words=n))
        for name, n in (("a", 5), ("b", 9))
    ]
    document = json.loads(_printed(capsys, *folders, "--format", "json"))
    lengths = document["compared"][0]["lengths"]
    assert [(one["words"], one["tokens"]) for one in lengths] == [(5, 5), (9, 9)]


def test_captions_without_a_word_are_counted_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They count as ones that say nothing: a captioner may be worse for these alone."""
    task = "vcapsbench"
    of = records(task, drawn(task, 1, n_videos=15))
    for name, n_empty in (("a", 0), ("b", 3)):
        empty = [replace(record, n_empty=1, n_words=0) for record in of[:n_empty]]
        write_run(tmp_path / name, {task: [*empty, *of[n_empty:]]})
    folders = [str(tmp_path / name) for name in "ab"]
    document = json.loads(_printed(capsys, *folders, "--format", "json"))
    assert [one["n_empty"] for one in document["compared"][0]["lengths"]] == [0, 3]
    told = _printed(capsys, *folders)
    table = told[told.index("How long the captions are") :].splitlines()
    assert "without a word" in table[1]
    assert table[3].split()[:3] == ["b", "15", "3"]


def test_tokens_are_counted_in_sample_logs_where_there_is_a_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bench: pytest.MonkeyPatch
) -> None:
    """Of the videos that are compared; without a log it is said why there are none."""
    task = "vcapsbench"
    folders = [
        plant(tmp_path / name, task, drawn(task, seed, n_videos=3))
        for seed, name in enumerate("ab")
    ]
    arguments = [*map(str, folders), "--format", "json"]
    bench.setenv("LMMS_CAPTIONS_T5", str(_tokenizer(tmp_path / "tokenizer.json")))
    (before, _) = json.loads(_printed(capsys, *arguments))["compared"][0]["lengths"]
    assert before["tokens"] is None
    assert "--log_samples" in before["tokens_reason"]
    for folder, words in zip(folders, (["a a"], "a a a"), strict=True):
        samples = [
            {"filtered_resps": words, "ar": {"video_id": f"video_{video:03}.mp4"}}
            for video in range(3)
        ]
        samples.append({"filtered_resps": "a " * 99, "ar": {"video_id": "another.mp4"}})
        log = folder / "m" / f"{STAMP}_samples_{task}.jsonl"
        log.write_text("".join(f"{json.dumps(sample)}\n" for sample in samples))
    lengths = json.loads(_printed(capsys, *arguments))["compared"][0]["lengths"]
    assert [length["tokens"] for length in lengths] == [2, 3]


def test_tokens_of_a_group_are_those_of_its_own_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bench: pytest.MonkeyPatch
) -> None:
    """A task of it that was run again by itself, later, has other captions."""
    bench.setenv("LMMS_CAPTIONS_T5", str(_tokenizer(tmp_path / "tokenizer.json")))
    tasks = ("vdc_camera", "vdc_short")
    of = {task: records(task, drawn(task, 1, n_videos=1)) for task in tasks}
    paths = [write_run(tmp_path / name, of, groups={"vdc_score": tasks}) for name in "ab"]
    for path in paths:
        _log(path, tasks, "a a")
    path = paths[-1]
    judging = path.with_name(f"{STAMP}_judging.json")
    judging.write_text(judging.read_text().replace("2026-", "2025-"))
    for each in list(path.parent.iterdir()):
        each.rename(each.with_name(each.name.replace("2026", "2025")))
    _log(write_run(tmp_path / "b", {"vdc_short": of["vdc_short"]}), tasks[1:], "a a a a a a")
    folders = [str(tmp_path / name) for name in "ab"]
    document = json.loads(_printed(capsys, *folders, "--tasks", "vdc_score", "--format", "json"))
    assert [one["tokens"] for one in document["compared"][0]["lengths"]] == [2, 2]


def _log(results: Path, tasks: Sequence[str], words: str) -> None:
    """A sample log of each task with a caption of the one video."""
    sample = {"filtered_resps": words, "vdc_acc": {"video_id": "video_000.mp4"}}
    for task in tasks:
        log = results.with_name(f"{STAMP}_samples_{task}.jsonl")
        log.write_text(f"{json.dumps(sample)}\n")


def _tokenizer(path: Path) -> Path:
    """A tokenizer that makes a token of each word."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"a": 0}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(path))
    return path


def test_a_benchmark_whose_judge_says_what_there_is_has_what_can_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ratios there is no interval, and without questions no flips: the rest is printed."""
    task = "vcapsbench"
    folders = [str(plant(tmp_path / name, task, drawn(task, n))) for n, name in enumerate("ab")]
    known = benchmark_of_task(task)
    metrics = {name: replace(metric, ratios=None) for name, metric in known.metrics.items()}
    of_replies = replace(known, counts_ahead=False, right=frozenset(), metrics=metrics)
    monkeypatch.setattr(verdicts, "our_benchmarks", lambda: {task: of_replies})
    told = _printed(capsys, *folders)
    assert "ar, ir, cr: cannot be computed for all captioners." in told
    assert "flip" not in told
    for kind in FORMATS:
        _printed(capsys, *folders, "--format", kind)


_COMPARE: Final = """
import sys, time
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
try:
    code = main(["compare", *sys.argv[1:]])
except SystemExit as end:
    code = end.code
heavy = [name for name in ("lmms_eval", "torch", "transformers", "datasets") if name in sys.modules]
light = [name for name in ("numpy", "scipy", "aiohttp") if name in sys.modules]
print(code, heavy, light, time.process_time(), file=sys.stderr)
"""


def test_comparing_imports_neither_lmms_eval_nor_torch(tmp_path: Path) -> None:
    """And help is shown in less than half a second of a processor, without numpy."""
    tasks = ("vdc_camera", "vidcapbench_ae")
    for seed, name in enumerate("ab"):
        write_run(tmp_path / name, {task: records(task, drawn(task, seed)) for task in tasks})
    told = []
    for arguments in ([str(tmp_path / "a"), str(tmp_path / "b")], ["--help"]):
        command = [sys.executable, "-W", "ignore", "-c", _COMPARE, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told.append(done.stderr.splitlines()[-1])
    assert told[0].startswith("0 []")
    assert told[1].startswith("0 [] []")
    assert float(told[1].split()[-1]) < 0.5
