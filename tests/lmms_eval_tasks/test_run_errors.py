"""What lmms-eval logs of an evaluation that an error ended becomes one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from loguru import logger

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.run_errors import ERROR_NOTES, ErrorNotes, words_of
from lmms_eval_captions.lmms_eval_tasks.run_record import RUN_RECORD
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN


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
    said = words_of(error, "")
    assert said.startswith(words)
    assert len(said) <= 300


def test_what_ends_a_run_is_noted_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each evaluation listens anew, since lmms-eval removes who listens, and notes once."""
    record = tmp_path / "record"
    monkeypatch.setenv(RUN_RECORD, str(record))
    monkeypatch.setattr(THIS_RUN, "errors", [])
    ERROR_NOTES.stop()  # of an evaluation that another test has begun in this process
    notes = ErrorNotes()
    notes.listen()
    notes.listen()
    try:
        logger.error("something else")
        _fail(DataError("no file; get it"))
        _fail(DataError("no file; get it"))
        logger.error("Need to specify task to evaluate.")
    finally:
        notes.stop()
    assert THIS_RUN.errors[0] == "no file; get it"
    assert "name one with --tasks" in THIS_RUN.errors[1]
    lines = [json.loads(line)["error"] for line in record.read_text().splitlines()]
    assert lines == [THIS_RUN.errors[0], *THIS_RUN.errors]


def _fail(error: Exception, log: Callable[[str], None] = logger.error) -> None:
    """End an evaluation as lmms-eval does."""
    try:
        raise error
    except DataError as caught:
        log(f"Error during evaluation: {caught}. Please set `--verbosity=DEBUG` to get more.")
