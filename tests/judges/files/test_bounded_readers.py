"""Every reader of files that others wrote, at nesting without end, bombs and other texts."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.errors import CaptionError, CaptionsError, DataError, SettingsError
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.capquiz import data as capquiz
from lmms_eval_captions.lmms_eval_tasks.commands.check import Limits, check_folder
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.score_file import read_scores
from lmms_eval_captions.lmms_eval_tasks.msvd_eval import data as msvd_eval
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import data as vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.published_verdicts import read_published_verdicts
from lmms_eval_captions.lmms_eval_tasks.vdc import data as vdc
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import data as vidcapbench
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions

DEEP = (
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b"[" * 900 + b"]" * 900,
)
"""All but the last are beyond Python's recursion limit; the last one's ``repr`` may be."""


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
    "verdicts": ("v.csv", lambda root: list(read_published_verdicts(root / "v.csv"))),
    "verdicts.zip": ("v.zip", lambda root: list(read_published_verdicts(root / "v.zip"))),
    "results": ("1_results.json", lambda root: check_folder(root, Limits(0.1))),
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


@pytest.mark.parametrize("deep", DEEP, ids=["lists", "objects", "closed", "near"])
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
    words = "nested deeper" if name == "msvd_eval" else "line 3: .*nested deeper"
    with pytest.raises(DataError, match=words) as caught:
        ALL[name][1](tmp_path)
    assert path.name in str(caught.value)


def test_a_nested_line_of_captions_is_named(tmp_path: Path) -> None:
    """It names file and line, in a file of captions as in a sample log."""
    for name in ("captions.jsonl", "sample log"):
        put(tmp_path, name, b'{"video_id": "a", "caption": "A"}\n' + DEEP[1])
        with pytest.raises(CaptionError, match=r"line 2: .*nested deeper"):
            ALL[name][1](tmp_path)


@pytest.mark.parametrize("name", ALL)
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    """A FIFO in a file's place ends in words instead of blocking for ever."""
    path = tmp_path / ALL[name][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(CaptionsError):
        ALL[name][1](tmp_path)


BOMB = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from lmms_eval_captions.judges.errors import CaptionsError
from test_bounded_readers import ALL
for name in sys.argv[3:]:
    try:
        ALL[name][1](Path(sys.argv[1]))
    except CaptionsError as error:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(name, peak // 1024, "MB" in str(error))
"""
BOMBED = ("prices", "vdc", "msvd_eval", "captions.jsonl", "captions.csv", "results", "scores.csv")


@pytest.mark.parametrize("filling", [b"\0", b"x", b'"'], ids=["zeros", "one line", "quotes"])
def test_a_gigabyte_that_was_packed_takes_no_gigabyte(tmp_path: Path, filling: bytes) -> None:
    """A gzip file of a megabyte that unpacks to a gigabyte is refused within 400 MB."""
    for name in BOMBED:
        put(tmp_path, name, gzip.compress(filling * 2**26, 1) * 16)
    command = [sys.executable, "-c", BOMB, str(tmp_path), str(Path(__file__).parent), *BOMBED]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    found = [line.split() for line in done.stdout.splitlines()]
    assert [(name, told) for name, _, told in found] == [(name, "True") for name in BOMBED]
    # The first one is refused before anything is read: what the process takes without.
    peaks = [int(peak) for _, peak, _ in found]
    assert peaks[-1] - peaks[0] < 400


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


def test_a_row_of_scores_is_never_swallowed(tmp_path: Path) -> None:
    """A quote left open, a line separator within a cell and a cell of 200,000 characters."""
    path = put(tmp_path, "scores.csv", b'id,score,note\na,1,"x\nb,2,y\nc,3,z\n')
    with pytest.raises(DataError, match=r"s\.csv cannot be read: after line"):
        read_scores(path)
    path.write_bytes("id,score,note\na,1,\u2028b,2\nc,3,x\n".encode())
    with pytest.raises(DataError, match="line 2 has more cells"):
        read_scores(path)
    path.write_bytes(f"id,score,note\na,1,\u2028\nb,2,{'x' * 200_000}\n".encode())
    assert read_scores(path) == {"score": {"a": 1.0, "b": 2.0}}


@pytest.mark.parametrize("value", ["1.5", "true", "[1]", '{"a": 1}', "null", '""'])
def test_an_item_of_scores_has_a_name(tmp_path: Path, value: str) -> None:
    """What is neither text nor a whole number names no item."""
    path = put(tmp_path, "scores.jsonl", f'{{"id": {value}, "score": 1}}\n'.encode())
    with pytest.raises(DataError, match="with a name in every row"):
        read_scores(path)


def test_scores_beyond_what_a_number_holds_are_left_out(tmp_path: Path) -> None:
    """A whole number of 400 digits is no score, one of 5,000 digits no JSON; both in words."""
    path = put(tmp_path, "scores.json", f'{{"a": 1, "b": {"9" * 400}, "c": NaN}}'.encode())
    assert read_scores(path) == {"score": {"a": 1.0}}
    path.write_text(f'{{"a": {"9" * 5000}}}')
    with pytest.raises(DataError, match=r"s\.json cannot be read"):
        read_scores(path)


def test_an_item_that_a_json_object_has_twice_is_refused(tmp_path: Path) -> None:
    """As in the other formats of scores."""
    path = put(tmp_path, "scores.json", b'{"a": 1, "b": 2, "a": 3}')
    with pytest.raises(DataError, match="'a' is there twice"):
        read_scores(path)


@pytest.mark.parametrize(
    "ratings",
    ['["12345"]', '{"12345": 1}', "[[1, 2, 3, 4, NaN]]", "3", f"[[1, 2, 3, 4, {'9' * 400}]]"],
)
def test_ratings_are_lists_of_finite_numbers(tmp_path: Path, ratings: str) -> None:
    """Digits of a text, keys of an object, and what is not finite are no ratings."""
    text = f'{{"a": {{"vname": "a", "ref": ["b"], "human_score": {ratings}}}}}'
    put(tmp_path, "msvd_eval", text.encode())
    with pytest.raises(DataError, match="video 'a': expected"):
        ALL["msvd_eval"][1](tmp_path)


@pytest.mark.parametrize("text", ["[]", "3", '{"results": []}', '{"results": {"t": [1]}}', "null"])
def test_results_of_another_shape_are_told(tmp_path: Path, text: str) -> None:
    """``check`` says what it expected instead of a traceback."""
    put(tmp_path, "results", text.encode())
    with pytest.raises(DataError, match="expected a results file of lmms-eval"):
        check_folder(tmp_path, Limits(0.1))


def test_a_signature_without_a_question_is_checked(tmp_path: Path) -> None:
    """Unscored questions of none at all are a problem, and no division by zero."""
    text = '{"results": {"t": {"signature,none": "m|unscored:3/0|v:1"}}}'
    put(tmp_path, "results", text.encode())
    (problem,) = check_folder(tmp_path, Limits(0.1)).problems
    assert "3 of 0 questions are unscored" in problem


def test_verdicts_of_a_table_are_never_swallowed(tmp_path: Path) -> None:
    """A quote left open is an error; cells that no quote holds together make the row malformed."""
    head = "question,answer,analysis\n"
    path = put(
        tmp_path, "verdicts", f'{head}color*Is it?*yes,1,"yes\ncolor*Is it?*no,0,x\n'.encode()
    )
    with pytest.raises(DataError, match=r"v\.csv, after line"):
        list(read_published_verdicts(path))
    long = "y" * 200_000
    path.write_text(f"{head}color*Is it, so?*yes,1,yes,x\ncolor*Is it?*yes,1,{long}\n")
    (published,) = read_published_verdicts(path)
    assert (published.n_malformed, published.verdicts) == (1, ["positive"])


LAUGHS = "a: &a [0, 0, 0, 0, 0, 0, 0, 0, 0]" + "".join(
    f"\n{name}: &{name} [{', '.join([f'*{before}'] * 9)}]"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}" + "".join(
    f"\n{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(LAUGHS, "more than 100,000 values", id="laughs"),
        pytest.param(MERGES, "merge key", id="merges"),
        pytest.param("a: &a [*a]", "nested deeper", id="in itself"),
        pytest.param("a: [" * 5000, "nested too deep", id="deep"),
        pytest.param("models: 0x" + "f" * 100_000, "64 bits", id="number"),
        pytest.param("a: !!timestamp soon", "marked as", id="timestamp"),
        pytest.param("a: !!bool maybe", "marked as", id="bool"),
        pytest.param("models: {}\nmodels: {}", "twice", id="twice"),
        pytest.param("a: !!python/name:os.system", "constructor", id="tag"),
        pytest.param("# " + "x" * 300_000, "0.25 MB", id="size"),
    ],
)
@pytest.mark.parametrize("name", ["prices", "prompts"])
def test_yaml_that_grows_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    """No memory, no time and no traceback: the words name the file."""
    path = put(tmp_path, name, text.encode())
    with pytest.raises(SettingsError, match=words) as caught:
        ALL[name][1](tmp_path)
    assert str(path) in str(caught.value)


def test_an_alias_in_prices_is_read(tmp_path: Path) -> None:
    """What a user may write to save typing goes on working."""
    put(tmp_path, "prices", b"models: {a: &p {input: 1, output: 2}, b: *p}")
    assert load_prices(tmp_path / "p.yaml").models["b"].output == 2.0


def test_a_batch_record_that_is_none_is_passed_over(tmp_path: Path) -> None:
    """Nesting, numbers without end and other kinds of values are no record of a batch."""
    from lmms_eval_captions.judges.endpoint.batch.ledger import Ledger

    fields = {"url": "http://x", "model": "m", "batch_id": "b", "created_s": 1, "writer": ["h", 1]}
    for index, bad in enumerate(
        [
            DEEP[0],
            json.dumps({**fields, "ids": ["a"], "created_s": 10**400}).encode(),
            json.dumps({**fields, "ids": ["a"], "writer": "me"}).encode(),
            json.dumps({**fields, "ids": ["a"], "writer": [os.uname().nodename, 10**30]}).encode(),
            json.dumps({**fields, "ids": 3}).encode(),
            b"[]",
        ]
    ):
        (tmp_path / f"{index}.json").write_bytes(bad)
    assert Ledger(tmp_path, "http://x").batch_of("a") is None
