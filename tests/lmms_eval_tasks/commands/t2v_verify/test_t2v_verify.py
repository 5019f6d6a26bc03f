"""``t2v-verify`` on videos of planted noise."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from judge_server import Say
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.results_folder import read_results
from planted_pairs import drawn, plant

NOISE = {"clean": 0, "fair": 25, "rough": 50, "lost": 110}
VIDEOS = ("dog", "cat")
N_FRAMES = 12


def _write(path: Path, frames: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=12, options={"qscale": "2"})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Originals, and of four captioners copies with more and more noise."""
    folder = tmp_path_factory.mktemp("t2v")
    for seed, video in enumerate(VIDEOS):
        rng = np.random.default_rng(seed)
        blocks = np.kron(rng.integers(40, 215, (6, 16, 3)), np.ones((8, 8, 1)))
        frames = np.stack([blocks[:, 2 * at : 2 * at + 64] for at in range(N_FRAMES)])
        _write(folder / "original" / f"{video}.mp4", frames.astype(np.uint8))
        for captioner, level in NOISE.items():
            # Gray: of colours, videos keep every second pixel.
            noisy = frames + rng.normal(0, 1, (*frames.shape[:3], 1)) * level
            path = folder / "generated" / captioner / f"{video}.mp4"
            _write(path, np.clip(noisy, 0, 255).astype(np.uint8))
    return folder


def _run(videos: Path, output: Path, *options: str) -> dict[str, Any]:
    status = main(
        ["t2v-verify", "--generated", str(videos / "generated"), "--original",
         str(videos / "original"), "-o", str(output), *options]
    )  # fmt: skip
    assert status == 0
    document: dict[str, Any] = json.loads(output.read_text())
    return document


def _means(document: dict[str, Any], measure: str) -> dict[str, float]:
    return {row["captioner"]: row["means"][measure] for row in document["captioners"]}


def test_more_noise_is_further_from_the_original(videos: Path, tmp_path: Path) -> None:
    """All four numbers fall from captioner to captioner, and r is numpy's."""
    scores = {"clean": 0.9, "fair": 0.7, "rough": 0.75, "lost": 0.1}
    table = tmp_path / "scores.csv"
    rows = "".join(f"{name},{value}\n" for name, value in scores.items())
    table.write_text(f"captioner,accuracy\n{rows}")
    document = _run(videos, tmp_path / "out.json", "--scores", str(table))
    for measure in ("PSNR", "SSIM", "inter-frame PSNR", "inter-frame SSIM"):
        means = _means(document, measure)
        assert sorted(means, key=means.__getitem__, reverse=True) == list(NOISE)
        [row] = [each for each in document["correlations"] if each["measure"] == measure]
        expected = np.corrcoef([means[name] for name in scores], list(scores.values()))[0, 1]
        assert row["r"] == pytest.approx(expected)
        assert row["n_captioners"] == 4
    assert _means(document, "PSNR")["clean"] > 30
    # 20 log10(255 / 50), up to what clipping and encoding change.
    assert _means(document, "PSNR")["rough"] == pytest.approx(14.15, abs=1.5)


def test_generated_frames_are_resized(videos: Path, tmp_path: Path) -> None:
    """A generator's own size is no fault by itself."""
    generated = tmp_path / "generated" / "one" / "gen" / "dog.mp4"
    with av.open(str(videos / "original" / "dog.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    doubled = np.kron(np.stack(frames), np.ones((1, 2, 2, 1), dtype=np.uint8))
    _write(generated, doubled)
    output = tmp_path / "out.json"
    main(
        ["t2v-verify", "--generated", str(tmp_path / "generated"), "--original",
         str(videos / "original"), "-o", str(output)]
    )  # fmt: skip
    [row] = json.loads(output.read_text())["captioners"]
    assert row["generator"] == "gen"
    assert row["means"]["PSNR"] > 25


def test_scores_of_results_folders_are_those_of_the_runs(videos: Path, tmp_path: Path) -> None:
    """A captioner is called as its folder, and every metric of its tasks is a score."""
    folders = [
        plant(tmp_path / name, "vidcapbench_ae", drawn("vidcapbench_ae", seed, n_videos=5))
        for seed, name in enumerate(NOISE)
    ]
    document = _run(videos, tmp_path / "out.json", "--scores", *map(str, folders))
    means = _means(document, "PSNR")
    [row] = [
        each
        for each in document["correlations"]
        if each["measure"] == "PSNR" and each["score"] == "vidcapbench_ae acc"
    ]
    accuracies = [
        run.tasks["vidcapbench_ae"].scores["acc"]
        for folder in folders
        for run in read_results(folder)
    ]
    expected = np.corrcoef([means[name] for name in NOISE], accuracies)[0, 1]
    assert row["r"] == pytest.approx(expected)
    assert document["remarks"] == []


def test_two_captioners_have_no_correlation(videos: Path, tmp_path: Path) -> None:
    """It is null, and the reason stands beside it."""
    table = tmp_path / "scores.jsonl"
    table.write_text(
        '{"captioner": "clean", "a": 1, "b": 5}\n{"captioner": "lost", "a": 0, "b": 5}\n'
    )
    document = _run(videos, tmp_path / "out.json", "--scores", str(table))
    assert {row["r"] for row in document["correlations"]} == {None}
    assert {row["reason"] for row in document["correlations"]} == {"fewer than 3 captioners"}
    assert document["remarks"] == ["No score is of fair, rough."]


def test_what_cannot_be_compared_is_counted(
    videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broken file and one without an original cost themselves, out of the denominator."""
    folder = tmp_path / "generated" / "clean"
    folder.mkdir(parents=True)
    for name in ("dog", "bird"):
        source = videos / "generated" / "clean" / "dog.mp4"
        (folder / f"{name}.mp4").write_bytes(source.read_bytes())
    (folder / "cat.mp4").write_bytes(b"no video" * 200)
    output = tmp_path / "out.json"
    command = ["t2v-verify", "--generated", str(tmp_path / "generated"), "--original"]
    assert main([*command, str(videos / "original"), "-o", str(output)]) == 0
    document = json.loads(output.read_text())
    [row] = document["captioners"]
    assert (row["n_videos"], row["n_of_measure"]["PSNR"]) == (3, 1)
    reasons = {each["video"]: each["reason"] for each in document["videos"]}
    assert reasons["dog"] is None
    assert reasons["bird"] == "no original is called 'bird'"
    assert "expected a readable video" in reasons["cat"]
    assert "2 of 3 generated videos could not be compared" in capsys.readouterr().out


def test_ratings_of_people_are_averaged(videos: Path, tmp_path: Path) -> None:
    """Over raters, then over videos; an empty cell is no rating."""
    table = tmp_path / "ratings.csv"
    table.write_text(
        "captioner,video,rater,VA,SC,AR,LC\n"
        "clean,dog.mp4,ann,5,4,,3\nclean,dog,bob,2,4,,3\nclean,cat,ann,1,5,5,5\n"
        "rough,dog,ann,1,1,1,1\nclean,horse,ann,1,1,1,1\n"
    )
    document = _run(videos, tmp_path / "out.json", "--ratings", str(table))
    by_name = {row["captioner"]: row["means"] for row in document["captioners"]}
    assert by_name["clean"]["people VA"] == pytest.approx((3.5 + 1) / 2)
    assert by_name["clean"]["people AR"] == 5
    assert by_name["clean"]["people mean"] == 4  # of the cat alone
    assert by_name["rough"]["people mean"] == 1
    assert "people VA" not in by_name["fair"]
    assert "Ratings of 1 videos that are not there are left out." in document["remarks"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("clean,dog,ann,5,4,6,3", "line 3: expected a whole number from 1 to 5 under AR, got '6'"),
        ("clean,dog,ann,5,4,2.5,3", "line 3: expected a whole number"),
        ("clean,cat,ann,1,1,1,1", "line 3: 'ann' rated"),
        ("clean,dog,,1,1,1,1", "line 3: expected something under 'rater'"),
        ("claen,dog,ann,1,1,1,1", "got 'claen'"),
    ],
)
def test_a_wrong_rating_is_refused_with_its_line(
    row: str, words: str, videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before an hour of work is spent."""
    table = tmp_path / "ratings.csv"
    table.write_text(f"captioner,video,rater,VA,SC,AR,LC\nclean,cat,ann,1,2,3,4\n{row}\n")
    command = ["t2v-verify", "--generated", str(videos / "generated"), "--original"]
    assert main([*command, str(videos / "original"), "--ratings", str(table)]) == 2
    assert words in capsys.readouterr().err


def test_a_judge_rates_what_it_sees(
    bench: pytest.MonkeyPatch,
    serve: Any,
    videos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two pictures each, one request per video; an unreadable reply is unscored and counted."""
    server = serve()
    server.keep_bodies = True
    replies: dict[str, str] = {}

    def script(payload: dict[str, Any]) -> Say:
        content = payload["messages"][-1]["content"]
        assert [part["type"] for part in content] == ["text", "image_url", "image_url"]
        shown = content[2]["image_url"]["url"]
        number = len(replies)
        good = json.dumps({"VA": 1 + number % 5, "SC": 3, "AR": 3, "LC": 3})
        reply = replies.setdefault(shown, "It is fine." if number == 2 else good)
        return Say(reply)

    server.script = script
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "1")
    document = _run(videos, tmp_path / "out.json", "--judge")
    assert len(replies) == 8
    rows = [each for each in document["videos"] if "judge VA" in each["values"]]
    unscored = [each["unscored"] for each in document["videos"] if each["unscored"]]
    assert len(rows) == 7
    assert len(unscored) == 1
    assert "unreadable" in unscored[0][0]
    given = sorted(json.loads(reply)["VA"] for reply in replies.values() if reply[0] == "{")
    assert sorted(each["values"]["judge VA"] for each in rows) == given
    out = capsys.readouterr().out
    assert re.search(r"ratings of 1 videos\s+are unscored", out)
    assert re.search(r"the prompt is\s+ours", out)
    n_asked = server.counts.n_requests
    again = _run(videos, tmp_path / "out.json", "--judge")
    # What was answered is not asked again.
    assert server.counts.n_requests <= n_asked + 1
    assert again["captioners"] == document["captioners"]


def test_the_offline_judge_sees_nothing(
    bench: pytest.MonkeyPatch, videos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stand-in is refused in words, not asked."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    command = ["t2v-verify", "--generated", str(videos / "generated"), "--original"]
    assert main([*command, str(videos / "original"), "--judge"]) == 2
    assert "expected a judge that sees pictures" in capsys.readouterr().err
