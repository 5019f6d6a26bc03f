"""Fifty mistakes that people make: what they typed, the exit code, the one line that they read.

That line is the last one on the screen. It says what is wrong and what to do about it, in at most
300 characters.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from conftest import ServerFactory
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.cli.run import conclude
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import RUN_RECORD
from lmms_eval_captions.lmms_eval_tasks.sentence import MOST
from runs import environment
from warm_lmms_eval import WarmProcess

SIGNATURE: Final = "vdc_camera|judge:j|runs:1|protocol:1|unscored:{}/100|lmms-eval-captions:0.1.0"
RESULTS: Final = (
    '{{"results": {{"vdc_camera": {{"vdc_acc,none": {}}}}}, '
    '"lmms_eval_captions": {{"tasks": {{"vdc_camera": {{"signature": "{}"}}}}}}}}'
)
CAPTION: Final = '{"video_id": "sample_01", "caption": "A red circle moves."}\n'
FILE: Final = ("--model", "caption_file", "--model_args")
CAMERA: Final = ("--tasks", "vdc_camera")
ESTIMATE: Final = ("estimate", *CAMERA)
GVEVAL: Final = ("meta-eval", "msvd", "--no-classic", "--gveval")
NOTHING_LISTENS: Final = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Mistake:
    typed: tuple[str, ...]
    wrong: str
    advice: str
    exit_code: int = 2
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    server: Mapping[str, object] | None = None


def _data(**variables: str) -> dict[str, str]:
    return {f"LMMS_CAPTIONS_{name}": value for name, value in variables.items()}


def _results(value: str, n_unscored: int = 0) -> str:
    return RESULTS.format(value, SIGNATURE.format(n_unscored))


OURS: Final = {
    # The command line.
    "command": Mistake(("chek", "out"), "no command 'chek'", "did you mean check?"),
    "no-folder": Mistake(("check",), "required", "FOLDER"),
    "run-nothing": Mistake(("run",), "got none", "such as --model caption_file"),
    "run-command": Mistake(
        ("run", "lmms_evall", *CAMERA), "'lmms_evall', which cannot be started", "such as --model"
    ),
    "run-config": Mistake(
        ("run", "--config", "{root}/a.yaml"), "found no file", "give the path of one"
    ),
    "since": Mistake(("check", "out", "--since", "yesterday"), "got 'yesterday'", "such as 90m"),
    "runs": Mistake(
        (*ESTIMATE, "--judge-runs", "0"), "got '0'", "expected a whole number of at least 1"
    ),
    # Paths of results.
    "check-nowhere": Mistake(
        ("check", "{root}/nowhere"), "there is no such folder", "give the folder that lmms-eval had"
    ),
    "check-empty": Mistake(("check", "{root}"), "no *_results.json", "look at the end of its log"),
    "check-cut": Mistake(
        ("check", "{root}"),
        "expected a results file",
        "Run again, and delete it",
        files={"1_results.json": '{"results": {"vdc_ca'},
    ),
    "check-older": Mistake(
        ("check", "{root}", "--since", "1s"),
        "no run ended since",
        "see the end of its log",
        files={"1_results.json": _results("40.0")},
    ),
    "check-other-tasks": Mistake(
        ("check", "{root}"),
        "holds no task of lmms-eval-captions",
        "name one with --tasks",
        exit_code=1,
        files={"1_results.json": '{"results": {"mme": {"mme,none": 1}}}'},
    ),
    # Scores that are none.
    "check-nan": Mistake(
        ("check", "{root}"),
        "vdc_camera: vdc_acc is nan: 40 of 100 questions are unscored",
        "run the same command again",
        exit_code=1,
        files={"1_results.json": _results("NaN", 40)},
    ),
    "check-hidden-nan": Mistake(
        ("check", "{root}"),
        "vdc_camera: vdc_acc is nan",
        "run the same command again",
        exit_code=1,
        files={
            "1_results.json": _results("NaN", 40),
            "2_results.json": _results("40.0").replace("vdc_camera", "vdc_short"),
        },
    ),
    "check-unreadable-replies": Mistake(
        ("check", "{root}"),
        "5 of 100 questions are unscored (5.00%): unreadable reply",
        "LMMS_CAPTIONS_ASK_AGAIN=1",
        exit_code=1,
        files={
            "1_results.json": _results("40.0", 5),
            "1_judging.json": '{"tasks": {"vdc_camera": {"unscored": '
            '{"reasons": {"unreadable reply, asked 4 times": 5}, '
            '"reasons_by_kind": {"unreadable": 5}}}}}',
        },
    ),
    # Tasks, captions and data, before anything is sent.
    "estimate-task": Mistake(
        ("estimate", "--tasks", "vdc_scor"), "'vdc_scor' is none of ours", "was vdc_score meant?"
    ),
    "estimate-no-task": Mistake(
        ("estimate", "--tasks", ","), "expected at least one task", "--tasks list` shows all"
    ),
    "estimate-captions": Mistake(
        (*ESTIMATE, "--captions", "{root}/nowhere.jsonl"), "does not exist", "check"
    ),
    "data-nowhere": Mistake(
        ESTIMATE,
        "no folder",
        "expected the root of local benchmark data",
        exit_code=1,
        env=_data(DATA="{root}/nowhere"),
    ),
    "data-empty": Mistake(
        ESTIMATE,
        "no file",
        "and set LMMS_CAPTIONS_DATA=",
        exit_code=1,
        env=_data(DATA="{root}"),
    ),
    "data-cut": Mistake(
        ESTIMATE,
        "line 1",
        "Download it again",
        exit_code=1,
        env=_data(DATA="{root}"),
        files={"vdc/VDCScore_qa/camera.jsonl": '{"video": [{"question": "Is'},
    ),
    # Settings.
    "misspelt": Mistake(
        ("run", *CAMERA),
        "LMMS_CAPTIONS_MAXCOST: no setting of this name",
        "was LMMS_CAPTIONS_MAX_COST meant?",
        env=_data(MAXCOST="20"),
    ),
    "concurrency": Mistake(
        ("run", *CAMERA), "got 'many'", "whole number", env=_data(JUDGE_CONCURRENCY="many")
    ),
    "max-cost": Mistake(
        ("run", *CAMERA),
        "got 'cheap'",
        "US dollars above 0, such as 20",
        env=_data(MAX_COST="cheap"),
    ),
    "mode": Mistake(ESTIMATE, "got 'bacth'", "one of now, batch", env=_data(JUDGE_MODE="bacth")),
    "batch-replicas": Mistake(
        ESTIMATE,
        "got 2",
        "expected one URL with batch",
        env=_data(JUDGE_MODE="batch", JUDGE_URL="http://127.0.0.1:1/v1,http://127.0.0.1:2/v1"),
    ),
    "api": Mistake(
        ESTIMATE, "got 'claude'", "openai, azure, anthropic", env=_data(JUDGE_API="claude")
    ),
    "share": Mistake(
        ("check", "{root}"), "got '5%'", "a share between 0 and 1", env=_data(MAX_UNSCORED="5%")
    ),
    "prices": Mistake(
        ESTIMATE, "cannot be read", "give the path", env=_data(PRICES="{root}/nowhere.yaml")
    ),
    "prices-shape": Mistake(
        ESTIMATE,
        "'cheap'",
        "expected {as_of: DATE",
        env=_data(PRICES="{root}/p.yaml"),
        files={"p.yaml": "models: {m: {input: cheap}}"},
    ),
    "prompts": Mistake(
        ESTIMATE, "No such file", "expected a folder of prompts", env=_data(PROMPTS="{root}/none")
    ),
    # The judge.
    "url": Mistake(
        ("doctor",),
        "got 'localhost:8000'",
        "such as http://",
        env=_data(JUDGE_URL="localhost:8000"),
    ),
    "no-server": Mistake(
        ("doctor",),
        "no reply from",
        "start that server, or correct LMMS_CAPTIONS_JUDGE_URL",
        exit_code=1,
        env=_data(JUDGE_URL=NOTHING_LISTENS),
    ),
    "no-key": Mistake(
        ("doctor",),
        "OPENAI_API_KEY is not set",
        "set it, point LMMS_CAPTIONS_JUDGE_URL",
        exit_code=1,
    ),
    "wrong-key": Mistake(
        ("doctor",),
        "401",
        "check OPENAI_API_KEY",
        exit_code=1,
        env={**_data(JUDGE_URL="{url}"), "OPENAI_API_KEY": "sk-2"},
        server={"key": "sk-1"},
    ),
    "no-name": Mistake(
        ("doctor",),
        "LMMS_CAPTIONS_JUDGE is not set",
        "Set LMMS_CAPTIONS_JUDGE to the name of the model",
        exit_code=1,
        env=_data(JUDGE="", JUDGE_URL="{url}"),
        server={},
    ),
    # Folders.
    "cache": Mistake(
        ("doctor",),
        "cannot be used",
        "set LMMS_CAPTIONS_CACHE to another folder",
        exit_code=1,
        env=_data(JUDGE="lexical", CACHE="{root}/file"),
        files={"file": ""},
    ),
    # Scores of one's own.
    "scores-nowhere": Mistake(
        (*GVEVAL, "--scores", "{root}/none.csv"), "cannot be read", "give a .json, .jsonl or .csv"
    ),
    "scores-words": Mistake(
        (*GVEVAL, "--scores", "{root}/s.csv"),
        "found none in 1 rows",
        "expected a column of numbers",
        files={"s.csv": "vname,score\nsample_01,good\n"},
    ),
    "scores-others": Mistake(
        (*GVEVAL, "--scores", "{root}/s.csv"),
        "column 'score' has a",
        "expected scores of the rated",
        files={"s.csv": "vname,score\na,1\n"},
    ),
    "no-scores": Mistake(GVEVAL, "no metric is left to compare", "give --scores FILE"),
}


def _captions(
    path: str, wrong: str, advice: str, content: str | bytes | None = None, arguments: str = ""
) -> Mistake:
    """A mistake in a file of captions."""
    files: dict[str, str | bytes] = {} if content is None else {path: content}
    typed = (*FILE, f"path={{root}}/{path}{arguments}", *CAMERA)
    return Mistake(typed, wrong, advice, exit_code=1, files=files)


def _judge(wrong: str, advice: str, server: Mapping[str, object], **variables: str) -> Mistake:
    """A mistake about the judge, with captions that are fine."""
    return Mistake(
        (*FILE, "path={captions}", *CAMERA),
        wrong,
        advice,
        exit_code=1,
        env={**_data(JUDGE="judge", JUDGE_URL="{url}"), **variables},
        server=server,
    )


THROUGH_LMMS_EVAL: Final = {
    # Command lines.
    "task": Mistake(
        (*FILE, "path={captions}", "--tasks", "vdc_scor"),
        "knows no task vdc_scor",
        "was vdc_score meant?",
        exit_code=1,
    ),
    "no-task": Mistake((*FILE, "path={captions}"), "given no task", "name one with", exit_code=1),
    "model": Mistake(
        ("--model", "caption_fil", *CAMERA),
        "no model caption_fil",
        "caption_file meant",
        exit_code=1,
    ),
    "no-path": Mistake(
        ("--model", "caption_file", *CAMERA), "got no path", "expected --model_args path=FILE", 1
    ),
    "argument": Mistake((*FILE, "pth=a", *CAMERA), "does not know ['pth']", "it takes", 1),
    "limit": Mistake((*FILE, "path=a", *CAMERA, "--limit", "few"), "exit code 2", "fix that", 2),
    "log-samples": Mistake(
        (*FILE, "path={captions}", *CAMERA, "--log_samples"),
        "--log_samples",
        "Specify --output_path",
        exit_code=1,
    ),
    "baseline": Mistake(
        (*FILE, "path={captions}", *CAMERA, "--baseline", "{root}"),
        "--baseline compares nothing without --log_samples",
        "add --log_samples",
        exit_code=1,
    ),
    "output": Mistake(
        (*FILE, "path={captions}", *CAMERA, "--output_path", "{root}/file"),
        "could not be saved",
        "give a folder that can be written to",
        exit_code=1,
        files={"file": ""},
    ),
    "checkpoint": Mistake(
        ("--model", "caption_hf", "--model_args", "pretrained={root}/none", *CAMERA),
        "there is no folder",
        "pretrained= takes the folder of a checkpoint",
        exit_code=1,
    ),
    "class": Mistake(
        ("--model", "caption_custom", *CAMERA), "got class=None", "class=my_module:MyCaptioner", 1
    ),
    # Files of captions.
    "captions-nowhere": _captions("nowhere.jsonl", "does not exist", "check path="),
    "captions-empty": _captions("c.jsonl", "no rows", "expected a video and a caption", ""),
    "captions-cut": _captions("c.jsonl", "line 2", "correct or remove the line", f'{CAPTION}{{"vi'),
    "captions-columns": _captions("c.jsonl", "no row has a caption", "rename one", '{"id": "a"}\n'),
    "captions-column": _captions("c.jsonl", "no column 'c'", "columns are", CAPTION, ",column=c"),
    "captions-encoding": _captions(
        "c.csv", "it is UTF-16 text", "save it as UTF-8", "video_id,caption\n".encode("utf-16")
    ),
    "captions-format": _captions("c.xlsx", "expected a name ending in", "convert it", b"PK\3\4"),
    "captions-missing": _captions("c.jsonl", "11 of 12 captions are missing", "Add them", CAPTION),
    # Judges.
    "judge-key": _judge("401", "check OPENAI_API_KEY", {"key": "sk-1"}, OPENAI_API_KEY="sk-2"),
    "judge-no-model": _judge(
        "404", "LMMS_CAPTIONS_JUDGE_URL", {"status": 404, "message": "no such model"}
    ),
    "judge-cache": Mistake(
        (*FILE, "path={captions}", *CAMERA),
        "replies cannot be kept",
        "set LMMS_CAPTIONS_CACHE to a folder that is",
        exit_code=1,
        env=_data(JUDGE="judge", JUDGE_URL=NOTHING_LISTENS, CACHE="/proc/nowhere"),
    ),
    "judge-no-price": _judge(
        "the price of 'judge' is not known",
        "LMMS_CAPTIONS_PRICES",
        {},
        LMMS_CAPTIONS_JUDGE_URL="https://judge.example.com/v1",
        OPENAI_API_KEY="sk-1",
    ),
    "judge-too-dear": Mistake(
        ("--model", "caption_baseline", *CAMERA),
        "requests, about $",
        "LMMS_CAPTIONS_PRECISION",
        exit_code=1,
        env={**_data(JUDGE="gpt-4o", JUDGE_URL="{url}", MAX_COST="0.001")},
        server={},
    ),
}
"""Behind ``lmms-eval-captions run``."""


def _prepared(mistake: Mistake, root: Path, filled: Mapping[str, str]) -> tuple[list[str], ...]:
    """Write a person's files; their command line, and their environment as alternating texts."""
    for name, content in mistake.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, (1.0, 1.0))

    def fill(text: str) -> str:
        return re.sub(r"\{(root|url|captions)\}", lambda slot: filled[slot[1]], text)

    return [*map(fill, mistake.typed)], [
        fill(text) for pair in mistake.env.items() for text in pair
    ]


def _require_helpful(line: str, mistake: Mistake) -> None:
    assert mistake.wrong in line
    assert mistake.advice in line
    assert len(line) <= MOST, len(line)


@pytest.mark.parametrize("name", OURS)
def test_a_mistake_ends_in_one_line_that_helps(
    name: str,
    tmp_path: Path,
    serve: ServerFactory,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nothing is sent, and the last line says what is wrong and what to do."""
    mistake, root = OURS[name], tmp_path / "own"
    root.mkdir()
    url = serve(**mistake.server).url if mistake.server is not None else ""
    typed, variables = _prepared(mistake, root, {"root": str(root), "url": url})
    for variable in list(os.environ):
        if variable.startswith(("LMMS_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(variable)
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="gpt-4o")
    env.update(zip(variables[::2], variables[1::2], strict=True))
    for variable, value in env.items():
        if variable.startswith(("LMMS_", "OPENAI_")):
            monkeypatch.setenv(variable, value)
    assert _exit_code(partial(main, typed)) == mistake.exit_code
    screen = capfd.readouterr()
    _require_helpful((screen.err or screen.out).rstrip().splitlines()[-1], mistake)


def _exit_code(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as ended:  # argparse
        return int(str(ended.code))


@pytest.mark.parametrize("name", THROUGH_LMMS_EVAL)
def test_a_mistake_in_a_run_ends_in_one_line_that_helps(
    name: str, tmp_path: Path, serve: ServerFactory
) -> None:
    """lmms-eval ends with 0 and a traceback; ``run`` with an exit code and a line that helps."""
    mistake, root = THROUGH_LMMS_EVAL[name], tmp_path / "own"
    root.mkdir()
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical")
    captions = Path(env["LMMS_CAPTIONS_CACHE"]).glob("sample-*/vdc/captions.jsonl")
    filled = {
        "root": str(root),
        "url": serve(**mistake.server).url if mistake.server is not None else "",
        "captions": str(next(captions)),
    }
    typed, variables = _prepared(mistake, root, filled)
    env |= {
        RUN_RECORD: str(root / "record"),
        **dict(zip(variables[::2], variables[1::2], strict=True)),
    }
    run = WarmProcess(typed, env=env, cwd=root).wait(120.0)
    lines, code = conclude(run.returncode, root / "record", typed)
    assert code == mistake.exit_code, run.log
    _require_helpful(lines[-1], mistake)


@pytest.mark.parametrize(
    ("number", "exit_code", "wrong"),
    [
        pytest.param(signal.SIGINT, 130, "stopped by Ctrl-C", id="ctrl-c"),
        pytest.param(signal.SIGTERM, 143, "ended by SIGTERM", id="job-manager"),
        pytest.param(signal.SIGKILL, 137, "was killed", id="memory"),
    ],
)
def test_a_run_that_was_interrupted_says_what_is_kept(
    number: signal.Signals, exit_code: int, wrong: str, tmp_path: Path, serve: ServerFactory
) -> None:
    """While it judges: the exit code is the shell's, and the line says how to go on."""
    server = serve(latency_s=60.0)
    url = {"LMMS_CAPTIONS_JUDGE_URL": server.url, RUN_RECORD: str(tmp_path / "record")}
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="judge", **url)
    captions = next(Path(env["LMMS_CAPTIONS_CACHE"]).glob("sample-*/vdc/captions.jsonl"))
    typed = [*FILE, f"path={captions}", *CAMERA]
    run = WarmProcess(typed, env=env, cwd=tmp_path)
    deadline = time.monotonic() + 60.0
    while not server.counts.n_requests:
        assert time.monotonic() < deadline, run.log()
        time.sleep(0.05)
    os.kill(run.pid, number)
    lines, code = conclude(run.wait(60.0).returncode, tmp_path / "record", typed)
    assert code == exit_code
    advice = "the same command resumes"
    _require_helpful(lines[-1], Mistake((), wrong, advice))
