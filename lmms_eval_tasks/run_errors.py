"""Errors that end a run of lmms-eval, each as one sentence on the last line of the screen.

lmms-eval prints a traceback and ends with exit code 0.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from types import TracebackType
from typing import Any, Final

from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.lmms_eval_tasks.dependencies import advice_for
from lmms_eval_captions.lmms_eval_tasks.sentence import sentence

_UNKNOWN_TASKS: Final = "Tasks not found: "
_UNKNOWN_MODEL: Final = re.compile(
    r"Model '(?P<name>.*)' not found in available models: (?P<known>.*)", re.DOTALL
)


def noted(evaluate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return lmms-eval's ``cli_evaluate_single``, which also notes why an evaluation ended."""

    @functools.wraps(evaluate)
    def evaluate_and_note(args: Any) -> Any:  # noqa: ANN401 - lmms-eval's own
        try:
            return evaluate(args)
        except SystemExit:
            if args.tasks is None:
                _note(
                    "lmms-eval was given no task: name one with --tasks, such as --tasks "
                    "vdc_score (--tasks list shows all)"
                )
            raise
        except Exception as error:
            _note(describe(error))
            raise

    return evaluate_and_note


def _note(message: str) -> None:
    # Other people's tasks start as fast as without us.
    from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN

    THIS_RUN.note_error(message)


def describe(error: Exception) -> str:
    """Return one sentence about an error that ended an evaluation, with advice."""
    error = cause_of(error)
    if isinstance(error, CaptionsError):
        return sentence(str(error))
    text = str(error)
    if text.startswith(_UNKNOWN_TASKS):
        from lmms_eval_captions.lmms_eval_tasks.task_names import known_names

        names = text.removeprefix(_UNKNOWN_TASKS).partition(". Try ")[0]
        return sentence(
            f"--tasks: lmms-eval knows no task {names}{_meant(names, known_names())} "
            "--tasks list shows all there are"
        )
    unknown = _UNKNOWN_MODEL.match(text)
    if unknown:
        meant = _meant(unknown["name"], unknown["known"].split(", "))
        return sentence(
            f"--model: lmms-eval knows no model {unknown['name']}{meant} `lmms-eval models` lists "
            "all"
        )
    if type(error).__module__.startswith("huggingface_hub") or "Repo id must" in text:
        return (
            "a model of --model_args is neither a local folder nor a name on the Hugging Face hub "
            f"that can be downloaded: {sentence(text, 120)}; correct pretrained=NAME"
        )
    text = f"{type(error).__name__}: {text}"
    advice = advice_for(error)
    if advice is not None:
        return f"lmms-eval ended with {sentence(text, 120)}: {advice}"
    return (
        f"lmms-eval ended with {sentence(text, 180)}; the traceback above shows where. Fix "
        "that, then run the same command again"
    )


def cause_of(error: Exception) -> Exception:
    """Return the error behind lmms-eval's errors about repeated attempts."""
    from tenacity import RetryError

    last = error.last_attempt.exception() if isinstance(error, RetryError) else None
    return cause_of(last) if isinstance(last, Exception) else error


def _meant(names: str, known: Sequence[str]) -> str:
    close = [match for name in names.split(", ") for match in get_close_matches(name, known, n=1)]
    return f"; was {', '.join(dict.fromkeys(close))} meant?" if close else "."


@functools.cache
def explain_uncaught_errors() -> None:
    """Print advice below the traceback of an uncaught error that a package's version explains."""
    shown_by = sys.excepthook

    def explain(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        shown_by(kind, error, trace)
        advice = advice_for(error)
        if advice is not None:
            from lmms_eval_captions.lmms_eval_tasks.judging.this_run import record

            message = f"{sentence(f'{kind.__name__}: {error}', 120)}: {advice}"
            record({"error": message})
            sys.stderr.write(f"{message}\n")

    sys.excepthook = explain
