"""Prompts to models with a chat template and without."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoProcessor

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers import captioner
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, content_of
from lmms_eval_captions.model_wrappers.hf import inputs
from lmms_eval_captions.model_wrappers.hf.inputs import Showing
from lmms_eval_captions.model_wrappers.hf.prompts import PROMPT_FORMS, ChatTemplate, find_format
from lmms_eval_captions.model_wrappers.video.clip import Clip
from zoo.llava_onevision import write_llava_onevision

pytestmark = pytest.mark.filterwarnings("ignore:.*")

README = Path(captioner.__file__).with_name("README.md")
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
    "chameleon": "<image><image>Describe.",
    "question": "Question: Describe. Answer:",
    "plain": "Describe.",
    "vipllava": (
        "A chat between a curious human and an artificial intelligence assistant. The "
        "assistant gives helpful, detailed, and polite answers to the human's questions."
        "###Human: <image>\n<image>\nDescribe.###Assistant:"
    ),
}


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


def job() -> CaptionJob:
    """A question about one clip."""
    return CaptionJob((CLIP,), content_of(1, "Describe."), Path("clip.mp4"), "task", doc_id=0)


def text_of(
    processor: Any, name: str | None, *, system: str | None = None, sees_videos: bool = False
) -> str:
    showing = Showing(system, find_format(processor, "", name))
    asked = copy.copy(processor)
    if not sees_videos:
        asked.video_processor = None
    return inputs.text_of(asked, job(), showing)


@pytest.mark.parametrize(("name", "text"), DOCUMENTED.items())
def test_documented_forms(processor: Any, name: str, text: str) -> None:
    """Each form is what its documentation prints, with a mark for each frame."""
    assert text_of(processor, name) == text


@pytest.mark.parametrize("name", PROMPT_FORMS)
def test_the_readme_prints_each_form(name: str) -> None:
    """The captioners' README has each form, one picture of it, and the models that it is for."""
    form = PROMPT_FORMS[name]
    mark = form.mark.replace("{}", "<image>")
    system = "A chat between ... questions." if form.default_system else ""
    asked = system + form.user.replace("{}", f"{mark}PROMPT") + form.answer
    printed = asked.replace("\n", "\\n").replace("|", "\\|")
    models = ", ".join(f"`{model}`" for model in form.models)
    assert f"| `{name}` | `{printed}` | {models} |" in README.read_text(encoding="utf-8")


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
    assert find_format(processor, "llava") == ChatTemplate()
    assert text_of(processor, None).endswith("<|im_start|>assistant\n")


def test_the_system_prompt_has_its_place(processor: Any) -> None:
    """It comes before the question, in place of the form's own."""
    assert text_of(processor, "vicuna", system="Be brief.").startswith("Be brief. USER: ")
    asked = text_of(processor, "vipllava", system="Be brief.")
    assert asked.startswith("Be brief.###Human: ")
    with pytest.raises(DataError, match="no place for a turn of the system"):
        text_of(processor, "paligemma", system="Be brief.")


def test_a_template_of_the_user_s(processor: Any, tmp_path: Path) -> None:
    """``prompt_format`` takes a file, in place of what the checkpoint brings."""
    path = tmp_path / "mine.jinja"
    path.write_text(TEXT_TEMPLATE)
    assert text_of(processor, str(path)) == "<user><image><image>Describe.<assistant>"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("vicunya", r"prompt_format='vicunya' is neither one of \['chameleon'"),
        ("no/such.jinja", r"there is no file no/such\.jinja"),
        (None, r"no prompt is known for 'mymodel': .* prompt_format="),
    ],
)
def test_what_cannot_be_asked(bare: Any, name: str | None, message: str) -> None:
    """Each mistake says what there is."""
    with pytest.raises(SettingsError, match=message):
        find_format(bare, "mymodel", name)
