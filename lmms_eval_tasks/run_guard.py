"""Checks around a whole run of lmms-eval: one that cannot be judged ends early, in one sentence.

lmms-eval shows an error or Ctrl-C as a traceback, and judges last. Its :func:`simple_evaluate` is
wrapped (:mod:`patches`).
"""

from __future__ import annotations

import codecs
import locale
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_captions.judges.endpoint.cost import load_prices, require_price
from lmms_eval_captions.judges.endpoint.endpoint import cache_folder
from lmms_eval_captions.judges.endpoint.progress import end_other_bars
from lmms_eval_captions.judges.endpoint.store import require_writable
from lmms_eval_captions.judges.errors import CaptionsError, SettingsError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.run_errors import cause_of, describe
from lmms_eval_captions.lmms_eval_tasks.sampling.plans import cheap_judge
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS

if TYPE_CHECKING:
    from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark


def require_judge_of(benchmark: Benchmark[Any, Any]) -> None:
    """Raise CaptionsError, before anything is captioned, if captions could not be judged."""
    THIS_RUN.is_ours = True
    if THIS_RUN.output_path:
        _require_saving(Path(THIS_RUN.output_path).expanduser())
    if THIS_RUN.lacks_samples:
        raise SettingsError(
            "--baseline compares nothing without --log_samples: add --log_samples (and "
            "--output_path), or leave --baseline out"
        )
    if not THIS_RUN.will_judge:
        return
    # Read anew when the judge is first asked.
    settings = read_judge_settings()
    config = benchmark.judge_config(settings)
    if not config.asks_endpoint:
        return
    settings.require_named_judge(config.model)
    settings.require_judge_access()
    cheap = cheap_judge(settings, config.model)
    prices = load_prices(settings.prices)
    if settings.max_cost_usd is not None:
        require_price(config.model, prices, settings.endpoint.urls)
        if cheap is not None:
            require_price(cheap.name, prices, cheap.endpoint.urls, "cheap_judge")
    replies = settings.cache / "replies"
    if not (replies.is_dir() and any(replies.iterdir())):
        # A full store serves a rerun, also where nothing can be written.
        require_writable(replies)


def words_of_interruption() -> str:
    """Return how many replies are kept, and how to resume."""
    totals, captions = SESSION.totals(), RUN_CAPTIONS.saved
    if totals.calls or totals.n_from_store:
        return (
            f"Stopped by Ctrl-C: {totals.calls:,} new replies are kept in "
            f"{cache_folder() / 'replies'}; the same command resumes and asks only what is missing"
        )
    advice = "start the same command again"
    if captions is not None:
        advice = (
            f"the captions so far are in {captions}: --model caption_file --model_args "
            f"path={captions} has them judged"
        )
    return f"Stopped by Ctrl-C before the judge had answered anything; {advice}"


def guarded(evaluate: Callable[[], object], arguments: Mapping[str, object]) -> object:
    """Call ``simple_evaluate``; note an error of ours, and show it without its traceback."""
    THIS_RUN.is_ours = False
    THIS_RUN.output_path = getattr(arguments.get("evaluation_tracker"), "output_path", None)
    THIS_RUN.lacks_samples = bool(arguments.get("baseline") and not arguments.get("log_samples"))
    # A run before this one in the same process may have ended early.
    THIS_RUN.clear()
    THIS_RUN.will_judge = not (arguments.get("predict_only") or arguments.get("launcher_args"))
    RUN_CAPTIONS.begin()
    SESSION.begin()
    try:
        return evaluate()
    except KeyboardInterrupt:
        if THIS_RUN.is_ours:
            _end_by_interruption()
        raise
    except Exception as error:
        THIS_RUN.note_error(describe(error))
        cause = cause_of(error)
        if not isinstance(cause, CaptionsError) or arguments.get("verbosity") == "DEBUG":
            raise
        raise cause.with_traceback(None) from None
    finally:
        THIS_RUN.will_judge = False


def _end_by_interruption() -> None:
    """Note what is kept after Ctrl-C; the traceback, which does not say it, is not shown."""
    end_other_bars()
    THIS_RUN.errors.append(words_of_interruption())
    shown_by = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: Any) -> None:  # noqa: ANN401
        if not issubclass(kind, KeyboardInterrupt):
            shown_by(kind, error, trace)

    sys.excepthook = show


def _require_saving(folder: Path) -> None:
    """Raise if results could not be saved: captions and replies cost something by then."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as draft:
            os.write(draft.fileno(), b"0")
    except OSError as error:
        raise SettingsError(
            f"--output_path {folder}: results could not be saved there ({error.strerror or error});"
            " give a folder that can be written to"
        ) from error
    encoding = locale.getpreferredencoding(False)
    if codecs.lookup(encoding).name != "utf-8":
        raise SettingsError(
            f"results could not be saved: the locale's encoding is {encoding}, which lacks most "
            "characters; set PYTHONUTF8=1"
        )
