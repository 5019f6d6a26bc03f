"""What is asked of models with a chat template and without."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from transformers import AutoProcessor

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, Message, asked_about
from lmms_eval_captions.model_wrappers.hf.prompt_forms import PROMPT_FORMS
from lmms_eval_captions.model_wrappers.hf.prompts import find_format, prompt_text
from lmms_eval_captions.model_wrappers.video.clip import Clip
from zoo import ARCHITECTURES
from zoo.llava_onevision import write_llava_onevision

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.filterwarnings("ignore:.*")

CLIP = Clip(np.zeros((2, 4, 4, 3), np.uint8), np.arange(2.0), n_total=2, fps=1.0, duration_s=2.0)
TEXT_TEMPLATE = (
    "{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
DOCUMENTED = {
    "vicuna": "USER: <image>\n<image>\nDescribe. ASSISTANT:",
    "mistral": "[INST] <image>\n<image>\nDescribe. [/INST]",
    "chatml": ("<|im_start|>user\n<image>\n<image>\nDescribe.<|im_end|>\n<|im_start|>assistant\n"),
    "idefics": "User:<image><image>Describe.<end_of_utterance>\nAssistant:",
    "phi4": "<|user|><image><image>Describe.<|end|><|assistant|>",
    "paligemma": "<image><image>Describe.",
    "question": "Question: Describe. Answer:",
    "plain": "Describe.",
    "vipllava": (
        "A chat between a curious human and an artificial intelligence assistant. The "
        "assistant gives helpful, detailed, and polite answers to the human's questions."
        "###Human: <image>\n<image>\nDescribe.###Assistant:"
    ),
}
PRINTING_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"


@pytest.fixture(scope="module")
def processor(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One with a chat template in parts."""
    return AutoProcessor.from_pretrained(
        write_llava_onevision(tmp_path_factory.mktemp("model") / "llava")
    )


@pytest.fixture
def bare(processor: Any) -> Any:
    """The same without a template."""
    tokenizer = processor.tokenizer
    kept = processor.chat_template, tokenizer.chat_template
    processor.chat_template = tokenizer.chat_template = None
    yield processor
    processor.chat_template, tokenizer.chat_template = kept


def job(messages: Sequence[Message] | None = None) -> CaptionJob:
    """A question about one clip."""
    return CaptionJob(
        (CLIP,), messages or asked_about(1, "Describe."), Path("clip.mp4"), "task", doc_id=0
    )


def text_of(processor: Any, name: str | None, model_type: str = "", **more: Any) -> str:
    """What a model is asked."""
    form = find_format(processor, model_type, name)
    return prompt_text(
        processor,
        more.get("job") or job(),
        more.get("system"),
        sees_videos=more.get("sees_videos", False),
        form=form,
    )


@pytest.mark.parametrize(("name", "text"), DOCUMENTED.items())
def test_documented_forms(processor: Any, name: str, text: str) -> None:
    """Each form is what its documentation prints, with a mark for each frame."""
    assert text_of(processor, name) == text


def test_all_forms_are_played() -> None:
    """No form goes without the test above, and each says where it is documented."""
    assert set(DOCUMENTED) == set(PROMPT_FORMS)
    assert all(form.source for form in PROMPT_FORMS.values())


def test_videos_have_one_mark(processor: Any) -> None:
    """A model that sees videos is shown one."""
    assert text_of(processor, "vicuna", sees_videos=True) == ("USER: <video>\nDescribe. ASSISTANT:")


@pytest.mark.parametrize(
    ("model_type", "name"),
    [(model, name) for name, form in PROMPT_FORMS.items() for model in form.models],
)
def test_models_without_a_template_are_asked_as_documented(
    bare: Any, model_type: str, name: str
) -> None:
    """The form of a model is found by its type."""
    assert find_format(bare, model_type) is PROMPT_FORMS[name]


def test_a_template_comes_before_the_form(processor: Any) -> None:
    """What the checkpoint brings is what it was trained with."""
    assert find_format(processor, "llava") is None
    assert text_of(processor, None).endswith("<|im_start|>assistant\n")


def test_the_system_prompt_has_its_place(processor: Any) -> None:
    """It comes before the question, in place of the form's own."""
    assert text_of(processor, "vicuna", system="Be brief.").startswith("Be brief. USER: ")
    asked = text_of(processor, "vipllava", system="Be brief.")
    assert asked.startswith("Be brief.###Human: ")
    with pytest.raises(DataError, match="no place for a turn of the system"):
        text_of(processor, "paligemma", system="Be brief.")


def test_a_conversation(processor: Any) -> None:
    """Turns that were taken stand before the question; a form of one question refuses them."""
    messages = (
        Message("user", (0, "Describe.")),
        Message("assistant", ("A cat.",)),
        Message("user", ("And the background?",)),
    )
    assert text_of(processor, "vicuna", job=job(messages), sees_videos=True) == (
        "USER: <video>\nDescribe. ASSISTANT: A cat.</s>USER: And the background? ASSISTANT:"
    )
    with pytest.raises(DataError, match="no place for a turn of the assistant"):
        text_of(processor, "question", job=job(messages))


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (TEXT_TEMPLATE, "<user><image><image>Describe.<assistant>"),
        (PRINTING_TEMPLATE, "user: <image><image>Describe.\n"),
    ],
    ids=["adds text", "prints what comes"],
)
def test_templates_that_want_text(bare: Any, template: str, text: str) -> None:
    """A template that takes no parts is given text with the processor's marks."""
    bare.tokenizer.chat_template = template
    assert text_of(bare, None) == text


def test_a_template_that_the_processor_drops(bare: Any) -> None:
    """A tokenizer's template in parts is used where the processor has lost it."""
    bare.tokenizer.chat_template = (
        "{% for m in messages %}{% for c in m['content'] %}"
        "[{{ c['type'] }}]{% endfor %}{% endfor %}"
    )
    assert text_of(bare, None) == "[image][image][text]"


def test_a_template_of_the_user_s(processor: Any, tmp_path: Path) -> None:
    """``prompt_format`` takes a file, in place of what the checkpoint brings."""
    path = tmp_path / "mine.jinja"
    path.write_text(TEXT_TEMPLATE)
    assert text_of(processor, str(path)) == "<user><image><image>Describe.<assistant>"


def test_several_templates(bare: Any) -> None:
    """Of several, the default one is used."""
    bare.tokenizer.chat_template = {"default": TEXT_TEMPLATE, "tools": "no"}
    assert text_of(bare, None).endswith("<assistant>")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vicunya", r"prompt_format='vicunya' is neither one of \['chatml'"),
        ("no/such.jinja", r"there is no file no/such\.jinja"),
        (None, r"no prompt is known for 'mymodel': .* prompt_format="),
    ],
)
def test_what_cannot_be_asked(bare: Any, name: str | None, message: str) -> None:
    """Each mistake says what there is."""
    with pytest.raises(SettingsError, match=message):
        find_format(bare, "mymodel", name)


def test_marks_that_are_objects() -> None:
    """Some processors hold their tokens as objects; without any, the usual mark is taken."""
    held = SimpleNamespace(image_token=SimpleNamespace(content="<pic>"), tokenizer=None)
    assert text_of(held, "idefics").startswith("User:<pic><pic>Describe.")
    assert text_of(SimpleNamespace(tokenizer=None), "idefics").startswith("User:<image><image>")


def test_the_real_templates_of_phi4_want_text(tmp_path: Path) -> None:
    """Its template takes a message's content as text, and its processor drops it."""
    processor = AutoProcessor.from_pretrained(
        ARCHITECTURES["phi4_multimodal"].write(tmp_path / "phi4")
    )
    assert processor.chat_template is None
    asked = text_of(processor, None, "phi4_multimodal")
    assert asked == "<|user|><|image|><|image|>Describe.<|end|><|assistant|>"
