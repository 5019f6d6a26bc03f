"""Every reader of files that others wrote, at nesting without end and other texts."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lmms_eval_captions.analysis.check import Check
from lmms_eval_captions.analysis.user_table import read_scores
from lmms_eval_captions.judges import files
from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.errors import CaptionError, CaptionsError, DataError, SettingsError
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.capquiz import benchmark as capquiz
from lmms_eval_captions.lmms_eval_tasks.msvd_eval import benchmark as msvd_eval
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import benchmark as vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vdc import benchmark as vdc
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import benchmark as vidcapbench
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions

DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000)
"""Beyond Python's recursion limit."""


def settings(root: Path) -> Settings:
    """Settings with local data."""
    return read_settings({"LMMS_CAPTIONS_DATA": str(root), "LMMS_CAPTIONS_CACHE": str(root)})


BENCHMARKS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "vdc": (
        "vdc/VDCScore_qa/camera.jsonl",
        lambda root: vdc.read_questions(settings(root), "camera"),
    ),
    "vidcapbench": (
        "vidcapbench/VidCapBench-AE_QA.jsonl",
        lambda root: vidcapbench.read_videos(settings(root), "AE"),
    ),
    "vcapsbench": (
        "vcapsbench/VCapsBench_100KQA.jsonl",
        lambda root: vcapsbench.read_videos(settings(root)),
    ),
    "capquiz": (
        "capquiz/capquiz.jsonl",
        lambda root: capquiz.read_videos(settings(root)),
    ),
    "msvd_eval": (
        "msvd_eval/MSVD-Eval.json",
        lambda root: msvd_eval.read_items(settings(root)),
    ),
}
"""File and reader of each benchmark."""
OTHERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "captions.jsonl": ("c.jsonl", lambda root: open_captions(root / "c.jsonl")),
    "captions.json": ("c.json", lambda root: open_captions(root / "c.json")),
    "captions.csv": ("c.csv", lambda root: open_captions(root / "c.csv")),
    "captions.tsv (csv)": ("c.tsv", lambda root: open_captions(root / "c.tsv")),
    "captions.parquet (no csv)": ("c.parquet", lambda root: open_captions(root / "c.parquet")),
    "several captions": ("d/c.jsonl", lambda root: open_captions(root / "d")),
    "sample log": ("1_samples_t.jsonl", lambda root: open_captions(root)("t")),
    "scores.jsonl": ("s.jsonl", lambda root: read_scores(root / "s.jsonl")),
    "scores.json": ("s.json", lambda root: read_scores(root / "s.json")),
    "scores.csv": ("s.csv", lambda root: read_scores(root / "s.csv")),
    "results": ("1_results.json", lambda root: Check(0.1).folder(root)),
    "prices": ("p.yaml", lambda root: load_prices(root / "p.yaml")),
    "prompts": ("vdc_answer.yaml", lambda root: Prompts(root).check()),
}
ALL = {**BENCHMARKS, **OTHERS}
NESTED = [name for name in ALL if "csv" not in name and "verdicts" not in name]


def put(root: Path, name: str, content: bytes) -> Path:
    """A file of a kind."""
    path = root / ALL[name][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("deep", DEEP, ids=["lists", "objects", "closed"])
@pytest.mark.parametrize("name", NESTED)
def test_nesting_without_end_is_refused_in_words(tmp_path: Path, name: str, deep: bytes) -> None:
    """No RecursionError, whatever is read: the error names the file and says what is wrong."""
    path = put(tmp_path, name, deep)
    with pytest.raises(CaptionsError, match=r"nested|expected|MB") as caught:
        ALL[name][1](tmp_path)
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_nested_line_of_a_benchmark_s_file_is_named(tmp_path: Path, name: str) -> None:
    """The line, or in the file that is one JSON value the video, is told."""
    head = b'{"a": 1,\n "b": ' if name == "msvd_eval" else b'\n{"x": 1}\n{"b": '
    path = put(tmp_path, name, head + DEEP[2] + b"}")
    words = "nested too deep" if name == "msvd_eval" else "line 3: .*nested too deep"
    with pytest.raises(DataError, match=words) as caught:
        ALL[name][1](tmp_path)
    assert path.name in str(caught.value)


def test_a_nested_line_of_captions_is_named(tmp_path: Path) -> None:
    """It names file and line, in a file of captions as in a sample log."""
    for name in ("captions.jsonl", "sample log"):
        put(tmp_path, name, b'{"video_id": "a", "caption": "A"}\n' + DEEP[1])
        with pytest.raises(CaptionError, match=r"line 2: .*nested too deep"):
            ALL[name][1](tmp_path)


@pytest.mark.parametrize("name", ALL)
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    """A FIFO in a file's place ends in words instead of blocking for ever."""
    path = tmp_path / ALL[name][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(CaptionsError):
        ALL[name][1](tmp_path)


def test_a_caption_of_a_million_characters_is_read(tmp_path: Path) -> None:
    """The bounds leave room for what a captioner can write, in every format, packed or not."""
    caption = "😀 a" * 333_333
    rows = json.dumps({"video_id": "a", "caption": caption}).encode()
    put(tmp_path, "captions.jsonl", rows)
    put(tmp_path, "captions.json", gzip.compress(b"[" + rows + b"]"))
    put(tmp_path, "captions.csv", f'video_id,caption\na,"{caption}"\n'.encode())
    for name in ("c.jsonl", "c.json", "c.csv"):
        assert open_captions(tmp_path / name)("t").find("a") == caption


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("captions.jsonl", b'{"video_id": "a", "caption": "A"}'),
        ("captions.json", b'[{"video_id": "a", "caption": "A"}]'),
        ("captions.csv", b"video_id,caption\na,A\n"),
    ],
)
def test_what_a_file_holds_counts_and_not_its_name(tmp_path: Path, name: str, text: bytes) -> None:
    """A gzipped file without ``.gz`` and a plain one with it are read all the same."""
    path = put(tmp_path, name, gzip.compress(text))
    assert open_captions(path)("t").find("a") == "A"
    plain = path.with_name(f"{path.name}.gz")
    plain.write_bytes(text)
    assert open_captions(plain)("t").find("a") == "A"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "latin-1"])
@pytest.mark.parametrize(
    "name", ["vdc", "msvd_eval", "captions.jsonl", "captions.csv", "scores.csv"]
)
def test_another_encoding_is_told(tmp_path: Path, name: str, encoding: str) -> None:
    """Text that is no UTF-8 is refused, never guessed."""
    put(tmp_path, name, 'video_id,caption,score\né,"é",1\n'.encode(encoding))
    with pytest.raises(CaptionsError, match=r"(?i)utf|expected"):
        ALL[name][1](tmp_path)


@pytest.mark.parametrize("text", ["[]", "3", '{"results": []}', '{"results": {"t": [1]}}', "null"])
def test_results_of_another_shape_are_told(tmp_path: Path, text: str) -> None:
    """``check`` says what it expected instead of a traceback."""
    put(tmp_path, "results", text.encode())
    with pytest.raises(DataError, match="expected a results file of lmms-eval"):
        Check(0.1).folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [" * 5000, "nested too deep", id="deep"),
        pytest.param("a: !!timestamp soon", "marked as", id="timestamp"),
        pytest.param("a: !!bool maybe", "marked as", id="bool"),
        pytest.param("models: {}\nmodels: {}", "twice", id="twice"),
        pytest.param("a: !!python/name:os.system", "constructor", id="tag"),
    ],
)
@pytest.mark.parametrize("name", ["prices", "prompts"])
def test_odd_yaml_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    """No traceback: the words name the file."""
    path = put(tmp_path, name, text.encode())
    with pytest.raises(SettingsError, match=words) as caught:
        ALL[name][1](tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["captions.jsonl", "captions.parquet (no csv)"])
def test_what_is_packed_is_unpacked_within_bounds(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kilobytes that say that they are gigabytes end in words."""
    monkeypatch.setattr(files, "MOST_BYTES", 2**20)
    if name == "captions.jsonl":
        path = put(tmp_path, name, gzip.compress(b"{}\n" * 2**20))
    else:
        path = tmp_path / ALL[name][0]
        texts = pa.array(["x" * 2**16]).dictionary_encode()
        captions = pa.DictionaryArray.from_arrays(pa.array([0] * 99), texts.dictionary)
        pq.write_table(pa.table({"video": list(map(str, range(99))), "caption": captions}), path)
    with pytest.raises(CaptionError, match="more than 0 GiB"):
        ALL[name][1](tmp_path)


def test_a_batch_record_that_is_none_is_passed_over(tmp_path: Path) -> None:
    """Nesting, numbers without end and other kinds of values are no record of a batch."""
    from lmms_eval_captions.judges.endpoint.batch import Ledger

    fields = {"url": "http://x", "model": "m", "batch_id": "b", "created_s": 1}
    for index, bad in enumerate(
        [
            DEEP[0],
            json.dumps({**fields, "ids": ["a"], "created_s": 10**400}).encode(),
            json.dumps({**fields, "ids": 3}).encode(),
            b"[]",
        ]
    ):
        (tmp_path / f"{index}.json").write_bytes(bad)
    assert Ledger(tmp_path, "http://x").batch_of("a") is None
