"""Entry point of lmms-eval for models, which also makes our tasks known.

lmms-eval (0.7.3) has none for tasks. It loads this one before it builds the task index, so the
patch that adds our folder to the index is installed here.
"""

from __future__ import annotations

import atexit
import os
import sys
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from loguru import logger

from lmms_eval_captions.lmms_eval_tasks.integration import patches
from lmms_eval_captions.lmms_eval_tasks.run_errors import explain_uncaught_errors
from lmms_eval_captions.model_wrappers.caption_clips import CAPTIONERS, CUSTOM, CUSTOM_CLASS

if TYPE_CHECKING:
    from lmms_eval.models.registry_v2 import ModelManifest


def manifests() -> list[ModelManifest]:
    """Return our captioners, for the entry point ``lmms_eval.models``, and install our patches."""
    from lmms_eval.models.registry_v2 import ModelManifest

    print_at_exit()
    explain_uncaught_errors()
    patches.install()
    logger.configure(patcher=_hide_token)
    return [
        ModelManifest(model_id=CUSTOM, simple_class_path=CUSTOM_CLASS),
        *(
            ModelManifest(model_id=name, simple_class_path=path, chat_class_path=f"{path}Chat")
            for name, path in CAPTIONERS.items()
        ),
    ]


@cache
def print_at_exit() -> None:
    """Print the summaries of this process's runs when it ends.

    Handlers are called last in, first out: judging ends before.
    """
    atexit.register(partial(_print_of_process, os.getpid()))


def _print_of_process(pid: int) -> None:
    """Print the summaries, unless this is a forked child or another rank."""
    has_runs = "lmms_eval_captions.lmms_eval_tasks.judging.this_run" in sys.modules
    if os.getpid() == pid and has_runs and (os.environ.get("RANK") or "0") == "0":
        from lmms_eval_captions.lmms_eval_tasks.results.screen import print_runs

        print_runs()


def _hide_token(record: Any) -> None:  # noqa: ANN401 - loguru's record
    """Remove ``HF_TOKEN`` from a log message: lmms-eval 0.7.3 logs its arguments with it."""
    token = os.environ.get("HF_TOKEN")
    if token:
        record["message"] = record["message"].replace(token, "[HF_TOKEN]")
