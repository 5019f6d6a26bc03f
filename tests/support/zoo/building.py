"""Common parts of the tiny checkpoints: tokenizer of letters, sizes, saving.

Nothing is downloaded. Only printable letters are ever written, and no caption ends early, so that
captions can be compared as text.
"""

from __future__ import annotations

import importlib
import string
from typing import TYPE_CHECKING, Any, Final

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

IMAGE_SIZE: Final = 28
"""Width and height that towers of a fixed size see, in pixels."""
SEED: Final = 0


def library() -> Any:
    """``transformers``, imported when it is used."""
    return importlib.import_module("transformers")


def make_tokenizer(
    specials: Sequence[str] = (),
    *,
    start: str | None = None,
    end: str = "<|im_end|>",
    pad: str = "<|endoftext|>",
    **named: str,
) -> Any:
    """A tokenizer of single bytes, and of special tokens.

    Args:
        specials: Tokens of their own.
        start: Put before every text, as Llama and Gemma do; by default nothing is.
        end: Ends a caption.
        pad: Fills up shorter texts.
        named: Tokens that the processor asks for by name, e.g. ``image_token``.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    own = [token for token in (pad, start, end) if token]
    raw.add_special_tokens(list(dict.fromkeys([*own, *specials])))
    if start:
        raw.post_processor = processors.TemplateProcessing(
            single=f"{start} $A",
            pair=f"{start} $A $B",
            special_tokens=[(start, raw.token_to_id(start))],
        )
    return library().PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=start,
        eos_token=end,
        pad_token=pad,
        extra_special_tokens=named,
    )


def token_id(tokenizer: Any, token: str) -> int:
    """Id of a special token."""
    return int(tokenizer.convert_tokens_to_ids(token))


def text_config(tokenizer: Any, **more: object) -> dict[str, Any]:
    """Sizes of a tiny language model."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 8192,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
        # The usual 0.02 makes models that answer everything alike.
        "initializer_range": 0.2,
        **more,
    }


def tower(**more: object) -> dict[str, Any]:
    """Sizes of a tiny vision tower."""
    return {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": IMAGE_SIZE,
        "patch_size": 7,
        **more,
    }


def chatml(image: str, video: str = "") -> str:
    """A chat template of ``<|im_start|>`` and ``<|im_end|>``, as Qwen's, with marks of visuals."""
    return (
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
        f"{{% if c['type'] == 'image' %}}{image}"
        f"{{% elif c['type'] == 'video' %}}{video}"
        "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )


def save(model_class: str, config: Any, processor: Any, folder: Path) -> Path:
    """A model of random weights and its processor, written as real checkpoints are."""
    torch.manual_seed(SEED)
    model = getattr(library(), model_class)(config)
    tokenizer = processor.tokenizer
    printable = tokenizer.convert_tokens_to_ids(list(string.ascii_letters))
    # Of a model that also speaks, the part that writes.
    writer = getattr(model, "thinker", model)
    head = writer.get_output_embeddings().weight
    with torch.no_grad():
        rows = torch.zeros_like(head)
        rows[printable] = torch.randn(len(printable), head.shape[1])
        head.copy_(rows)
    for name, weights in model.named_parameters():
        # A Q-Former begins by asking nothing, and little of what it sees is passed on.
        if name.endswith(("query_tokens", "language_projection.weight")):
            torch.nn.init.normal_(weights)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
