"""Errors that end an evaluation, as one sentence."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import RUN_RECORD, THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.run_errors import describe, noted


def _tried_again(error: Exception) -> Exception:
    """The error that comes of trying something in vain."""
    from tenacity import RetryError, retry, stop_after_attempt

    @retry(stop=stop_after_attempt(2))
    def fail() -> None:
        raise error

    with pytest.raises(RetryError) as caught:
        fail()
    return caught.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(DataError("no file; get it"), "no file; get it", id="ours"),
        pytest.param(_tried_again(DataError("no file; get it")), "no file; get it", id="again"),
        pytest.param(
            ValueError("Tasks not found: vdc_scor, capquizz. Try `lmms-eval --tasks`"),
            "--tasks: lmms-eval knows no task vdc_scor, capquizz; was vdc_score, capquiz meant?",
            id="tasks",
        ),
        pytest.param(
            ValueError("Model 'caption_fil' not found in available models: llava, caption_file"),
            "--model: lmms-eval knows no model caption_fil; was caption_file meant?",
            id="model",
        ),
        pytest.param(
            KeyError("x" * 999), "lmms-eval ended with KeyError: 'xxx", id="somebody-elses"
        ),
    ],
)
def test_an_error_is_one_sentence(error: Exception, words: str) -> None:
    """Ours as it is, also behind the error of trying again; names get those that were meant."""
    said = describe(error)
    assert said.startswith(words)
    assert len(said) <= 300


def test_errors_of_evaluations_are_noted_once_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN_RECORD, str(tmp_path / "record"))
    monkeypatch.setattr(THIS_RUN, "errors", [])

    @noted
    def evaluate(args: Namespace) -> None:
        if args.tasks is None:
            sys.exit()
        raise DataError("no file; get it")

    for tasks in ("vdc_score", "vdc_score", None):
        with pytest.raises((DataError, SystemExit)):
            evaluate(Namespace(tasks=tasks))
    assert THIS_RUN.errors[0] == "no file; get it"
    assert "name one with --tasks" in THIS_RUN.errors[1]
    lines = (tmp_path / "record").read_text().splitlines()
    assert [json.loads(line)["error"] for line in lines] == THIS_RUN.errors
