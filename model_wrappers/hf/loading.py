"""Which class loads a checkpoint, and how its tokenizer is set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmms_eval_captions.judges.errors import SettingsError

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def prepare_tokenizer(processor: object) -> None:
    """Pad on the left: generation goes on at the right end."""
    tokenizer = processor.tokenizer  # type: ignore[attr-defined] # every multimodal processor's
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token


def model_class(config: PretrainedConfig) -> Any:  # noqa: ANN401 (auto classes have no common type)
    """The class that loads a checkpoint: the auto class, else the one that its config names."""
    import transformers

    auto = transformers.AutoModelForImageTextToText
    if type(config) in auto._model_mapping or getattr(config, "auto_map", None):
        return auto
    for name in config.architectures or ():
        named = getattr(transformers, name, None)
        if named is not None and hasattr(named, "generate"):
            return named
    raise SettingsError(
        f"caption_hf: transformers {transformers.__version__} has no model that captions for "
        f"{config.model_type!r} ({config.architectures}); write a Captioner for it "
        "(model_wrappers/README.md)"
    )
