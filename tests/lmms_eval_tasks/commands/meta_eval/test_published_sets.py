"""Published sets of rated captions, made up here in the shapes that they are published in."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.flickr8k import read_flickr8k
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.vatex_eval import read_vatex_eval

N = 40
WORDS = ("A dog", "A red ball", "The small child", "Somebody")
ACTS = ("runs over the grass.", "is thrown into the water.", "sits on a wooden bench.")


def _text(number: int) -> str:
    return f"{WORDS[number % 4]} {ACTS[number % 3]}"


def _flickr(folder: Path, name: str, n_ratings: int) -> list[list[float]]:
    """Two candidates of each of N images; the ratings of each candidate."""
    rng = np.random.default_rng(0)
    ratings = [[float(x) for x in rng.integers(1, 5, n_ratings)] for _ in range(2 * N)]
    ratings[5][0] = nan
    images = {
        f"image{place}": {
            "image_path": f"images/image{place}.jpg",
            "ground_truth": [_text(place), _text(place + 1)],
            "human_judgement": [
                {
                    "image_path": "x",
                    "caption": f"{_text(2 * place + side)} {side}",
                    "rating": rating,
                }
                for side in (0, 1)
                for rating in ratings[2 * place + side]
            ],
        }
        for place in range(N)
    }
    folder.mkdir()
    (folder / name).write_text(json.dumps(images))
    return ratings


def _vatex(folder: Path) -> np.ndarray[Any, Any]:
    """The four files; the ratings, shape (3, N)."""
    rng = np.random.default_rng(1)
    ratings = rng.integers(1, 6, (3, N)).astype(float)
    arrays = {
        "candidates_list": np.array([_text(n) for n in range(N)]),
        "gts_list": np.array([[_text(n + k) for k in range(10)] for n in range(N)], dtype=object),
        "human_scores": ratings.reshape(-1),
        "video_ids": np.array([f"video{n // 2}" for n in range(N)]),
    }
    folder.mkdir()
    for name, array in arrays.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(array))
    return ratings


def _foil(folder: Path) -> None:
    """Three pairs of two images, whose other captions are references."""
    captions = [
        {"image_id": image, "caption": text}
        for image, texts in {
            7: ["A dog runs.", "A dog.", "It runs."],
            8: ["A cat.", "The cat sleeps."],
        }.items()
        for text in texts
    ]
    foil = [
        {"id": 1, "image_id": 7, "caption": "A dog runs.", "foil": False, "foil_word": "ORIG"},
        {"id": 1, "image_id": 7, "caption": "A bus runs.", "foil": True, "foil_word": "bus"},
        {"id": 1, "image_id": 7, "caption": "A car runs.", "foil": True, "foil_word": "car"},
        {"id": 2, "image_id": 8, "caption": "A cat.", "foil": False, "foil_word": "ORIG"},
        {"id": 2, "image_id": 8, "caption": "A cup.", "foil": True, "foil_word": "cup"},
    ]
    folder.mkdir()
    (folder / "captions_val2014.json").write_text(json.dumps({"annotations": captions}))
    (folder / "foilv1.0_test_2017.json").write_text(json.dumps({"annotations": foil, "images": []}))


def _rows(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """The report of a run without the classic metrics."""
    output = tmp_path / "report.json"
    command = ["meta-eval", *arguments, "--no-classic", "--output", str(output)]
    assert main(command) == 0
    report: dict[str, Any] = json.loads(output.read_text())
    return report


def _scores(path: Path, values: dict[str, float]) -> str:
    path.write_text(json.dumps(values))
    return str(path)


@pytest.fixture
def bench(bench: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The shared one, without a judge."""
    bench.delenv("LMMS_CAPTIONS_JUDGE")
    return bench


def test_a_metric_is_compared_with_every_rating_of_flickr8k(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tau-b and tau-c are scipy's over all pairs of score and rating; a NaN is none."""
    ratings = _flickr(tmp_path / "flickr8k", "flickr8k.json", 3)
    values = np.random.default_rng(2).normal(size=2 * N) + [
        fmean(r) for r in np.nan_to_num(ratings)
    ]
    path = _scores(tmp_path / "mine.json", {str(n): value for n, value in enumerate(values)})
    arguments = ("--data", str(tmp_path / "flickr8k"), "--scores", path, "--resamples", "20")
    report = _rows(tmp_path, "flickr8k-expert", *arguments)
    (row,) = report["rows"]
    pairs = [(v, r) for v, rated in zip(values, ratings, strict=True) for r in rated if r == r]
    for variant in ("b", "c"):
        expected = 100 * kendalltau(*zip(*pairs, strict=True), variant=variant).statistic
        assert row[f"tau_{variant}"] == pytest.approx(expected)
        low, high = row[f"interval_{variant}"]
        assert low < expected < high
    assert (report["n_ratings"], row["n_items"]) == (6 * N - 1, 2 * N)
    others = [(a, b) for r in ratings for i, a in enumerate(r) for j, b in enumerate(r)
              if i != j and a == a and b == b]  # fmt: skip
    among = 100 * kendalltau(*zip(*others, strict=True)).statistic
    assert report["ceilings"][0]["tau_b"] == pytest.approx(among)
    assert f"{among:.1f} / " in capsys.readouterr().out


def test_the_mean_of_three_ratings_is_that_of_the_released_code(
    bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A caption that lacks one of them is left out."""
    ratings = _flickr(tmp_path / "flickr8k", "flickr8k.json", 3)
    kept = [n for n in range(2 * N) if n != 5]
    values = np.random.default_rng(2).normal(size=len(kept))
    path = _scores(tmp_path / "mine.json", {str(n): value for n, value in enumerate(values)})
    arguments = ("--data", str(tmp_path / "flickr8k"), "--scores", path, "--resamples", "5")
    report = _rows(tmp_path, "flickr8k-expert", "--ratings", "mean", *arguments)
    expected = 100 * kendalltau(values, [fmean(ratings[n]) for n in kept]).statistic
    # The paper's rows of classic metrics are of every rating.
    assert not read_flickr8k(tmp_path / "flickr8k", "flickr8k-expert", "mean").paper
    assert report["rows"][0]["tau_b"] == pytest.approx(expected)
    assert report["ceilings"][0]["tau_b"] != report["ceilings"][0]["tau_b"]


def test_flickr8k_cf_has_one_rating_of_each_caption(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is a share of people, so there is no agreement among them to show."""
    ratings = _flickr(tmp_path / "flickr8k", "crowdflower_flickr8k.json", 1)
    kept = [r[0] for r in ratings if r[0] == r[0]]
    values = np.random.default_rng(2).normal(size=len(kept))
    path = _scores(tmp_path / "mine.json", {str(n): value for n, value in enumerate(values)})
    arguments = ("--data", str(tmp_path / "flickr8k"), "--scores", path, "--resamples", "5")
    report = _rows(tmp_path, "flickr8k-cf", *arguments)
    assert report["rows"][0]["tau_c"] == pytest.approx(
        100 * kendalltau(values, kept, variant="c").statistic
    )
    assert "Flickr8k-CF: 79 candidates, 79 ratings" in capsys.readouterr().out


def test_vatex_eval_is_the_mean_over_annotators(bench: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the tau with each one's ratings, the metric rounded to four decimals as EMScore does."""
    ratings = _vatex(tmp_path / "vatex_eval")
    values = np.random.default_rng(3).normal(size=N) / 1000
    path = _scores(tmp_path / "mine.json", {str(n): value for n, value in enumerate(values)})
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    report = _rows(tmp_path, "vatex-eval", "--scores", path, "--resamples", "5")
    rounded = np.around(values, 4)
    assert len(set(rounded)) < len(set(values))
    expected = fmean(100 * kendalltau(rounded, rated).statistic for rated in ratings)
    assert report["rows"][0]["tau_b"] == pytest.approx(expected)
    among = fmean(
        100 * kendalltau(ratings[a], ratings[b]).statistic for a, b in ((0, 1), (0, 2), (1, 2))
    )
    assert report["ceilings"][0]["tau_b"] == pytest.approx(among)
    assert read_vatex_eval(tmp_path / "vatex_eval", 1).items[3].references == (_text(3),)
    assert len(read_vatex_eval(tmp_path / "vatex_eval").items[3].references) == 9


def test_foil_counts_how_often_the_right_caption_is_preferred(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tie is wrong and said; a pair that lacks a value is left out and said."""
    _foil(tmp_path / "foil")
    values = {"0-right": 0.9, "0-wrong": 0.1, "1-right": 0.9, "1-wrong": 0.9,
              "2-right": 0.2, "2-wrong": 0.1}  # fmt: skip
    path = _scores(tmp_path / "mine.json", values)
    report = _rows(tmp_path, "foil", "--data", str(tmp_path / "foil"), "--scores", path)
    (row,) = report["rows"]
    assert row["accuracy"] == pytest.approx(200 / 3)
    assert (row["n_pairs"], row["n_ties"], report["n_references"]) == (3, 1, 4)
    del values["2-wrong"]
    _scores(tmp_path / "mine.json", values)
    capsys.readouterr()
    report = _rows(tmp_path, "foil", "--data", str(tmp_path / "foil"), "--scores", path)
    assert report["rows"][0]["accuracy"] == 50.0
    assert "1 captions have no value" in capsys.readouterr().out


def test_the_captions_of_a_set_are_written_for_a_metric_of_ones_own(
    bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the names that its scores are to have; nothing else is computed."""
    _foil(tmp_path / "foil")
    items = tmp_path / "items.jsonl"
    for n_references, expected in (("1", ["A dog."]), ("4", ["A dog.", "It runs."])):
        command = ["meta-eval", "foil", "--data", str(tmp_path / "foil"), "--items", str(items)]
        assert main([*command, "--references", n_references]) == 0
        rows = [json.loads(line) for line in items.read_text().splitlines()]
        assert [row["id"] for row in rows[:3]] == ["0-right", "0-wrong", "1-right"]
        assert (rows[1]["candidate"], rows[1]["references"]) == ("A bus runs.", expected)
    _vatex(tmp_path / "vatex")
    command = ["meta-eval", "vatex-eval", "--data", str(tmp_path / "vatex"), "--items", str(items)]
    assert main(command) == 0
    assert len(items.read_text().splitlines()) == N


def test_the_classic_metrics_are_those_of_the_tables(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five rows beside what the paper prints; without Java they say what to install."""
    _foil(tmp_path / "foil")
    command = ["meta-eval", "foil", "--data", str(tmp_path / "foil")]
    with bench.context() as patch:
        patch.setenv("PATH", "/nowhere")
        assert main(command) == 1
    printed = capsys.readouterr()
    assert "default-jre" in printed.out
    assert "5 of 5 correlations have no value" in printed.err
    if shutil.which("java") is None:
        pytest.skip("no java: the PTB tokenizer and METEOR need it")
    assert main(command) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    # Every right caption has more of the references' words than the wrong one, of all metrics.
    assert [rows[name][2] for name in ("BLEU-1", "ROUGE-L", "METEOR", "CIDEr")] == ["100.0"] * 4
    assert "90.6" in rows["CIDEr"]


def _spoil_json(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps(change(json.loads(path.read_text()))))

    return spoil


def _spoil_pickle(name: str, value: object) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(pickle.dumps(value))

    return spoil


def _images(image: object) -> Callable[[Path], None]:
    """Puts one image in the place of all."""

    def put(folder: Path) -> None:
        (folder / "flickr8k.json").write_text(json.dumps({"a": image}))

    return put


FLICKR = ("flickr8k-expert", lambda folder: _flickr(folder, "flickr8k.json", 3))
VATEX, FOIL = ("vatex-eval", _vatex), ("foil", _foil)


@pytest.mark.parametrize(
    ("made", "spoil", "words"),
    [
        pytest.param(FLICKR, lambda f: (f / "flickr8k.json").unlink(), "no file", id="no flickr"),
        pytest.param(FLICKR, _spoil_json("flickr8k.json", list), "object of images", id="list"),
        pytest.param(FLICKR, _images({"ground_truth": ["x"]}),
                     "image 'a': expected an object with 'ground_truth'", id="no judgements"),
        pytest.param(FLICKR, _images({"ground_truth": "x", "human_judgement": []}),
                     "a list of texts", id="one text"),
        pytest.param(FLICKR, _images({"ground_truth": ["x"],
                                      "human_judgement": [{"caption": "x", "rating": "4"}]}),
                     "a number as 'rating'", id="rating in words"),
        pytest.param(FLICKR, lambda f: (f / "flickr8k.json").write_text("{"), "cannot be read",
                     id="cut"),
        pytest.param(VATEX, lambda f: (f / "gts_list.pkl").unlink(), "no file", id="no vatex"),
        pytest.param(VATEX, lambda f: (f / "gts_list.pkl").write_bytes(b"x"), "cannot be read",
                     id="no pickle"),
        pytest.param(VATEX, _spoil_pickle("video_ids.pkl", np.array(["a"])), "as many names in",
                     id="fewer names"),
        pytest.param(VATEX, _spoil_pickle("human_scores.pkl", np.zeros(4)), "3 x 40 numbers",
                     id="fewer ratings"),
        pytest.param(VATEX, _spoil_pickle("candidates_list.pkl", np.zeros(N)), "array of texts",
                     id="numbers"),
        pytest.param(VATEX, _spoil_pickle("gts_list.pkl", np.array([["a"]] * N)),
                     "rows of at least 9 references", id="fewer references"),
        pytest.param(VATEX, _spoil_pickle("video_ids.pkl", Path("a")), "no array of texts",
                     id="another object"),
        pytest.param(FOIL, lambda f: (f / "captions_val2014.json").unlink(), "no file",
                     id="no references"),
        pytest.param(FOIL, _spoil_json("foilv1.0_test_2017.json", lambda d: d["annotations"]),
                     "a list of 'annotations'", id="a list"),
        pytest.param(FOIL, _spoil_json("foilv1.0_test_2017.json", lambda d: {
            "annotations": d["annotations"][1:]}), "no caption without one", id="no right caption"),
        pytest.param(FOIL, _spoil_json("foilv1.0_test_2017.json", lambda d: {
            "annotations": d["annotations"][:1]}), "at least one caption", id="no foil"),
        pytest.param(FOIL, _spoil_json("captions_val2014.json", lambda d: {
            "annotations": d["annotations"][:1]}), "has no other caption", id="one caption"),
    ],
)  # fmt: skip
def test_a_file_of_another_shape_is_said_to_be(
    made: tuple[str, Callable[[Path], Any]],
    spoil: Callable[[Path], Any],
    words: str,
    bench: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The message names the file, what was expected, and what came."""
    name, make = made
    make(tmp_path / "files")
    spoil(tmp_path / "files")
    assert main(["meta-eval", name, "--data", str(tmp_path / "files")]) != 0
    assert words in capsys.readouterr().err


def test_a_pickle_that_runs_something_is_refused(
    bench: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing that a file names is called."""

    class Trap:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return Path.touch, (tmp_path / "sprung",)  # type: ignore[return-value]

    _vatex(tmp_path / "files")
    (tmp_path / "files" / "video_ids.pkl").write_bytes(pickle.dumps(Trap()))
    assert main(["meta-eval", "vatex-eval", "--data", str(tmp_path / "files")]) != 0
    assert not (tmp_path / "sprung").exists()
    assert "which is no array of texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["vatex-eval", "--references", "10"], "expected 1 to 9", id="too many"),
        pytest.param(["foil", "--references", "2"], "expected 1 or 4", id="neither"),
        pytest.param(["flickr8k-cf", "--references", "1"], "no choice", id="no choice"),
        pytest.param(["foil", "--gveval", "ref_only"], "for msvd alone", id="judge"),
        pytest.param(["foil", "--no-classic"], "nothing is left", id="nothing"),
        pytest.param(["msvd", "--items", "x"], "msvd has none", id="msvd"),
        pytest.param(["foil", "--ratings", "mean"], "flickr8k-expert alone", id="mean"),
        pytest.param(["foil"], "name their folder with --data", id="no folder"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    arguments: list[str],
    words: str,
    bench: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything is read, with what fits."""
    bench.delenv("LMMS_CAPTIONS_DATA", raising=False)
    assert main(["meta-eval", *arguments]) == 2
    assert words in capsys.readouterr().err
