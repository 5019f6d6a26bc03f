"""Made-up questions of each benchmark, as many as wanted, that ``judge_server.py`` answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from lmms_eval_captions.judges.config import JudgeConfig
from lmms_eval_captions.judges.engine import Chain
from lmms_eval_captions.judges.prompt import Picture
from lmms_eval_captions.judges.protocols import capquiz, vcapsbench, vdc, vidcapbench
from lmms_eval_captions.judges.protocols.gveval import GVeval

_OPTIONS: Final = ("red", "green", "blue", "white", "black")


def _vdc(index: int, config: JudgeConfig) -> Chain[Any]:
    question = vdc.Question(f"What is no. {index}?", f"gold {index}")
    caption = _caption(index)
    return partial(vdc.judge_question, question=question, caption=caption, config=config, run=0)


def _vidcapbench(index: int, config: JudgeConfig) -> Chain[Any]:
    text = f"What does no. {index} do?"
    question = vidcapbench.Question(text, f"gold {index}", "video motion", "object motion")
    judge, caption = vidcapbench.judge_question, _caption(index)
    return partial(judge, question=question, caption=caption, config=config, run=0)


def _vcapsbench(index: int, config: JudgeConfig) -> Chain[Any]:
    question = vcapsbench.Question("action", f"Does no. {index} move?", "yes")
    judge, caption = vcapsbench.judge_question, _caption(index)
    return partial(judge, question=question, caption=caption, config=config, run=0)


def _capquiz(index: int, config: JudgeConfig) -> Chain[Any]:
    question = capquiz.Question("Entity", f"Which colour has no. {index}?", _OPTIONS, _OPTIONS[0])
    judge, caption = capquiz.judge_question, _caption(index)
    return partial(judge, question=question, caption=caption, config=config, run=0)


def _msvd_eval(index: int, config: JudgeConfig) -> Chain[Any]:
    return partial(
        GVeval("combined").judge,
        caption=f"A caption of no. {index}.",
        references=["A reference.", "Another one."],
        picture=lambda: Picture(b"a picture", "image/png"),
        config=config,
        run=0,
    )


BENCHMARKS: Final[dict[str, Callable[[int, JudgeConfig], Chain[Any]]]] = {
    "vdc": _vdc,
    "vidcapbench": _vidcapbench,
    "vcapsbench": _vcapsbench,
    "capquiz": _capquiz,
    "msvd_eval": _msvd_eval,
}


def questions(benchmark: str, n: int, config: JudgeConfig) -> list[Chain[Any]]:
    """The requests of so many questions, eight of them about each caption."""
    return [BENCHMARKS[benchmark](index, config) for index in range(n)]


def _caption(index: int) -> str:
    return f"Caption {index // 8}: a red cube rolls over a white table. " * 5
