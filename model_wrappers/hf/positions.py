"""How many tokens a model holds: what is shown, what is asked and what is written, together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_NAMES: Final = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_STRETCHED: Final = ("yarn", "linear", "dynamic")
"""Kinds of rotary positions whose factor is not yet in ``max_position_embeddings``."""


def positions(config: PretrainedConfig) -> int | None:
    """Positions of a checkpoint's language model; ``None`` where it has no limit, or says none.

    Args:
        config: Of a language model, or of one that sees.
    """
    text = _text_config(config)
    if getattr(text, "relative_attention_num_buckets", None):
        return None  # T5's positions are relative, whatever ``n_positions`` says
    numbers = (getattr(text, name, None) for name in _NAMES)
    own = next((number for number in numbers if isinstance(number, int) and number > 0), None)
    return None if own is None else max(own, _stretched(text))


def _stretched(text: Any) -> int:  # noqa: ANN401 (configs have no common fields)
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None)
    if not isinstance(rope, dict):
        return 0
    before, factor = rope.get("original_max_position_embeddings"), rope.get("factor")
    if rope.get("rope_type", rope.get("type")) not in _STRETCHED or not before or not factor:
        return 0
    return int(before * factor)


def _text_config(config: Any) -> Any:  # noqa: ANN401
    # Qwen-Omni: what listens and sees is a part of the whole.
    thinker = getattr(config, "thinker_config", None) or config
    nested = getattr(thinker, "text_config", None)
    if nested is not None:
        return nested
    return thinker.get_text_config(decoder=True) if thinker.is_encoder_decoder else thinker
