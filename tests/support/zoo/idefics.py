"""SmolVLM2 and Idefics3: a prompt that says how many frames there are, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zoo.architecture import Architecture
from zoo.building import IMAGE_SIZE, library, make_tokenizer, save, text_config, token_id, tower
from zoo.recipes import chat_about_images, chat_about_video

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATE = (
    "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}"
    "{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}"
    "{% for line in message['content'] %}"
    "{% if line['type'] == 'text' %}{{line['text']}}"
    "{% elif line['type'] == 'image' %}{{ '<image>' }}"
    "{% elif line['type'] == 'video' %}{{ '<video>' }}{% endif %}{% endfor %}"
    "<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
_SEQUENCE = (IMAGE_SIZE // 7) ** 2 // 4


def _tokenizer() -> Any:
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    return make_tokenizer(
        ("<fake_token_around_image>", "<global-img>", "<image>", "<video>", *tiles),
        start="<|im_start|>",
        end="<end_of_utterance>",
        pad="<|endoftext|>",
    )


def _config(name: str, tokenizer: Any, **text: object) -> Any:
    return getattr(library(), f"{name}Config")(
        text_config={"model_type": "llama", **text_config(tokenizer, **text)},
        vision_config=tower(initializer_range=0.2),
        image_token_id=token_id(tokenizer, "<image>"),
        pad_token_id=tokenizer.pad_token_id,
        scale_factor=2,
        tie_word_embeddings=False,
    )


def write_smolvlm(folder: Path, **text: object) -> Path:
    """SmolVLM2, with Llama."""
    hf = library()
    tokenizer = _tokenizer()
    sizes = {
        "size": {"longest_edge": 2 * IMAGE_SIZE},
        "max_image_size": {"longest_edge": IMAGE_SIZE},
    }
    processor = hf.SmolVLMProcessor(
        hf.SmolVLMImageProcessor(**sizes),
        tokenizer,
        hf.SmolVLMVideoProcessor(**sizes, num_frames=64, fps=1),
        image_seq_len=_SEQUENCE,
        chat_template=_TEMPLATE,
    )
    config = _config("SmolVLM", tokenizer, **text)
    return save("SmolVLMForConditionalGeneration", config, processor, folder)


def write_idefics3(folder: Path, **text: object) -> Path:
    """Idefics3, with Llama: images alone, in tiles."""
    hf = library()
    tokenizer = _tokenizer()
    image_processor = hf.Idefics3ImageProcessor(
        size={"longest_edge": 2 * IMAGE_SIZE}, max_image_size={"longest_edge": IMAGE_SIZE}
    )
    processor = hf.Idefics3Processor(
        image_processor, tokenizer, image_seq_len=_SEQUENCE, chat_template=_TEMPLATE
    )
    config = _config("Idefics3", tokenizer, **text)
    return save("Idefics3ForConditionalGeneration", config, processor, folder)


ARCHITECTURES = {
    "smolvlm": Architecture(
        write_smolvlm,
        "SmolVLMForConditionalGeneration",
        "HuggingFaceTB/SmolVLM2-2.2B-Instruct",
        chat_about_video,
        needs=("num2words",),
    ),
    "idefics3": Architecture(
        write_idefics3,
        "Idefics3ForConditionalGeneration",
        "HuggingFaceM4/Idefics3-8B-Llama3",
        chat_about_images,
        shown="images",
    ),
}
