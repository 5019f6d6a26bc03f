"""Mistakes in ``--model_args`` end before a model loads, in a sentence that names the argument."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.integration.plugin import manifests
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.model_args import Generation
from zoo import ARCHITECTURES

REQUIRE_VLLM = "lmms_eval_captions.model_wrappers.caption_vllm.require_vllm"


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny checkpoint."""
    return ARCHITECTURES["qwen2_5_vl"].write(tmp_path_factory.mktemp("qwen"))


def start(model: str, arguments: str, **further: object) -> Any:
    [manifest] = [manifest for manifest in manifests() if manifest.model_id == model]
    module, _, name = (manifest.chat_class_path or manifest.simple_class_path).rpartition(".")
    captioner: Any = getattr(importlib.import_module(module), name)
    return captioner.create_from_arg_string(arguments, {"batch_size": 1, **further})


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("caption_hf", "/models/mine", "--model_args: expected name=value,name=value, got '/mod"),
        ("caption_hf", "pretrained=/models/mine", "there is no folder /models/mine"),
        ("caption_hf", "pretrained=~/mine", "a shell leaves ~ as it is"),
        (
            "caption_hf",
            "pretrained=QWEN,max_frames=8",
            r"caption_hf does not know \['max_frames'\] \(max_num_frames is me",
        ),
        ("caption_hf", "pretrained=QWEN,max_num_frames=0", "max_num_frames: expected a whole"),
        ("caption_hf", "pretrained=QWEN,max_num_frames=-1", "max_num_frames: expected a whole"),
        ("caption_hf", "pretrained=QWEN,fps=0", "fps: expected a number above 0"),
        ("caption_hf", "pretrained=QWEN,fps=two", "fps: expected a number above 0"),
        ("caption_hf", "pretrained=QWEN,trust_remote_code=yes", "trust_remote_code=true or"),
        ("caption_hf", "pretrained=QWEN,share_prefix=no", "share_prefix=true or"),
        ("caption_hf", "pretrained=QWEN,prompt_format=1", "prompt_format=1 is neither"),
        ("caption_hf", "pretrained=QWEN,prompt_format=BAD", "not readable as Jinja: line 1"),
        ("caption_hf", "pretrained=QWEN,decode_timeout_s=long", "decode_timeout_s: expected"),
        ("caption_hf", "pretrained=QWEN,decode_memory_gib=-1", "decode_memory_gib: expected"),
        ("caption_vllm", "pretrained=/models/mine", "there is no folder"),
        ("caption_vllm", "pretrained=QWEN,trust_remote_code=1", "trust_remote_code=true or"),
        ("caption_openai", "model=m,base_url=URL,timeout_s=long", "timeout_s: expected a number"),
        ("caption_openai", "model=m,base_url=URL,timeout_s=-5", "timeout_s: expected a number"),
        ("caption_openai", "model=m,base_url=here:8000", "separated by ';', got 'here:8000'"),
        ("caption_openai", "model=m,base_url=URL,max_token=1", "caption_openai does not know"),
        ("caption_baseline", "frames=1", "caption_baseline does not know"),
        ("caption_file", "pth=a", "caption_file does not know"),
        ("caption_auroracap", "pretrained=/models/mine", "there is no folder"),
        ("caption_auroracap", "pretrained=no/such", "no/such cannot be downloaded"),
        ("caption_auroracap", "system_prompt=no", "system_prompt=true or"),
        ("caption_custom", "my_file.py:Mine", "--model_args: expected name=value"),
    ],
)
def test_a_mistaken_argument_is_named(
    qwen: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    arguments: str,
    message: str,
) -> None:
    monkeypatch.setattr(REQUIRE_VLLM, lambda: None)
    template = tmp_path / "bad.jinja"
    template.write_text("{% for x in %}")
    filled = arguments.replace("QWEN", str(qwen)).replace("BAD", str(template))
    with pytest.raises(SettingsError, match=message):
        start(model, filled.replace("URL", "http://127.0.0.1:9/v1"))


def test_a_device_that_does_not_exist_is_named(qwen: Path) -> None:
    """``--device`` of another library's spelling."""
    with pytest.raises(SettingsError, match=r"--device: expected cuda, .* got 'gpu'"):
        start("caption_hf", f"pretrained={qwen}", device="gpu")


def test_without_vllm_nothing_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def is_missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(
        "lmms_eval_captions.model_wrappers.caption_vllm.importlib.import_module", is_missing
    )
    with pytest.raises(SettingsError, match=r"vLLM is not installed here: pip install"):
        _start_vllm(tmp_path)


def _start_vllm(folder: Path) -> Any:
    from lmms_eval_captions.model_wrappers.caption_vllm import CaptionVllm

    return CaptionVllm(pretrained=str(folder))


@pytest.mark.parametrize(
    "settings", [{"max_new_tokens": -1}, {"temperature": -2}, {"num_beams": -1}, {"top_p": 7}]
)
def test_generation_settings_have_bounds(settings: dict[str, object]) -> None:
    """A caption of one word, or a greedy one, is not what was asked for."""
    [name] = settings
    with pytest.raises(SettingsError, match=f"generation setting {name}: expected"):
        Generation.read(settings)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([None], "captions as text, Caption or futures of Caption, got NoneType"),
        ("a", "a list with one caption per job, got str"),
        (None, "a list with one caption per job, got NoneType"),
        ([], "one caption per job, 1, got 0"),
    ],
)
def test_what_a_captioner_of_ones_own_returns_is_checked(returned: Any, message: str) -> None:
    """The class is named, and what it should have returned."""

    class Mine(Captioner):
        def caption(self, batch: Batch) -> Any:  # noqa: ARG002
            return returned

    batch = Batch([None], Generation())  # type: ignore[list-item] # it is not looked at
    with pytest.raises(SettingsError, match=rf"Mine\.caption: expected {message}"):
        Mine()._answers(batch)
