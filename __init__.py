"""Video captions scored by LLM judges, as functions.

The benchmarks themselves are tasks of lmms-eval; see the README.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lmms_eval_captions.analysis.captioners import read_verdicts
    from lmms_eval_captions.scorer.reward import CaptionReward
    from lmms_eval_captions.scorer.scorer import CaptionScore, Scorer

    __version__: str

__all__ = ["CaptionReward", "CaptionScore", "Scorer", "read_verdicts"]

_SCORER: Final = "lmms_eval_captions.scorer"
_HOMES: Final = {
    "CaptionReward": f"{_SCORER}.reward",
    "CaptionScore": f"{_SCORER}.scorer",
    "Scorer": f"{_SCORER}.scorer",
    "read_verdicts": "lmms_eval_captions.analysis.captioners",
}
"""Public names to the modules that have them, imported when they are asked for."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        return version("lmms-eval-captions")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
