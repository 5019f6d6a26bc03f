"""The names of our captioners, as ``--model`` takes them, and their classes."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmms_eval_captions.model_wrappers.base import CaptionModel

CUSTOM: Final = "caption_custom"
"""Stands for a class of the user's own; its module is of this name, as those of the others."""
CAPTIONERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "caption_file": "CaptionFile",
        "caption_baseline": "CaptionBaseline",
        "caption_hf": "CaptionHf",
        "caption_openai": "CaptionOpenai",
        "caption_vllm": "CaptionVllm",
        "caption_auroracap": "CaptionAuroraCap",
    }
)
"""Name, which is that of its module, to class; the class for chat models is named ``...Chat``."""


def captioner_class(name: str) -> type[CaptionModel]:
    """The class that lmms-eval takes for a name, which is the one for chat models.

    Captions are kept under it: that of the simple form is another captioner.

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
    module = import_module(f"{__package__}.{name}")
    class_name = "CaptionCustom" if name == CUSTOM else f"{CAPTIONERS[name]}Chat"
    found: type[CaptionModel] = getattr(module, class_name)
    return found
