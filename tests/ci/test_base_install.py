"""A base install, without lmms-eval, torch and video libraries: commands, API and messages.

No network is needed: a folder with links to the packages of the base requirements, and to this
project, takes the place of a virtual environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement

from planted_pairs import drawn, plant

ROOT = Path(__file__).resolve().parents[2]
EXTRA = "pip install 'lmms-eval-captions[eval]'"
SCORE = ("score", "--in", "clips.parquet", "--out", "scores2", "--protocol")
QUESTIONS = [
    {
        "category": "Entity",
        "question": "Which animal is there?",
        "options": ["a dog", "a cat", "a cow", "a hen", "a fox"],
        "answer": "a dog",
    }
]


def _needed(name: str, extras: frozenset[str] = frozenset()) -> Iterator[str]:
    """The names of a distribution's requirements, and theirs."""
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return
    yield name
    for line in lines:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            yield from _needed(requirement.name, frozenset(requirement.extras))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a base install's packages."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "lmms_eval_captions").symlink_to(ROOT)
    for name in dict.fromkeys(_needed("lmms-eval-captions")):
        found = distribution(name)
        for top in {Path(file).parts[0] for file in found.files or () if ".." not in str(file)}:
            link = folder / top
            if not link.exists() and not top.startswith("__editable__"):
                link.symlink_to(Path(str(found.locate_file(top))))
    for heavy in ("torch", "lmms_eval", "av", "cv2", "transformers", "datasets", "PIL"):
        assert not (folder / heavy).exists(), heavy
    return folder


def _python(site: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("LMMS_")}
    env |= {"PYTHONPATH": str(site), "LMMS_CAPTIONS_CACHE": str(folder / "cache"), "COLUMNS": "200"}
    env |= {"LMMS_CAPTIONS_JUDGE": "lexical", "LMMS_CAPTIONS_DATA": str(folder / "data")}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def _command(site: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return _python(site, "-m", "lmms_eval_captions.cli.main", *arguments, folder=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with two finished runs and a file of captions."""
    folder = tmp_path_factory.mktemp("work")
    for seed, name in enumerate("ab"):
        plant(folder / name, "capquiz", drawn("capquiz", seed))
    (folder / "data" / "capquiz").mkdir(parents=True)
    row = {"video": "c.mp4", "domain": "animals", "questions": QUESTIONS}
    (folder / "data" / "capquiz" / "capquiz.jsonl").write_text(json.dumps(row))
    clips = {"clip_id": ["c"], "caption": ["A dog."], "questions": [QUESTIONS], "video": ["c.mp4"]}
    pq.write_table(pa.table(clips), folder / "clips.parquet")
    caption = {"video": "c.mp4", "caption": "There is a dog."}
    (folder / "captions.jsonl").write_text(json.dumps(caption))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "compare a b",
        "stability a",
        "agree a b",
        "report a b -o report.html",
        "check a --accept-doubts",
        "estimate --tasks capquiz",
        "score --in clips.parquet --out scores --protocol capquiz",
        "score captions.jsonl --tasks capquiz -o results",
        "doctor",
        "--version",
    ],
    ids=lambda command: command.split()[0],
)
def test_a_command_works_without_torch_and_lmms_eval(
    command: str, site: Path, folder: Path
) -> None:
    """It succeeds and prints what it found."""
    done = _command(site, *command.split(), folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_scorer_and_reward_work_without_torch_and_lmms_eval(site: Path, folder: Path) -> None:
    """The offline judge finds the answer in the caption."""
    program = (
        "from lmms_eval_captions import CaptionReward, Scorer\n"
        f"questions = [[{{**question, 'question': 'Who runs?'}} for question in {QUESTIONS}]]\n"
        "rows = {'clip_id': ['d'], 'questions': questions}\n"
        "score = Scorer('capquiz').score(['There is a dog.'], questions)[0].scores\n"
        "reward = CaptionReward('capquiz')(['Caption it.'], ['There is a dog.'], **rows)\n"
        "print(score['capf1'], reward)\n"
    )
    done = _python(site, "-c", program, folder=folder)
    assert done.stdout == "100.0 [1.0]\n", done.stderr


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["run", "--tasks", "vdc_score"], "lmms-eval"),
        ([*SCORE, "capquiz", "--captioner", "caption_hf"], "torch"),
        ([*SCORE, "vllm_judge", "--videos", "."], "av"),
    ],
    ids=["run", "captioner", "videos"],
)
def test_a_command_that_needs_the_extra_says_so(
    arguments: list[str], missing: str, site: Path, folder: Path
) -> None:
    """On the last line, with the command that installs it, and exit code 2."""
    done = _command(site, *arguments, folder=folder)
    last = done.stderr.splitlines()[-1]
    assert missing in last
    assert last.endswith(f"is not installed. Run: {EXTRA}")
    assert done.returncode == 2


@pytest.mark.parametrize(
    "statement",
    [
        "from lmms_eval_captions.model_wrappers.captioner import Captioner",
        "from lmms_eval_captions import Scorer; Scorer('gveval_ref_free')",
        "from pathlib import Path; "
        "from lmms_eval_captions.model_wrappers.video.frames import read_frames; "
        "read_frames(Path('clips.parquet'), 3)",
    ],
    ids=["captioner", "scorer", "video"],
)
def test_a_statement_that_needs_the_extra_says_so(statement: str, site: Path, folder: Path) -> None:
    """The error's last line has the command."""
    done = _python(site, "-c", statement, folder=folder)
    assert done.stderr.splitlines()[-1].endswith(f"Run: {EXTRA}")
