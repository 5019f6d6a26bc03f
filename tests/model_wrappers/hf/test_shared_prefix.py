"""Prompts about one clip share what the model makes of it, and captions stay the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import BatchFeature

from caption_requests import GREEDY, caption_all, results_of
from hostile_clips import write_clip
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, asked_about
from lmms_eval_captions.model_wrappers.hf import shared_generation
from lmms_eval_captions.model_wrappers.hf.inputs import Part
from lmms_eval_captions.model_wrappers.hf.shared_prefix import share
from lmms_eval_captions.model_wrappers.video.clip import make_clip
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.filterwarnings("ignore:.*")

PROMPTS = {
    "short": "Describe.",
    "long": "Describe the camera, then the background, in detail.",
    "other": "What is seen?",
}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of several lengths and shapes."""
    folder = tmp_path_factory.mktemp("clips")
    shapes = [(3, (64, 48)), (24, (64, 48)), (9, (48, 96))]
    return [
        write_clip(folder / f"{index}.mp4", n, size=size) for index, (n, size) in enumerate(shapes)
    ]


def captioner(name: str, folder: Path, **arguments: Any) -> CaptionHf:
    """A captioner of a family, exact enough to compare captions token for token."""
    common = {"device": "cpu", "dtype": "float32", "max_num_frames": 4}
    return CaptionHf(
        **{"pretrained": str(folder), **common, **ARCHITECTURES[name].arguments, **arguments}
    )


@pytest.mark.parametrize(
    ("name", "is_shared"),
    [
        pytest.param("qwen2_5_vl", True, id="positions of several axes"),
        pytest.param("llava", True, id="pictures"),
        pytest.param("qwen3_5", True, id="a state in place of keys"),
        pytest.param("gemma3", True, id="sliding windows"),
        pytest.param("mllama", False, id="inputs that cannot be cut"),
    ],
)
def test_captions_are_the_same(
    name: str, is_shared: bool, clips: list[Path], tmp_path: Path
) -> None:
    """A clip that is encoded once for its prompts has the captions of one that is read for each."""
    folder = ARCHITECTURES[name].write(tmp_path / name)
    alone = captioner(name, folder, share_prefix=False)
    expected = [(one.text, one.token_counts) for one in results_of(alone, clips, PROMPTS)]
    for batch_size in (1, 9):
        model = captioner(name, folder, batch_size=batch_size)
        assert [(r.text, r.token_counts) for r in results_of(model, clips, PROMPTS)] == expected
        assert bool(model.sharing.is_possible) == is_shared


def test_blanks_that_a_processor_adds_are_those_of_each_prompt(
    clips: list[Path], tmp_path: Path
) -> None:
    """Idefics2's puts a blank behind pictures, but not where the prompt begins with one."""
    folder = ARCHITECTURES["idefics2"].write(tmp_path / "idefics2")
    prompts = {**PROMPTS, "blanks": "  What is seen?"}
    expected = results_of(captioner("idefics2", folder, share_prefix=False), clips, prompts)
    for order in (prompts, dict(reversed(prompts.items()))):
        results = results_of(captioner("idefics2", folder, reuse=False), clips, order)
        n = len(clips)
        by_task = {task: results[n * i : n * (i + 1)] for i, task in enumerate(order)}
        shared = [result for task in prompts for result in by_task[task]]
        assert [(r.text, r.token_counts) for r in shared] == [
            (r.text, r.token_counts) for r in expected
        ]


class Lines:
    """A tokenizer that knows ``<clip>``, pairs of letters that are alike, and letters."""

    pad_token_id: int | None = 0

    def get_added_vocab(self) -> dict[str, int]:
        """The one special token."""
        return {"<clip>": 1}

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        """Letters by their codes, pairs by 1000 more."""
        assert not add_special_tokens
        found = re.findall(r"<clip>|(?s:(.)\1|(.))", text)
        ids = [1000 + ord(pair) if pair else ord(one) if one else 1 for pair, one in found]
        return {"input_ids": ids}

    def decode(self, token_ids: Sequence[int]) -> str:
        """The same in the other direction."""
        return "".join(chr(n) if n < 1000 else 2 * chr(n - 1000) for n in token_ids)


@pytest.mark.parametrize(("prompts", "is_shared"), [(["ab", "ba"], True), (["ab", "xb"], False)])
def test_what_a_processor_puts_before_prompts_may_merge_with_them(
    prompts: list[str], is_shared: bool
) -> None:
    """The first prompt is not changed by what is put there, another one may be."""
    clip = make_clip(np.zeros((1, 2, 2, 3), np.uint8), np.zeros(1), fps=1.0, n_total=1)
    jobs = [
        CaptionJob([clip], asked_about(1, prompt), Path("clip"), "task", n)
        for n, prompt in enumerate(prompts)
    ]
    tokenizer = Lines()

    def parts(chosen: Sequence[CaptionJob]) -> list[Part]:
        texts = [f"<clip><clip>x{job.prompt}" for job in chosen]
        ids = torch.tensor([tokenizer(t, add_special_tokens=False)["input_ids"] for t in texts])
        inputs = BatchFeature({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
        return [Part([*range(len(chosen))], inputs)]

    shared = share(
        jobs, lambda job: f"<clip>{job.prompt}", parts, tokenizer=tokenizer, visual_ids=[1]
    )
    assert bool(shared) == is_shared


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One checkpoint."""
    return ARCHITECTURES["qwen2_5_vl"].write(tmp_path_factory.mktemp("model") / "qwen")


def test_a_clip_is_encoded_once(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vision tower sees each clip once for all prompts, but for the two that are tried."""
    model = captioner("qwen2_5_vl", qwen)
    seen: list[int] = []
    tower = model.model.model.visual
    forward = tower.forward

    def counted(*args: object, **kwargs: object) -> object:
        seen.append(1)
        return forward(*args, **kwargs)

    monkeypatch.setattr(tower, "forward", counted)
    results_of(model, clips, PROMPTS)
    n_tried = 3  # once shared, and two jobs whole
    assert len(seen) == len(clips) + n_tried
    results_of(model, clips, PROMPTS)
    assert len(seen) == 2 * len(clips) + n_tried


def test_a_model_that_reads_otherwise_is_asked_apart(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the shared way gives other logits, captions are those of the whole inputs."""
    expected = caption_all(captioner("qwen2_5_vl", qwen, share_prefix=False), clips, PROMPTS)
    wrong = shared_generation._continued

    def moved(*args: Any) -> dict[str, torch.Tensor]:
        tokens = wrong(*args)
        return {**tokens, "position_ids": tokens["position_ids"] + 5}

    monkeypatch.setattr(shared_generation, "_continued", moved)
    model = captioner("qwen2_5_vl", qwen)
    assert caption_all(model, clips, PROMPTS) == expected
    assert model.sharing.is_possible is False
    assert "logits differ" in model.sharing.reason


def test_too_little_memory_for_all_prompts_at_once(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts that do not fit together are written one after another from the same keys."""
    expected = caption_all(captioner("qwen2_5_vl", qwen, share_prefix=False), clips, PROMPTS)
    model = captioner("qwen2_5_vl", qwen)
    generate, rows = model.model.generate, []

    def small(*args: Any, **kwargs: Any) -> Any:
        n_rows = len(kwargs["input_ids"])
        rows.append(n_rows)
        if n_rows > 1 and model.sharing.is_possible:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(*args, **kwargs)

    monkeypatch.setattr(model.model, "generate", small)
    assert caption_all(model, clips, PROMPTS) == expected
    assert model.sharing.is_possible
    assert rows.count(len(PROMPTS)) == 1, "found out once"
    assert not model.outcome.failures


def test_too_little_memory_to_try_it_is_found_out_once(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that fills the memory with one prompt is asked prompt by prompt from then on."""
    expected = caption_all(captioner("qwen2_5_vl", qwen, share_prefix=False), clips, PROMPTS)
    model = captioner("qwen2_5_vl", qwen)
    generate, failed = model.model.generate, []

    def small(*args: Any, **kwargs: Any) -> Any:
        continued = kwargs.get("past_key_values", kwargs.get("cache"))
        if len(kwargs["input_ids"]) > 1 or continued is not None:
            failed.append(len(kwargs["input_ids"]))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(*args, **kwargs)

    monkeypatch.setattr(model.model, "generate", small)
    assert caption_all(model, clips, PROMPTS) == expected
    assert model.sharing.is_possible is False
    assert "memory" in model.sharing.reason
    assert len(failed) == 1
    assert not model.outcome.failures


def test_a_model_that_stops_sharing_is_asked_apart(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only a later clip shows ends no run."""
    expected = caption_all(captioner("qwen2_5_vl", qwen, share_prefix=False), clips, PROMPTS)
    model = captioner("qwen2_5_vl", qwen)
    encoded = shared_generation._encoded

    def once(*args: Any) -> Any:
        if model.sharing.is_possible:
            raise shared_generation.NotShareableError("it keeps no key for each token")
        return encoded(*args)

    monkeypatch.setattr(shared_generation, "_encoded", once)
    assert caption_all(model, clips, PROMPTS) == expected
    assert model.sharing.is_possible is False


def test_what_did_not_fit_leaves_nothing_on_the_device(
    qwen: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inputs of a batch stay where they were prepared: its halves need the memory."""
    model = captioner("qwen2_5_vl", qwen, share_prefix=False)
    seen, write = [], model.caption

    def caption(batch: Any) -> Any:
        before = [dict(part.inputs) for part in batch.prepared]
        captions = write(batch)
        seen.append(
            all(
                part.inputs[name] is value
                for part, own in zip(batch.prepared, before, strict=True)
                for name, value in own.items()
            )
        )
        return captions

    monkeypatch.setattr(model, "caption", caption)
    model.model.to(torch.float64)
    assert all(caption_all(model, clips[:1], PROMPTS))
    assert seen == [True] * len(seen)


def test_drawn_captions_are_shared_and_beams_are_not(qwen: Path, clips: list[Path]) -> None:
    """Beams move the rows of a cache, so that each job goes with its clip."""
    model = captioner("qwen2_5_vl", qwen)
    beams = caption_all(model, clips[:1], PROMPTS, {**GREEDY, "num_beams": 2})
    assert all(len(caption) == 16 for caption in beams)
    assert model.sharing.is_possible is None
    drawn = caption_all(model, clips[:1], PROMPTS, {"max_new_tokens": 16, "temperature": 3.0})
    assert all(len(caption) == 16 for caption in drawn)
    assert model.sharing.is_possible
