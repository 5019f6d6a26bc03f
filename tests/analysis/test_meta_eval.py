"""Agreement of metrics with people, on the published ratings."""

from __future__ import annotations

import json
import shutil
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from conftest import ServerFactory
from lmms_eval_captions.analysis.meta_eval.msvd import meta_eval_msvd
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import read_items

_TABLE_4 = {
    "BLEU-1": (40.7, 41.2),
    "BLEU-4": (34.0, 34.4),
    "ROUGE-L": (39.8, 40.2),
    "METEOR": (45.4, 45.9),
    "CIDEr": (37.3, 37.7),
}


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, shared_data: Path) -> pytest.MonkeyPatch:
    """The shared one, with the real ratings and no judge."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(shared_data))
    bench.delenv("LMMS_CAPTIONS_JUDGE")
    return bench


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # pycocoevalcap leaves pipes to the collector
def test_the_classic_rows_of_table_4_are_reproduced_to_the_digit(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five metrics, two correlations each."""
    if shutil.which("java") is None:
        pytest.skip("no java: the PTB tokenizer and METEOR need it")
    output = tmp_path / "report.json"
    assert main(["meta-eval", "msvd", "--output", str(output), "--resamples", "50"]) == 0
    rows = {row["metric"]: row for row in json.loads(output.read_text())["rows"]}
    found = {name: (round(row["tau_b"], 1), round(row["tau_c"], 1)) for name, row in rows.items()}
    assert found == _TABLE_4
    assert all(row["interval_b"][0] < row["tau_b"] < row["interval_b"][1] for row in rows.values())
    printed = capsys.readouterr().out
    assert "197 candidates, 394 ratings" in printed
    assert "LMMS_CAPTIONS_JUDGE names no judge" in printed


def test_without_java_the_classic_rows_say_what_to_install(bench: pytest.MonkeyPatch) -> None:
    """The rest of the report is there all the same."""
    bench.setenv("PATH", "/nowhere")
    report = meta_eval_msvd(n_resamples=5)
    assert all(isnan(row["tau_b"]) and row["note"] for row in report["rows"])
    assert any("default-jre" in note for note in report["notes"])


def _human() -> dict[str, float]:
    """Ratings of every candidate by the first annotator, as a metric."""
    return {item.video_id: item.ratings[0][4] for item in read_items(read_settings())}


def _rows(bench: pytest.MonkeyPatch, path: Path) -> list[dict[str, Any]]:
    return list(meta_eval_msvd(classic=False, score_files=[path], n_resamples=20)["rows"])


def test_a_users_metric_is_correlated(bench: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JSON, JSONL and CSV of the same scores give the same row."""
    scores = _human()
    names = {item.video_id: item.vname for item in read_items(read_settings())}
    plain, nested, lines, table = (
        tmp_path / name for name in ("a.json", "b.json", "c.jsonl", "d.csv")
    )
    plain.write_text(json.dumps(scores))
    nested.write_text(json.dumps({names[key]: {"score": v} for key, v in scores.items()}))
    lines.write_text(
        "".join(json.dumps({"id": key, "score": v}) + "\n" for key, v in scores.items())
    )
    table.write_text(
        "vname,score\n"
        + "".join(f"{names[key].removesuffix('.avi')},{v}\n" for key, v in scores.items())
    )
    rows = [_rows(bench, path) for path in (plain, nested, lines, table)]
    assert all(row == rows[0] for row in rows)
    (row,) = rows[0]
    assert (row["metric"], row["rating"], row["n_items"], row["note"]) == ("score", "avg", 197, "")
    assert 50 < row["tau_b"] < 100


def test_missing_and_unknown_values_are_said(bench: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Candidates without a value leave the correlation, visibly."""
    scores: dict[str, float | None] = dict(_human())
    first = next(iter(scores))
    scores[first] = None
    scores["another"] = 1.0
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(scores))
    (row,) = _rows(bench, path)
    assert row["n_items"] == 196
    assert row["note"] == "candidates without a value: 1; values of no candidate: 1"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        pytest.param("a.json", '{"someone": 1}', "such as 'vid1301'", id="other-items"),
        pytest.param("a.json", '{"vid1301": "good"}', "no numbers|found none", id="words"),
        pytest.param("a.json", "[1, 2]", "expected a .json", id="no-rows"),
        pytest.param("a.csv", "name,score\nx,1\n", "in every row", id="no-item"),
        pytest.param("a.jsonl", '{"id": "vid1301", "s": 1}\n{"id": "vid1301", "s": 2}\n',
                     "has two", id="twice"),
        pytest.param("a.txt", "vid1301 1", "expected a .json", id="other-format"),
        pytest.param("a.json", "{", "cannot be read", id="cut"),
    ],
)  # fmt: skip
def test_score_files_that_cannot_be_used(
    name: str, text: str, words: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message says what was expected."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        _rows(bench, path)


def test_a_judge_is_correlated_along_each_dimension(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Five rows per setting, a signature, and none where the clips are missing."""
    server = serve(logprobs="whole")
    bench.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    report = meta_eval_msvd(classic=False, settings=["ref_only", "ref_free"], n_resamples=20)
    assert server.counts.n_answered == 197
    read, seen = report["rows"][:5], report["rows"][5:]
    assert [row["rating"] for row in read] == [
        "accuracy", "completeness", "conciseness", "relevance", "avg",
    ]  # fmt: skip
    assert all(row["n_items"] == 197 and not isnan(row["tau_b"]) for row in read)
    assert all(isnan(row["tau_b"]) and "unscored" in row["note"] for row in seen)
    assert "scoring:logprobs|unscored:0/197" in report["notes"][0]
    assert "unscored:197/197" in report["notes"][1]
