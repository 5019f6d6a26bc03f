"""Names of our captioners, as ``--model`` takes them, and their classes."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmms_eval_captions.model_wrappers.base import CaptionModel

CUSTOM: Final = "caption_custom"
"""Name that stands for a custom class."""
_HERE: Final = __name__.rpartition(".")[0]
_SAMPLE: Final = f"{_HERE.rpartition('.')[0]}.lmms_eval_tasks.sample"
CAPTIONERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "caption_file": f"{_HERE}.caption_file.CaptionFile",
        "caption_baseline": f"{_SAMPLE}.caption_baseline.CaptionBaseline",
        "caption_hf": f"{_HERE}.caption_hf.CaptionHf",
        "caption_openai": f"{_HERE}.caption_openai.CaptionOpenai",
        "caption_vllm": f"{_HERE}.caption_vllm.CaptionVllm",
        "caption_auroracap": f"{_HERE}.caption_auroracap.CaptionAuroraCap",
    }
)
"""Path of the class by name; that of the class for chat models is ``...Chat``."""
CUSTOM_CLASS: Final = f"{_HERE}.{CUSTOM}.CaptionCustom"


def captioner_class(name: str) -> type[CaptionModel]:
    """Return the class that lmms-eval takes for a name, the one for chat models.

    Captions are kept under it; the simple form is another captioner.

    Args:
        name: One of ``CAPTIONERS``, or ``CUSTOM``.

    Raises:
        SettingsError: If it is none of these.
    """
    if name != CUSTOM and name not in CAPTIONERS:
        known = ", ".join([*CAPTIONERS, CUSTOM])
        raise SettingsError(
            f"expected a captioner, one of {known}, or a class of your own as package.module:Class "
            f"or file.py:Class, got {name!r}"
        )
    path = CUSTOM_CLASS if name == CUSTOM else f"{CAPTIONERS[name]}Chat"
    module, _, class_name = path.rpartition(".")
    found: type[CaptionModel] = getattr(import_module(module), class_name)
    return found
