"""Arguments of a processor's call, as ``--model_args processor_kwargs=...`` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lmms_eval_captions.judges.errors import SettingsError

_PARTS: Final = {
    "text_kwargs": "tokenizer",
    "images_kwargs": "image_processor",
    "videos_kwargs": "video_processor",
    "audio_kwargs": "feature_extractor",
}
"""Arguments that hold those of one part. Source: transformers 5.23, ``ProcessorMixin``."""
_SIZES: Final = ("size", "min_pixels", "max_pixels", "max_soft_tokens")
_OURS: Final = frozenset(
    {"text", "images", "videos", "audio", "padding", "padding_side", "return_tensors"}
)


def check_processor_arguments(processor: object, arguments: Mapping[str, object]) -> None:
    """Stop at an argument that the processor does not know, which it would leave out.

    Raises:
        SettingsError: If there is one; the text lists those that exist.
    """
    known = _known(processor)
    names = {
        name
        for key, value in arguments.items()
        for name in (value if key in _PARTS and isinstance(value, Mapping) else (key,))
    }
    if known and (unknown := sorted(names - known)):
        raise SettingsError(
            f"processor_kwargs: {type(processor).__name__} does not know {unknown}; "
            f"it takes {sorted(known)}"
        )
    if taken := sorted(names & _OURS):
        raise SettingsError(f"processor_kwargs: {taken} are filled in here")


def names_a_size(arguments: Mapping[str, object]) -> bool:
    """Whether the arguments say how large frames are.

    >>> names_a_size({"videos_kwargs": {"size": {"shortest_edge": 3136, "longest_edge": 602112}}})
    True
    >>> names_a_size({"max_soft_tokens": 140}), names_a_size({"do_rescale": False})
    (True, False)
    """
    return any(
        name in _SIZES or (isinstance(value, Mapping) and names_a_size(value))
        for name, value in arguments.items()
    )


def _known(processor: object) -> set[str]:
    """Names of arguments that a processor and its parts take."""
    whole: Any = getattr(processor, "valid_processor_kwargs", None)
    annotations = dict(getattr(whole, "__annotations__", {}))
    known = {name for name in annotations if name not in _PARTS}
    for name, part in _PARTS.items():
        kinds = (annotations.get(name), getattr(getattr(processor, part, None), "valid_kwargs", 0))
        for kind in kinds:
            known |= set(getattr(kind, "__annotations__", {}))
    return known
