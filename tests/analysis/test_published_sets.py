"""Metrics compared with published sets of rated captions, from files in their authors' form."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_captions.cli.main import main

_N = 6
_TEXTS = [f"caption {index}" for index in range(_N)]


def _flickr8k(folder: Path) -> None:
    rated = [
        {"caption": text, "rating": 1 + index % 4}
        for index, text in enumerate(_TEXTS)
        for _ in range(3)
    ]
    image = {"image_path": "a.jpg", "ground_truth": ["a reference"], "human_judgement": rated}
    (folder / "flickr8k.json").write_text(json.dumps({"a": image}))


def _vatex(folder: Path) -> None:
    ratings = [[1 + index % 4 for index in range(_N)]] * 3
    for name, values in (
        ("candidates_list.pkl", _TEXTS),
        ("gts_list.pkl", [["a reference"] * 10] * _N),
        ("human_scores.pkl", ratings),
        ("video_ids.pkl", [f"v{index}" for index in range(_N)]),
    ):
        (folder / name).write_bytes(pickle.dumps(np.array(values)))


def _foil(folder: Path) -> None:
    foils: list[dict[str, object]] = []
    captions: list[dict[str, object]] = []
    for index, text in enumerate(_TEXTS):
        row = {"id": index, "image_id": index, "caption": text}
        foils += [{**row, "foil": False}, {**row, "caption": f"{text} foil", "foil": True}]
        captions += [{"image_id": index, "caption": of} for of in (text, "a reference")]
    (folder / "foilv1.0_test_2017.json").write_text(json.dumps({"annotations": foils}))
    (folder / "captions_val2014.json").write_text(json.dumps({"annotations": captions}))


def _rows(folder: Path, name: str, scores: Sequence[float]) -> list[dict[str, Any]]:
    """Score the captions that ``--items`` writes; return the report's rows."""
    items, own, output = (folder / of for of in ("items.jsonl", "own.json", "report.json"))
    command = ["meta-eval", name, "--data", str(folder)]
    assert main([*command, "--items", str(items)]) == 0
    names = [json.loads(line)["id"] for line in items.read_text().splitlines()]
    own.write_text(json.dumps(dict(zip(names, scores, strict=True))))
    assert main([*command, "--no-classic", "--scores", str(own), "--output", str(output)]) == 0
    rows: list[dict[str, Any]] = json.loads(output.read_text())["rows"]
    return rows


@pytest.mark.parametrize(
    ("name", "write"), [("flickr8k-expert", _flickr8k), ("vatex-eval", _vatex)]
)
def test_a_metric_that_ranks_as_people_do_has_a_tau_of_100(
    name: str, write: Callable[[Path], None], tmp_path: Path
) -> None:
    """One that ranks the other way round has -100."""
    write(tmp_path)
    scores = [1.0 + index % 4 for index in range(_N)]
    for sign in (1, -1):
        (row,) = _rows(tmp_path, name, [sign * score for score in scores])
        assert (row["metric"], row["n_items"]) == ("score", _N)
        assert row["tau_b"] == pytest.approx(100 * sign)


def test_foil_counts_pairs_whose_right_caption_has_the_higher_value(tmp_path: Path) -> None:
    """A tie is wrong: 3 of 6 pairs right, 2 ties, 1 the other way round."""
    _foil(tmp_path)
    pairs = [(2, 1), (2, 1), (2, 1), (1, 1), (1, 1), (1, 2)]
    (row,) = _rows(tmp_path, "foil", [score for pair in pairs for score in pair])
    assert (row["accuracy"], row["n_pairs"], row["n_ties"]) == (50.0, 6, 2)


def test_a_pickle_runs_no_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Arrays alone are read; anything else is refused before it is called."""

    class Attack:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "taken"),)

    _vatex(tmp_path)
    (tmp_path / "candidates_list.pkl").write_bytes(pickle.dumps(Attack()))
    assert main(["meta-eval", "vatex-eval", "--data", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "taken").exists()
