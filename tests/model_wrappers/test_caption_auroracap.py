"""``caption_auroracap``: clips through lmms-eval with a tiny checkpoint in AuroraCap's layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from caption_requests import GREEDY, caption_all, results_of
from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.caption_auroracap import (
    CaptionAuroraCap,
)
from tiny_auroracap import write_auroracap

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")

PROMPTS = {"short": "Describe.", "long": "Describe the camera, then the background, in detail."}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost tiny matrices more than they save, all the more on busy cores."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, saved."""
    return write_auroracap(tmp_path_factory.mktemp("model") / "auroracap")


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of several lengths and shapes."""
    folder = tmp_path_factory.mktemp("clips")
    shapes = [(3, (64, 48)), (24, (64, 48)), (9, (48, 96)), (1, (32, 32)), (12, (160, 64))]
    return [
        write_clip(folder / f"{index}.mp4", n, size=size) for index, (n, size) in enumerate(shapes)
    ]


def make(checkpoint: Path, **arguments: Any) -> CaptionAuroraCap:
    """A captioner on the CPU."""
    return CaptionAuroraCap(
        **{"pretrained": str(checkpoint), "device": "cpu", "max_num_frames": 4, **arguments}
    )


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="merged"),
        pytest.param({"ratio": 1.0}, id="all tokens"),
    ],
)
def test_batched_is_unbatched(
    checkpoint: Path, clips: list[Path], settings: dict[str, object]
) -> None:
    """Greedy captions and token counts do not depend on what stands beside them in a batch."""
    alone = results_of(make(checkpoint, batch_size=1, **settings), clips, PROMPTS)
    together = results_of(make(checkpoint, batch_size=4, **settings), clips, PROMPTS)
    assert [(result.text, result.token_counts) for result in alone] == [
        (result.text, result.token_counts) for result in together
    ]
    assert len({result.text for result in alone}) >= 8, "captions follow clip and prompt"


def test_a_clip_is_seen_once_for_all_its_prompts(
    checkpoint: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captions that are asked of a clip in a row share the tower's work."""
    model = make(checkpoint, batch_size=2)
    seen: list[int] = []
    see = model.model.see

    def counting(pixels: object, **settings: Any) -> object:
        seen.append(1)
        return see(pixels, **settings)

    monkeypatch.setattr(model.model, "see", counting)
    five = {f"task{number}": f"Prompt {number}." for number in range(5)}
    assert len(set(caption_all(model, clips, five))) > len(clips)
    assert len(seen) == len(clips)


PAPER = {"camera": 0.6, "short": 0.5, "background": 0.4, "main_object": 0.2, "detailed": 0.2}


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_each_aspect_is_captioned_at_the_paper_s_ratio(
    checkpoint: Path, clips: list[Path], batch_size: int
) -> None:
    """In one run over several aspects each caption is the one of its own ratio, however batched."""
    prompts = {f"vdc_{aspect}": "Describe the same." for aspect in PAPER}
    paper = make(checkpoint, ratio="paper", batch_size=batch_size)
    together = results_of(paper, clips[:3], prompts)
    alone = [
        result
        for aspect, ratio in PAPER.items()
        for result in results_of(
            make(checkpoint, ratio=ratio),
            clips[:3],
            {f"vdc_{aspect}": "Describe the same."},
        )
    ]
    assert [(result.text, result.token_counts) for result in together] == [
        (result.text, result.token_counts) for result in alone
    ]
    camera, detailed = together[0], together[-3]
    # Three frames of 16 patches, of which 3 layers merge 1 or 3 each.
    assert camera.token_counts.input_tokens - detailed.token_counts.input_tokens == 3 * 6


def test_a_task_without_a_ratio_of_the_paper_ends_the_run_at_once(
    checkpoint: Path, clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No caption is written before it turns out that one task has no ratio."""
    model = make(checkpoint, ratio="paper")
    monkeypatch.setattr(model, "caption", None)
    with pytest.raises(SettingsError, match="'capquiz'"):
        caption_all(model, clips, {"vdc_camera": "Look.", "capquiz": "Look."})


def test_the_real_clip(checkpoint: Path, shared_data: Path) -> None:
    """A 720p clip is captioned, the same with and without a neighbour in the batch."""
    clip = shared_data / "media" / "video1.mp4"
    alone = results_of(make(checkpoint, max_num_frames=8), [clip], PROMPTS)
    together = results_of(make(checkpoint, max_num_frames=8, batch_size=2), [clip], PROMPTS)
    assert [result.text for result in alone] == [result.text for result in together]
    assert all(result.text and result.token_counts.output_tokens > 0 for result in alone)


def test_settings_of_the_task_reach_the_model(checkpoint: Path, clips: list[Path]) -> None:
    """Sampling and beams are the task's; the checkpoint's own sampling is not used when greedy."""
    model = make(checkpoint)
    assert model.model.llm.generation_config.temperature == pytest.approx(0.9)
    [greedy] = caption_all(model, clips[1:2])
    assert [greedy] == caption_all(model, clips[1:2])
    drawn = {**GREEDY, "do_sample": True, "temperature": 5.0}
    assert [greedy] != caption_all(model, clips[1:2], settings=drawn)
    [result] = results_of(model, clips[1:2], settings={**GREEDY, "max_new_tokens": 3})
    assert result.token_counts.output_tokens == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ratio": 1.5}, "expected ratio"),
        ({"ratio": "half"}, "expected ratio"),
        ({"dtype": "int8"}, "dtype"),
        ({"max_num_frames": 0}, "max_num_frames: expected"),
        ({"token_merge_ratio": 0.4}, "does not know"),
    ],
)
def test_wrong_arguments_are_named(
    checkpoint: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        make(checkpoint, **arguments)
