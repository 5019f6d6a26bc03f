"""``caption_vllm`` asks vLLM what ``caption_hf`` asks the model; vLLM is played by transformers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import vllm_stand_in
from caption_requests import GREEDY, caption_all, results_of
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.caption_vllm import CaptionVllm
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

PROMPTS = {"a": "Describe.", "b": "Describe the camera."}
FAMILIES = ("qwen2_vl", "qwen3_vl", "llava")
"""A video as such, one with time stamps in the prompt, one shown as pictures."""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny checkpoint of each family."""
    folder = tmp_path_factory.mktemp("zoo")
    return {name: ARCHITECTURES[name].write(folder / name) for name in FAMILIES}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of different lengths and shapes."""
    folder = tmp_path_factory.mktemp("clips")
    return [
        write_clip(folder / f"{n}.mp4", n_frames, size=(64, 48 + 16 * n))
        for n, n_frames in enumerate((12, 3, 1))
    ]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captions that an earlier run of the tests has kept are not taken."""
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> list[vllm_stand_in.Engine]:
    """The stand-in, installed, and the engines that are made of it."""
    for name, module in vllm_stand_in.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    vllm_stand_in.ENGINES.clear()
    return vllm_stand_in.ENGINES


@pytest.mark.parametrize("family", FAMILIES)
def test_captions_are_those_of_caption_hf(
    checkpoints: dict[str, Path], clips: list[Path], vllm: list[Any], family: str
) -> None:
    """Same prompts, frames, times and sizes: the same text and the same number of tokens."""
    common: dict[str, Any] = {
        "pretrained": str(checkpoints[family]),
        "max_num_frames": 4,
        "system_prompt": "You see.",
        "device": "cpu",
    }
    if family != "llava":
        common["frame_pixels"] = 32 * 32 if family == "qwen3_vl" else 28 * 28
    expected = results_of(CaptionHf(**common), clips, PROMPTS)
    model = CaptionVllm(**common)
    results = results_of(model, clips, PROMPTS)
    assert [result.text for result in results] == [result.text for result in expected]
    assert [r.token_counts.input_tokens for r in results] == [
        r.token_counts.input_tokens for r in expected
    ]
    model.clean()
    [engine] = vllm
    assert engine.is_shut_down
    assert {sampling.max_tokens for sampling in engine.sampling} == {GREEDY["max_new_tokens"]}


@pytest.mark.parametrize("engine_args", [None, "mm_device_do_normalize:true"])
def test_pixels_are_scaled_by_the_processor(
    checkpoints: dict[str, Path], vllm: list[Any], engine_args: str | None
) -> None:
    """Models of vLLM scale all pixels as the image processor does, if they are left to."""
    CaptionVllm(
        pretrained=str(checkpoints["qwen3_vl"]), device="cpu", engine_args=engine_args
    ).clean()
    assert vllm[0].arguments.mm_device_do_normalize is (engine_args is not None)


def test_a_refused_prompt_costs_its_own_caption(
    checkpoints: dict[str, Path], clips: list[Path], vllm: list[Any]
) -> None:
    """The words of vLLM are the reason, and the other captions are written."""
    model = CaptionVllm(
        pretrained=str(checkpoints["qwen2_vl"]), device="cpu", max_num_frames=2, max_model_len=1500
    )
    captions = caption_all(model, clips[:1], {"a": "Describe.", "b": "Describe. " * 150})
    assert [bool(caption) for caption in captions] == [True, False]
    assert "exceeds the maximum model length" in str(model.outcome.failures.values())
    assert len(vllm) == 1
    model.clean()


def test_a_dead_engine_ends_the_run(
    checkpoints: dict[str, Path],
    clips: list[Path],
    vllm: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clips that are left are not read for nothing, and the judge is not asked about a part."""

    class EngineDeadError(Exception):
        """Error of vLLM."""

    generate = vllm_stand_in.Engine.generate

    async def dying(self: Any, *asked: Any) -> Any:
        if len(self.prompts) == 2:
            self.errored = True
            raise EngineDeadError("EngineCore encountered an issue.")
        async for output in generate(self, *asked):
            yield output

    monkeypatch.setattr(vllm_stand_in.Engine, "generate", dying)
    model = CaptionVllm(
        pretrained=str(checkpoints["qwen2_vl"]), device="cpu", max_num_frames=2, concurrency=1
    )
    with pytest.raises(CaptionError, match="vLLM's engine has ended"):
        caption_all(model, clips, PROMPTS)
    assert len(vllm[0].prompts) == 2
    model.clean()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pretrained": ""}, "expected --model_args pretrained=NAME"),
        ({"dtype": "int8"}, "dtype='int8' is not one of"),
        ({"concurrency": 0}, "concurrency"),
        ({"engine_args": {"model": "x"}}, "model are arguments of caption_vllm itself"),
        ({"engine_args": {"no_such": 1}}, "vLLM does not start: .*no_such"),
    ],
)
@pytest.mark.usefixtures("vllm")
def test_wrong_arguments_are_named(
    checkpoints: dict[str, Path], arguments: dict[str, Any], message: str
) -> None:
    """Each is answered before a weight is loaded."""
    given = {"pretrained": str(checkpoints["qwen2_vl"]), "device": "cpu", **arguments}
    with pytest.raises(SettingsError, match=message):
        CaptionVllm(**given)


def test_beams_and_more_processes_are_refused(
    checkpoints: dict[str, Path],
    clips: list[Path],
    vllm: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are no beams in vLLM, which spreads over accelerators by itself."""
    model = CaptionVllm(pretrained=str(checkpoints["qwen2_vl"]), device="cpu")
    with pytest.raises(SettingsError, match="num_beams=3"):
        caption_all(model, clips, settings={**GREEDY, "num_beams": 3})
    assert vllm[0].prompts == []
    model.clean()
    monkeypatch.setattr(CaptionVllm, "world_size", 2)
    with pytest.raises(SettingsError, match="runs in one process, got 2"):
        CaptionVllm(pretrained=str(checkpoints["qwen2_vl"]), device="cpu")


def test_without_vllm_it_is_said_what_to_do(
    checkpoints: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra that brings it, and the endpoint that needs none."""
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(
        SettingsError, match=r"pip install 'lmms-eval-captions\[vllm\]'.* base_url="
    ):
        CaptionVllm(pretrained=str(checkpoints["qwen2_vl"]), device="cpu")
