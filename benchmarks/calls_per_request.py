"""Counts modules and calls of our own functions that a successful request enters.

One caption of VDC's size, 19 questions of two requests each, is judged against a stand-in that
answers at once; ``sys.setprofile`` counts in the engine's thread:

    python benchmarks/calls_per_request.py [--all]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import _support  # noqa: F401
from judge_server import JudgeServer
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.vdc import Question, judge_question

N_QUESTIONS = 19
_BEGINNING = 12
_BEGINNING = 10
_FOLDERS = tuple(str(Path(__file__).parents[1] / name) for name in ("judges", "lmms_eval_tasks"))


def counted(n_captions: int) -> tuple[Counter[tuple[str, str]], int]:
    """Calls by module and function, and requests, of judging so many captions."""
    calls: Counter[tuple[str, str]] = Counter()

    def profile(frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - of sys
        code = frame.f_code
        # A resumed coroutine is not a call; it resumes well past its first instructions.
        is_ours = os.path.realpath(code.co_filename).startswith(_FOLDERS)
        if event == "call" and is_ours and frame.f_lasti <= _BEGINNING:
            calls[Path(code.co_filename).stem, code.co_name] += 1

    with JudgeServer() as server, tempfile.TemporaryDirectory() as folder:
        threading.setprofile(profile)
        with Engine(EngineConfig(urls=(server.url,), store=Path(folder))) as engine:
            threading.setprofile(None)
            config = JudgeConfig(model="judge")
            for number in range(n_captions):
                questions = [Question(f"What is {i} there?", "A car") for i in range(N_QUESTIONS)]
                about = partial(judge_question, caption=f"A car. {number}", config=config, run=0)
                engine.submit([partial(about, question=q) for q in questions]).result()
            return calls, engine.meter.n_calls


def main() -> None:
    """Print what one request more enters: what only starting takes does not count."""
    (few, n_few), (many, n_many) = counted(2), counted(12)
    n = n_many - n_few
    each = Counter({name: n_more for name in many if (n_more := many[name] - few[name]) > n // 4})
    modules = sorted({module for module, _ in each})
    print(f"{sum((many - few).values()) / n:.0f} calls in {len(modules)} modules for each request")
    print(", ".join(modules))
    if "--all" in sys.argv:
        for (module, name), n_calls in (many - few).most_common():
            print(f"{n_calls / n:6.2f}  {module}.{name}")


if __name__ == "__main__":
    main()
