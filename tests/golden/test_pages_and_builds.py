"""Golden outputs of ``report``, ``doctor``, ``build`` and ``t2v-verify``."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from builder_replies import Told
from builder_server import Builder, BuilderServer
from building_runs import SOLVERS, VIEWERS, WRITERS
from golden import check, numbers
from lmms_eval_captions.cli.main import main
from report_pages import Page, parsed
from scripted_crew import write_clip


@pytest.fixture(scope="module")
def page(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of all captioners by one judge."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    folders = [str(world.run(captioner)) for captioner in ("alpha", "beta", "gamma")]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.env.items():
            if name.startswith("LMMS_"):
                patch.setenv(name, value)
        assert main(["report", *folders, "-o", str(path), "--frames", "0"]) == 0
    return parsed(path.read_text())


def test_scores_of_the_report(page: Page) -> None:
    """Every score with its interval, and the questions without a verdict."""
    scores = {
        f"{view['name']}/{captioner}": [
            *(of["figure"] for of in scores["metrics"].values()), scores["unscored"],
        ]
        for view in page.core["views"]
        for captioner, scores in enumerate(view["scores"])
        if scores is not None
    }  # fmt: skip
    check("report-scores", scores)


def test_verdicts_of_the_report(page: Page) -> None:
    counts: dict[str, Counter[str]] = {}
    for task, _, _, questions in page.questions():
        for question in questions:
            for captioner, verdicts in enumerate(question.verdicts):
                counts.setdefault(f"{task}/{captioner}", Counter()).update(map(str, verdicts))
    check("report-verdicts", counts)


@pytest.mark.usefixtures("folders")
def test_doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Topics, which of them are a problem, and the exit code, with the offline judge."""
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    capsys.readouterr()
    code = main(["doctor"])
    topics = re.findall(r"^(ok|problem) +(\w+)", capsys.readouterr().out, re.MULTILINE)
    check("doctor", {"exit code": code, "topics": sorted(map(list, set(topics)))})


@pytest.mark.parametrize("kind", ["capquiz", "vcapsbench", "vdc", "vidcapbench"])
def test_build(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Official files of three clips, by scripted models with planted faults."""
    for number in range(3):
        write_clip(tmp_path / f"clips/clip{number}.mp4", shade=40 + 60 * number)
    models = ["--writer", ",".join(WRITERS), "--solver", ",".join(SOLVERS), "--viewer", *VIEWERS]
    with BuilderServer(Builder(Told(seed=1))) as server:
        monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
        folders = ["--videos", str(tmp_path / "clips"), "-o", str(tmp_path / "data")]
        assert main(["build", kind, *folders, *models, "--frames", "2"]) == 0
    files = sorted((tmp_path / "data").rglob("*QA*.json*"))
    files += sorted((tmp_path / "data").rglob("VDCScore_qa/*.jsonl"))
    files += sorted((tmp_path / "data").rglob("capquiz.jsonl"))
    assert files
    root = tmp_path / "data"
    check(f"build-{kind}", {path.relative_to(root).as_posix(): path.read_text() for path in files})


def test_t2v_verify(tmp_path: Path) -> None:
    """PSNR and SSIM of noisy copies, and their correlation with scores."""
    noise = {"clean": 0, "fair": 25, "rough": 50, "lost": 110}
    for seed, video in enumerate(("dog", "cat")):
        rng = np.random.default_rng(seed)
        blocks = np.kron(rng.integers(40, 215, (6, 16, 3)), np.ones((8, 8, 1)))
        frames = np.stack([blocks[:, 2 * index : 2 * index + 64] for index in range(12)])
        _write_video(tmp_path / "original" / f"{video}.mp4", frames)
        for captioner, level in noise.items():
            noisy = frames + rng.normal(0, 1, (*frames.shape[:3], 1)) * level
            _write_video(tmp_path / "generated" / captioner / f"{video}.mp4", noisy)
    scores = tmp_path / "scores.csv"
    scores.write_text("captioner,accuracy\nclean,0.9\nfair,0.7\nrough,0.75\nlost,0.1\n")
    videos = ["--generated", str(tmp_path / "generated"), "--original", str(tmp_path / "original")]
    output = tmp_path / "out.json"
    assert main(["t2v-verify", *videos, "-o", str(output), "--scores", str(scores)]) == 0
    check("t2v-verify", _rounded(numbers(json.loads(output.read_text()))))


def _write_video(path: Path, frames: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=12, options={"qscale": "2"})
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuv420p"
        for frame in np.clip(frames, 0, 255).astype(np.uint8):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def _rounded(document: Any) -> Any:
    """Numbers to six digits: decoders differ behind them."""
    if isinstance(document, dict):
        return {key: _rounded(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_rounded(value) for value in document]
    return float(f"{document:.6g}") if isinstance(document, float) else document
