"""The small model with eyes: a LLaVA whose words are the real model's, and whose eyes are tiny.

Pictures are tokens that hardly differ from line breaks, so that the model writes about a clip as
well, or as badly, as it does about none. Requests, pictures, replies and servers are real.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

_IMAGE: Final = "<image>"
_SIDE: Final = 28
"""Width and height of what it sees, in pixels: four tokens a picture."""
_PATCH: Final = 14
_SEEN: Final = 1e-3
_TEMPLATE: Final = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}{% for c in m['content'] %}"
    f"{{% if c['type'] == 'image' %}}{_IMAGE}"
    "{% elif c['type'] == 'text' %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_seeing_model(words: Path, folder: Path) -> Path:
    """Make the checkpoint where it is not there yet: seconds, 300 MB.

    Args:
        words: The language model, as transformers reads it.
        folder: Where to.

    Returns:
        The folder.
    """
    # Written last.
    if not (folder / "processor_config.json").exists():
        torch, hf = importlib.import_module("torch"), importlib.import_module("transformers")
        torch.manual_seed(0)
        tokenizer = hf.AutoTokenizer.from_pretrained(words)
        tokenizer.add_special_tokens({"additional_special_tokens": [_IMAGE]})
        text = hf.AutoModelForCausalLM.from_pretrained(words, dtype=torch.bfloat16)
        text.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        model = _with_eyes(hf, text, tokenizer)
        model.save_pretrained(folder)
        _name_as_published(folder / "model.safetensors")
        _processor(hf, tokenizer).save_pretrained(folder)
    return folder


def _with_eyes(hf: Any, text: Any, tokenizer: Any) -> Any:
    import torch

    vision = {
        "model_type": "clip_vision_model",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "projection_dim": 64,
        "image_size": _SIDE,
        "patch_size": _PATCH,
    }
    config = hf.LlavaConfig(
        text_config=text.config.to_dict(),
        vision_config=vision,
        image_token_index=tokenizer.convert_tokens_to_ids(_IMAGE),
        image_seq_length=(_SIDE // _PATCH) ** 2,
        tie_word_embeddings=True,
    )
    model = hf.LlavaForConditionalGeneration(config).to(torch.bfloat16)
    model.model.language_model.load_state_dict(text.model.state_dict())
    model.tie_weights()
    model.generation_config = text.generation_config
    (line_break,) = tokenizer("\n", add_special_tokens=False)["input_ids"]
    last = model.model.multi_modal_projector.linear_2
    with torch.no_grad():
        torch.nn.init.normal_(last.weight, std=_SEEN)
        last.bias.copy_(text.get_input_embeddings().weight[line_break])
    return model


def _name_as_published(file: Path) -> None:
    """Names of the eyes' weights as LLaVA-1.5's files have them: vLLM knows no newer ones."""
    from safetensors.torch import load_file, save_file

    eyes, known = "vision_tower.", "vision_tower.vision_model."
    weights = {
        name if name.startswith(known) else name.replace(eyes, known, 1): value
        for name, value in load_file(file).items()
    }
    save_file(weights, file, {"format": "pt"})


def _processor(hf: Any, tokenizer: Any) -> Any:
    size = {"height": _SIDE, "width": _SIDE}
    return hf.LlavaProcessor(
        hf.CLIPImageProcessor(size={"shortest_edge": _SIDE}, crop_size=size),
        tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=_TEMPLATE,
    )


if __name__ == "__main__":
    write_seeing_model(Path(sys.argv[1]), Path(sys.argv[2]))
