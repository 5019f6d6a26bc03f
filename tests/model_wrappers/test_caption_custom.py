"""A captioner of the user's own: the README's example, and what is said to typing errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lmms_eval.models.registry_v2 import ModelManifest, ModelRegistryV2

from caption_requests import caption_all, results_of
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers import captioner
from lmms_eval_captions.model_wrappers.caption_custom import CaptionCustom, load_class
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from zoo import ARCHITECTURES

README = Path(captioner.__file__).with_name("README.md")


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The README's example as a file in the working directory."""
    blocks = re.findall(r"```python\n# my_captioner.py\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 1
    path = tmp_path / "readme_captioner.py"
    path.write_text(blocks[0])
    monkeypatch.chdir(tmp_path)
    return path


def test_the_example_is_short(example: Path) -> None:
    """A captioner takes at most 30 lines."""
    assert len(example.read_text().strip().splitlines()) <= 30


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("family", ["qwen3_vl", "llava_onevision"])
def test_the_example_captions(example: Path, family: str, tmp_path: Path) -> None:
    """The example runs as printed, and asks as ``caption_hf`` does: by the chat template."""
    checkpoint = ARCHITECTURES[family].write(tmp_path / "checkpoint")
    clips = [write_clip(tmp_path / f"{n}.mp4", 8 + n) for n in range(3)]
    captions = []
    for name in ("readme_captioner", str(example)):
        model = CaptionCustom.create_from_arg_string(
            f"class={name}:MyCaptioner,pretrained={checkpoint}",
            {"batch_size": "2", "device": "cpu", "max_batch_size": None},
        )
        captions.append(caption_all(model, clips))
    ours = CaptionHf(pretrained=str(checkpoint), device="cpu", max_num_frames=8)
    assert captions == [caption_all(ours, clips)] * 2
    assert all(len(caption) == 16 for caption in captions[0])


def test_a_captioner_has_a_name_by_entry_point(example: Path) -> None:
    """The manifest that the README prints resolves to the class."""
    assert "ModelManifest(" in README.read_text()
    registry = ModelRegistryV2()
    captioner = load_class(f"{example}:MyCaptioner")
    name = f"{captioner.__module__}.{captioner.__name__}"
    registry.register_manifest(ModelManifest("my_captioner", simple_class_path=name))
    assert registry.get_model_class("my_captioner") is captioner


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "expected --model_args class="),
        ("MyCaptioner", "expected --model_args class="),
        ("no_such_module_here:A", "no module 'no_such_module_here'"),
        ("nowhere/file.py:A", "expected a Python file"),
        ("readme_captioner:Captain", "its captioners are ['MyCaptioner']"),
        ("readme_captioner:AutoProcessor", "expected a subclass of Captioner"),
    ],
)
@pytest.mark.usefixtures("example")
def test_a_class_that_cannot_be_found(name: object, message: str) -> None:
    """Each mistake is named."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_class(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "missing a required argument: 'pretrained'; arguments come from --model_args"),
        (",pretraind=a", "MyCaptioner does not know ['pretraind'] (pretrained is meant?)"),
    ],
)
@pytest.mark.usefixtures("example")
def test_arguments_that_a_class_does_not_take_are_named(arguments: str, message: str) -> None:
    """A mistake in ``--model_args`` is no fault in the user's code, and no traceback."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        CaptionCustom.create_from_arg_string(f"class=readme_captioner:MyCaptioner{arguments}")


def test_the_smallest_captioner(tmp_path: Path) -> None:
    """One method is enough, and results are what lmms-eval takes."""

    class Smallest(captioner.Captioner):
        def caption(self, batch: captioner.Batch) -> list[str]:
            return [f"{len(job.clip.frames)} frames" for job in batch.jobs]

    [result] = results_of(Smallest(device="cpu"), [write_clip(tmp_path / "a.mp4", 9)])
    assert (result.text, result.token_counts) == ("9 frames", None)
