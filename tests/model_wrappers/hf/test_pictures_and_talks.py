"""``caption_hf`` on tasks of any kind: pictures, several visuals, texts, earlier turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import transformers
from lmms_eval.api.instance import Instance
from PIL import Image

from hostile_clips import write_clip
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf, CaptionHfChat
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.filterwarnings("ignore:.*")

Doc = dict[str, Any]
GREEDY = {"max_new_tokens": 6, "do_sample": False}
FAMILIES = (
    "qwen2_5_vl", "llava_onevision", "internvl", "gemma3", "glm4v", "idefics2", "smolvlm", "molmo2",
)  # fmt: skip
RECIPES = ("qwen2_5_vl", "llava_onevision", "internvl", "gemma3")
"""Those whose chat template alone makes the documented inputs."""


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny models are slower in several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the models; each is written when it is first used."""
    return tmp_path_factory.mktemp("zoo")


def written(checkpoints: Path, name: str) -> Path:
    """A tiny checkpoint."""
    folder = checkpoints / name
    return folder if folder.exists() else ARCHITECTURES[name].write(folder)


def pictures() -> list[Image.Image]:
    """Three pictures of several shapes."""
    noise = np.random.default_rng(0)
    sizes = [(48, 64), (96, 48), (56, 56)]
    return [Image.fromarray(noise.integers(0, 255, (*s, 3), dtype=np.uint8)) for s in sizes]


def user(*content: object) -> Doc:
    """A turn of texts, pictures and clips."""
    parts: list[Doc] = []
    for part in content:
        kind = {str: "text", Image.Image: "image"}.get(type(part), "video")
        parts.append({"type": kind, "text" if kind == "text" else "url": part})
    return {"role": "user", "content": parts}


def ask(model: CaptionHf, talks: dict[str, list[Doc]]) -> list[str]:
    """The answers to conversations, each in a task of its own."""
    model.task_dict = {task: {"test": [{}]} for task in talks}
    requests = []
    for task, talk in talks.items():

        def messages(_doc: Doc, talk: list[Doc] = talk) -> list[Doc]:
            return talk

        arguments = ("unused", messages, dict(GREEDY), 0, task, "test")
        metadata = {"task": task, "doc_id": 0, "repeats": 1}
        requests.append(Instance("generate_until", arguments, 0, metadata))
    return [result.text for result in model.generate_until(requests)]


def captioner(folder: Path, **arguments: Any) -> CaptionHfChat:
    """On the CPU, with four frames of each clip; nothing is kept."""
    given: dict[str, Any] = {
        "pretrained": str(folder),
        "device": "cpu",
        "max_num_frames": 4,
        "reuse": False,
    }
    return CaptionHfChat(**given, **arguments)


@pytest.mark.parametrize("name", FAMILIES)
def test_whatever_a_task_shows_and_says_is_answered_alike_in_any_batch(
    name: str, checkpoints: Path, tmp_path: Path
) -> None:
    """Pictures alone, together, between words and beside a clip; texts; earlier turns."""
    clip = str(write_clip(tmp_path / "clip.mp4", 12))
    clip_part = {"type": "video", "url": clip}
    one, other, third = pictures()
    dog = {"role": "assistant", "content": "A dog."}
    beside = user(third, "Compare.")
    beside["content"].insert(1, clip_part)
    talks: dict[str, list[Doc]] = {
        "picture": [user(one, "Describe.")],
        "another": [user(other, "Describe it.")],
        "two": [user(one, other, "Which?")],
        "between": [user("Is", one, "like", third, "?")],
        "text": [user("Why?")],
        "beside": [beside],
        "talk": [{"role": "system", "content": "Be brief."}, user(one, "?"), dog, user("Where?")],
        "clip": [{"role": "user", "content": [clip_part]}, dog, user("Where?")],
    }
    folder = written(checkpoints, name)
    alone = ask(captioner(folder, batch_size=1), talks)
    assert all(alone)
    assert len(set(alone)) > len(alone) // 2
    assert ask(captioner(folder, batch_size=4), talks) == alone


@pytest.mark.parametrize("name", RECIPES)
def test_a_picture_is_captioned_as_documented(name: str, checkpoints: Path) -> None:
    """Token for token what a processor's chat template and ``generate`` give."""
    folder = written(checkpoints, name)
    [picture, *_] = pictures()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, ARCHITECTURES[name].model).from_pretrained(folder)
    asked = [{"type": "image", "image": picture}, {"type": "text", "text": "Describe."}]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": asked}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        tokens = model.generate(**inputs, **GREEDY)[:, inputs["input_ids"].shape[1] :]
    [documented] = processor.batch_decode(tokens, skip_special_tokens=True)
    assert ask(captioner(folder), {"picture": [user(picture, "Describe.")]}) == [documented]
