"""A checkpoint's processor, model and generation settings, or an error that says what is wrong."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

import torch
from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.hf.inputs import MARKS_FIRST, MarksFirst

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from transformers import GenerationConfig, PretrainedConfig

    from lmms_eval_captions.model_wrappers.model_args import Generation

DTYPES: Final = ("auto", "bfloat16", "float16", "float32")
_REMOTE: Final = (
    "AutoModelForImageTextToText",
    "AutoModelForMultimodalLM",
    "AutoModelForVision2Seq",
    "AutoModelForCausalLM",
    "AutoModel",
)
"""Auto classes under which a checkpoint's own code may name its model, the most specific first."""
_NAMES: Final = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_STRETCHED: Final = ("yarn", "linear", "dynamic")
"""Kinds of rotary positions whose factor is not yet in ``max_position_embeddings``."""
_SEES_NOTHING: Final = (
    "has no processor for pictures or videos with a tokenizer: take a vision-language checkpoint "
    "in the form of transformers, or write a Captioner for it (model_wrappers/README.md)"
)
_THINKERS: Final[Mapping[str, str]] = {
    "qwen2_5_omni": "Qwen2_5OmniThinkerForConditionalGeneration",
    "qwen3_omni_moe": "Qwen3OmniMoeThinkerForConditionalGeneration",
}
"""Writing parts of models that also speak: they load alone, out of the complete checkpoint."""


def load_config(name: str, **where: Any) -> PretrainedConfig:  # noqa: ANN401 (transformers' own)
    """Load the config of a checkpoint, by its name on the hub or folder."""
    from transformers import AutoConfig

    config: PretrainedConfig = _loaded(name, AutoConfig.from_pretrained, where)
    return config


def load_processor(name: str, **where: Any) -> Any:  # noqa: ANN401 (remote code has no common type)
    """Load the processor of a checkpoint; refuse one that takes neither pictures nor videos."""
    from transformers import AutoProcessor

    processor = _loaded(name, AutoProcessor.from_pretrained, where)
    sees = any(getattr(processor, f"{kind}_processor", None) for kind in ("image", "video"))
    if not sees or getattr(processor, "tokenizer", None) is None:
        raise SettingsError(
            f"{name} {_SEES_NOTHING} (transformers makes a {type(processor).__name__})"
        )
    if type(processor).__name__ in MARKS_FIRST:
        return MarksFirst(processor)
    return processor


def reads_by_encoder(config: PretrainedConfig) -> bool:
    """Return if an encoder reads the prompt, and captions are separate from it (T5)."""
    return bool(config.is_encoder_decoder or config.get_text_config().is_encoder_decoder)


def model_class(config: PretrainedConfig, *, trust_remote_code: bool = False) -> Any:  # noqa: ANN401 (auto classes have no common type)
    """Return the class that loads a checkpoint.

    Of a model that also speaks, the part that writes; the checkpoint's own code where it is trusted
    and the config is its own, too; transformers' auto class for pictures and text; else the class
    that the config names.
    """
    import transformers

    auto = transformers.AutoModelForImageTextToText
    if thinker := getattr(transformers, _THINKERS.get(config.model_type, ""), None):
        return thinker
    auto_map = getattr(config, "auto_map", None) or {}
    if trust_remote_code and not type(config).__module__.startswith("transformers."):
        for name in filter(auto_map.__contains__, _REMOTE):
            if hasattr(transformers, name):
                return getattr(transformers, name)
            # transformers 5 has dropped AutoModelForVision2Seq.
            auto_map[auto.__name__] = auto_map[name]
            return auto
    if type(config) in auto._model_mapping:
        return auto
    for name in config.architectures or ():
        named = getattr(transformers, name, None)
        if named is not None and hasattr(named, "generate"):
            return named
    raise SettingsError(
        f"transformers {transformers.__version__} has no model that captions for "
        f"{config.model_type!r} ({config.architectures}); write a Captioner for it "
        "(model_wrappers/README.md)"
    )


def load_model(
    name: str,
    config: PretrainedConfig,
    *,
    dtype: str = "auto",
    attn_implementation: str | None = None,
    device_map: object = "cpu",
    **where: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Load the model of a checkpoint, ready to generate; arguments are those of transformers."""
    chosen = model_class(config, trust_remote_code=bool(where.get("trust_remote_code")))
    own = {} if hasattr(chosen, "base_model_prefix") else {"config": config}
    model, told = _loaded(
        name,
        chosen.from_pretrained,
        {
            "dtype": dtype if dtype == "auto" else getattr(torch, dtype),
            "attn_implementation": attn_implementation,
            "device_map": device_map,
            "output_loading_info": True,
            **own,
            **where,
        },
    )
    if not hasattr(model, "generate"):
        raise SettingsError(
            f"{type(model).__name__} of {name} has no generate(): it writes no text; "
            "write a Captioner for it (model_wrappers/README.md)"
        )
    # Nobody listens to clips here, and transformers 5 misses weights for it that are of no use.
    if missing := sorted(key for key in told["missing_keys"] if "audio" not in key):
        logger.warning(
            f"{name} lacks {len(missing)} weights, which are random now, so that its "
            f"captions may mean nothing: {', '.join(missing[:5])}{', ...' * (len(missing) > 5)}"
        )
    if model.generation_config is None:
        from transformers import GenerationConfig

        model.generation_config = GenerationConfig.from_model_config(model.config)
    if config.model_type == "phi4_multimodal":
        _complete_phi4(model, name, where.get("revision"))
    model.requires_grad_(requires_grad=False).train(mode=False)
    return model


def _complete_phi4(model: Any, name: str, revision: object) -> None:  # noqa: ANN401
    """Let the patches of a picture see each other, and load the adapter for pictures.

    transformers 5.23 marks the tower of Phi-4-multimodal as causal, which its fast attentions heed
    wherever no picture of a batch is padded: captions would depend on the batch.
    """
    for module in model.modules():
        if type(module).__name__ == "Phi4MultimodalVisionAttention":
            module.is_causal = False
    place = {"subfolder": "vision-lora", "revision": revision}
    try:
        model.load_adapter(name, adapter_name="vision", adapter_kwargs=place)
        model.set_adapter("vision")
    except (OSError, ValueError, ImportError) as error:
        logger.warning(
            f"{name}: the adapter in vision-lora/ cannot be loaded, and the model sees "
            f"badly without it ({error}); copy that folder next to the weights"
        )


def _loaded(name: str, load: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Load by transformers, with its errors as a ``SettingsError`` of one sentence."""
    from safetensors import SafetensorError

    # What others' code raises where files are missing, damaged, or of another version.
    known = (OSError, ValueError, ImportError, LookupError, AttributeError, TypeError, RuntimeError)
    try:
        return load(name, **arguments)
    except (*known, SafetensorError) as error:
        raise SettingsError(f"{name} cannot be loaded: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """Return an error in one paragraph, with a remedy if it is known."""
    text = f"{type(error).__name__}: {error}"
    if "trust_remote_code" in text:
        return f"it brings code of its own; add trust_remote_code=true if you trust it ({text})"
    if "header" in text and "deserializ" in text:
        return f"a file of its weights is damaged or cut off: fetch it again ({text})"
    if "load image processor" in text or "load processor" in text:
        return f"it {_SEES_NOTHING} ({text})"
    from google.protobuf.runtime_version import VersionError

    try:
        from sentencepiece import sentencepiece_model_pb2  # noqa: F401
    except (ImportError, VersionError) as trouble:
        return (
            f"{text}; a tokenizer.model cannot be read here ({trouble}): run pip install "
            "'sentencepiece<0.2.3', or save the tokenizer as tokenizer.json"
        )
    return text


def positions(config: PretrainedConfig) -> int | None:
    """Return the positions of a checkpoint's language model; ``None`` for no (known) limit."""
    # Qwen-Omni: what listens and sees is a part of the whole.
    thinker: Any = getattr(config, "thinker_config", None) or config
    text: Any = getattr(thinker, "text_config", None) or thinker
    if text is thinker and thinker.is_encoder_decoder:
        text = thinker.get_text_config(decoder=True)
    if getattr(text, "relative_attention_num_buckets", None):
        return None  # T5's positions are relative, whatever ``n_positions`` says
    numbers = (getattr(text, name, None) for name in _NAMES)
    own = next((number for number in numbers if isinstance(number, int) and number > 0), None)
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None)
    if own is None or not isinstance(rope, dict):
        return own
    before, factor = rope.get("original_max_position_embeddings"), rope.get("factor")
    is_stretched = rope.get("rope_type", rope.get("type")) in _STRETCHED
    return max(own, int(before * factor)) if is_stretched and before and factor else own


def generation_config(
    own: GenerationConfig,
    tokenizer: Any,  # noqa: ANN401 (tokenizers have no common type)
    generation: Generation,
) -> GenerationConfig:
    """Return the checkpoint's own settings, overridden by those of the task."""
    settings = copy.deepcopy(own)
    settings.max_length = None
    settings.num_return_sequences = 1
    settings.return_dict_in_generate = settings.output_scores = settings.output_logits = False
    settings.max_new_tokens = generation.max_new_tokens
    settings.num_beams = generation.num_beams
    settings.do_sample = drawn = generation.do_sample
    settings.temperature = generation.temperature if drawn else None
    settings.top_p = (generation.top_p or settings.top_p) if drawn else None
    settings.top_k = (generation.top_k or settings.top_k) if drawn else None
    if generation.repetition_penalty is not None:
        settings.repetition_penalty = generation.repetition_penalty
    if settings.pad_token_id is None:
        settings.pad_token_id = tokenizer.pad_token_id
    if settings.eos_token_id is None:
        settings.eos_token_id = tokenizer.eos_token_id
    return settings


def new_tokens(
    written: torch.Tensor, prompt: torch.Tensor, *, is_encoder_decoder: bool
) -> torch.Tensor:
    """Return the new tokens of what ``generate`` returned, shape (n_captions, n_tokens).

    That is prompt and caption, or the caption alone of a model that was handed embeddings; start
    token and caption of a model with an encoder.
    """
    if is_encoder_decoder:
        return written[:, 1:]
    n_prompt = prompt.shape[1]
    repeats = written.shape[1] >= n_prompt and torch.equal(written[:, :n_prompt], prompt)
    return written[:, n_prompt:] if repeats else written


def n_written(new: torch.Tensor, settings: GenerationConfig) -> list[int]:
    """Return the number of tokens of each caption, with its end, without padding."""
    ends = settings.eos_token_id
    is_end = torch.isin(new, torch.as_tensor(ends, device=new.device).reshape(-1))
    first = torch.where(is_end.any(dim=1), is_end.int().argmax(dim=1) + 1, new.shape[1])
    return [int(n) for n in first]
