"""A benchmark in a package of its own runs everywhere, and nothing of ours is edited for it."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from judge_server import Behaviour, JudgeServer
from report_pages import parsed
from runs import environment, run_lmms_eval

REPO = Path(__file__).resolve().parents[2]
EXAMPLE = REPO / "examples" / "caption_facts"

VIDEOS = {
    "dog": (
        "A dog runs. It is brown. The sun shines.",
        [("action", "The dog runs"), ("color", "The dog is brown"), ("place", "It is in a park")],
    ),
    "cat": ("A cat sleeps.", [("action", "The cat sleeps"), ("color", "The cat is black")]),
    "owl": ("...", [("place", "It sits in a tree"), ("color", "The owl is grey")]),
    "car": ("A car drives. It is red. It rains. Two people wait.", [("color", "The car is red")]),
}
"""Video to its caption, and to the kind and the words of each fact of its reference; one caption
says nothing."""
SAID = {video: caption for video, (caption, _) in VIDEOS.items() if caption != "..."}


def _answer(text: str, fact: str) -> str:
    """Yes, no or contradicted, whatever stands there: only who counts right gets the numbers."""
    digest = hashlib.blake2b(f"{text}|{fact}".encode(), digest_size=4).digest()
    return ("yes", "no", "contradicted")[int.from_bytes(digest, "big") % 3]


def _reply(prompt: str) -> str:
    if prompt.startswith("List the facts"):
        return "\n".join(_sentences(prompt.partition("Caption: ")[2]))
    text, _, fact = prompt.partition("Text: ")[2].partition("\nFact: ")
    return _answer(text, fact)


def _sentences(caption: str) -> list[str]:
    return [f"{sentence}." for sentence in caption.removesuffix(".").split(". ")]


def _count() -> Counter[str]:
    """Verdicts of all facts of all videos, counted from the texts alone."""
    verdicts: Counter[str] = Counter()
    for video, (caption, facts) in VIDEOS.items():
        if video not in SAID:
            verdicts["reference no"] += len(facts)
            continue
        reference = " ".join(fact for _, fact in facts)
        verdicts.update(f"caption {_answer(reference, fact)}" for fact in _sentences(caption))
        verdicts.update(f"reference {_answer(caption, fact)}" for _, fact in facts)
    return verdicts


def _scores(verdicts: Counter[str]) -> dict[str, float]:
    supported, contradicted = verdicts["caption yes"], verdicts["caption contradicted"]
    covered = verdicts["reference yes"]
    n_reference = sum(n for name, n in verdicts.items() if name.startswith("reference"))
    precision = 100 * supported / (supported + contradicted)
    coverage = 100 * covered / n_reference
    f1 = 2 * precision * coverage / (precision + coverage)
    return {"precision": precision, "coverage": coverage, "f1": f1}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example was installed in with pip, for ``PYTHONPATH``."""
    folder = tmp_path_factory.mktemp("packages")
    source = folder / "source"
    shutil.copytree(EXAMPLE, source)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(folder),
        str(source),
    ]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The benchmark's file, and captions of its videos."""
    (tmp_path / "data" / "toy").mkdir(parents=True)
    rows = [{"video": video, "facts": facts} for video, (_, facts) in VIDEOS.items()]
    (tmp_path / "data" / "toy" / "toy.jsonl").write_text("".join(map(_line, rows)))
    captions = [{"video": video, "caption": caption} for video, (caption, _) in VIDEOS.items()]
    (tmp_path / "captions.jsonl").write_text("".join(map(_line, captions)))
    return tmp_path / "data"


def _line(row: Mapping[str, object]) -> str:
    return f"{json.dumps(row)}\n"


def _command(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    module = "lmms_eval_captions.cli.main"
    line = [sys.executable, "-m", module, *arguments]
    return subprocess.run(line, env=env, capture_output=True, text=True, check=False)


def test_a_new_benchmark_runs_everywhere(packages: Path, data: Path, tmp_path: Path) -> None:
    """With extracted facts and two kinds of verdict: in every command that looks at benchmarks."""
    captions = tmp_path / "captions.jsonl"
    n_facts = sum(len(_sentences(caption)) for caption in SAID.values())
    n_reference = sum(len(facts) for _, facts in VIDEOS.values())
    n_asked = sum(len(VIDEOS[video][1]) for video in SAID)
    with JudgeServer(Behaviour(), reply=_reply) as server:
        env = environment(
            tmp_path / "cache",
            PYTHONPATH=str(packages),
            LMMS_CAPTIONS_DATA=str(data),
            LMMS_CAPTIONS_JUDGE="a-judge",
            LMMS_CAPTIONS_JUDGE_URL=server.url,
        )
        estimate = _command(env, "estimate", "--tasks", "toy")
        assert estimate.returncode == 0, estimate.stderr
        # One fact is extracted from the typical reply to each caption.
        n_estimated = len(VIDEOS) * 2 + n_reference
        cells = estimate.stdout.splitlines()[1].split()
        n_shown = [str(n_estimated - len(VIDEOS)), str(n_estimated)]
        assert cells[:5] == ["toy_facts", "a-judge", "1", *n_shown]
        assert "toy.facts 40, toy.verdict 1" in estimate.stdout
        assert server.counts.n_requests == 0
        doctor = _command(env, "doctor")
        assert f"ok       data      toy: {data / 'toy'}" in doctor.stdout, doctor.stdout
        n_before = server.counts.n_requests
        run = run_lmms_eval(
            tmp_path / "out",
            *("--model", "caption_file", "--model_args", f"path={captions}", "--tasks", "toy"),
            env=env,
            fresh=True,  # another package than the tests' own
        )
        assert run.returncode == 0, run.log[-3000:]
        assert server.counts.n_requests - n_before == len(SAID) + n_facts + n_asked
    expected = _scores(_count())
    task, group = run.newest.tasks["toy_facts"], run.newest.tasks["toy"]
    assert {name: task.scores[name] for name in expected} == pytest.approx(expected)
    assert group.scores["f1"] == pytest.approx(expected["f1"])
    assert not any(map(math.isnan, expected.values()))
    assert task.signature is not None
    assert task.signature.unscored == (0, n_facts + n_reference)
    kinds = run.breakdown("toy_facts")["kinds"]
    assert kinds["extracted"]["n_questions"] == n_facts
    assert kinds["color"]["n_questions"] == 4
    samples = {
        sample["target"]: sample["coverage"]["judgements"] for sample in run.samples("toy_facts")
    }
    for video, (caption, facts) in VIDEOS.items():
        n_own = len(_sentences(caption)) if video in SAID else 0
        assert len(samples[video]) == n_own + len(facts)
    check = _command(env, "check", str(run.output))
    assert (check.returncode, check.stderr) == (0, ""), check.stdout
    assert "toy_facts|judge:a-judge|" in check.stdout
    shutil.copytree(run.output, tmp_path / "again")
    compare = _command(env, "compare", str(run.output), str(tmp_path / "again"), "--tasks", "toy")
    assert (compare.returncode, compare.stderr) == (0, "")
    assert f"{expected['coverage']:.2f}" in compare.stdout
    page = tmp_path / "report.html"
    report = _command(env, "report", str(run.output), "-o", str(page), "--frames", "0")
    assert report.returncode == 0, report.stderr
    assert parsed(page.read_text()).view("toy_facts")["headline"] == "coverage"
