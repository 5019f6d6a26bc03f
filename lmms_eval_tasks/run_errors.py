"""Errors that end a run of lmms-eval, each as one sentence on the last line of the screen.

lmms-eval logs them after a traceback and ends with exit code 0.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from types import TracebackType
from typing import TYPE_CHECKING, Final

from loguru import logger

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.dependencies import advice_for
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

if TYPE_CHECKING:
    from loguru import Message

_ENDED: Final = "Error during evaluation: "
_NO_TASK: Final = "Need to specify task to evaluate."
_UNKNOWN_TASKS: Final = "Tasks not found: "
_UNKNOWN_MODEL: Final = re.compile(
    r"Model '(?P<name>.*)' not found in available models: (?P<known>.*)", re.DOTALL
)


class ErrorNotes:
    """Listens to what lmms-eval logs of an evaluation that an error ended."""

    def __init__(self) -> None:
        self._sink: int | None = None

    def listen(self) -> None:
        """Listen from now on; to be called anew in each evaluation.

        lmms-eval removes all listeners when it begins.
        """
        self.stop()
        self._sink = logger.add(self._note, level="ERROR", format="{message}")

    def stop(self) -> None:
        """Listen no more."""
        if self._sink is not None:
            with suppress(ValueError):
                logger.remove(self._sink)

    def _note(self, message: Message) -> None:
        from lmms_eval_captions.lmms_eval_tasks.run_record import append_error
        from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN

        text = message.record["message"]
        if text.startswith(_ENDED):
            # It logs within its `except`.
            words = words_of(sys.exc_info()[1], text.removeprefix(_ENDED))
        elif text == _NO_TASK:
            words = (
                "lmms-eval was given no task: name one with --tasks, such as --tasks vdc_score "
                "(--tasks list shows all)"
            )
        else:
            return
        if words not in THIS_RUN.errors:
            THIS_RUN.errors.append(words)
        append_error(words)


ERROR_NOTES: Final = ErrorNotes()


def words_of(error: BaseException | None, logged: str) -> str:
    """An error in one sentence that says what to do.

    Args:
        error: What ended the evaluation.
        logged: What lmms-eval says of it.
    """
    error = None if error is None else cause_of(error)
    if isinstance(error, CaptionsError):
        return sentence(str(error))
    text = str(error) if error is not None else logged
    if text.startswith(_UNKNOWN_TASKS):
        return _words_of_tasks(text.removeprefix(_UNKNOWN_TASKS).partition(". Try ")[0])
    unknown = _UNKNOWN_MODEL.match(text)
    if unknown:
        close = get_close_matches(unknown["name"], unknown["known"].split(", "), n=1)
        return sentence(
            f"--model: lmms-eval knows no model {unknown['name']}{_meant(close)} "
            "`lmms-eval models` lists all"
        )
    if type(error).__module__.startswith("huggingface_hub") or "Repo id must" in text:
        return (
            "a model of --model_args is neither a folder here nor a name on the Hugging Face hub "
            f"that can be downloaded: {sentence(text, 120)}; correct pretrained=NAME"
        )
    kind = f"{type(error).__name__}: " if error is not None else ""
    advice = None if error is None else advice_for(error)
    if advice is not None:
        return f"lmms-eval ended with {sentence(kind + text, 120)}: {advice}"
    return (
        f"lmms-eval ended with {sentence(kind + text, 180)}; the traceback above shows where. Fix "
        "that, then run the same command again"
    )


@functools.cache
def explain_uncaught_errors() -> None:
    """Print advice below the traceback of an uncaught error that a package's version explains."""
    sys.excepthook = functools.partial(_explain, sys.excepthook)


def _explain(
    show: Callable[..., object],
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    from lmms_eval_captions.lmms_eval_tasks.run_record import append_error

    show(kind, error, trace)
    advice = advice_for(error)
    if advice is not None:
        message = f"{sentence(f'{kind.__name__}: {error}', 120)}: {advice}"
        append_error(message)
        sys.stderr.write(f"{message}\n")


def cause_of(error: BaseException) -> BaseException:
    """What went wrong, also where lmms-eval tried again and raised an error about the trying."""
    from tenacity import RetryError

    last = error.last_attempt.exception() if isinstance(error, RetryError) else None
    return error if last is None else cause_of(last)


def _words_of_tasks(names: str) -> str:
    """Which tasks lmms-eval does not know, and which were probably meant."""
    from lmms_eval_captions.lmms_eval_tasks.task_names import known_names

    known = known_names()
    close = [match for name in names.split(", ") for match in get_close_matches(name, known, n=1)]
    return sentence(
        f"--tasks: lmms-eval knows no task {names}{_meant(close)} --tasks list shows all there are"
    )


def _meant(names: Sequence[str]) -> str:
    return f"; was {', '.join(dict.fromkeys(names))} meant?" if names else "."
