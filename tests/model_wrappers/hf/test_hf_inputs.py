"""Inputs of a transformers model: parts of a batch, and the times of frames."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from transformers import BatchFeature

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, asked_about
from lmms_eval_captions.model_wrappers.hf.inputs import make_parts
from lmms_eval_captions.model_wrappers.video.clip import make_clip


class Processor:
    """Remembers what it was asked for; it may stack clips, or refuse them."""

    def __init__(self, *, stacks: bool = False, refuses: bool = False) -> None:
        self.video_processor = SimpleNamespace(size={"shortest_edge": 256})
        self.stacks = stacks
        self.refuses = refuses
        self.tokenizer: object = SimpleNamespace(bos_token="<s>")  # noqa: S106 - no password
        self.calls: list[dict[str, Any]] = []

    def apply_chat_template(self, conversation: Any, **_: object) -> str:
        """The start token and the last text."""
        return f"<s>{conversation[-1]['content'][-1]['text']}"

    def __call__(self, **given: Any) -> BatchFeature:
        """How many texts there are."""
        lengths = {len(video) for video in given["videos"]}
        if self.refuses or (self.stacks and len(lengths) > 1):
            raise ValueError("expected clips of equal length")
        self.calls.append(given)
        return BatchFeature({"n_texts": len(given["text"])})


def _jobs(*lengths: int, times_s: list[float] | None = None, fps: float = 2.0) -> list[CaptionJob]:
    jobs = []
    for number, n_frames in enumerate(lengths):
        shown = np.asarray(times_s or np.arange(n_frames) / 2, dtype=np.float64)
        frames = np.zeros((n_frames, 4, 6, 3), np.uint8)
        clip = make_clip(frames, shown, fps=fps, n_total=99)
        messages = asked_about(1, f"Prompt {number}.")
        jobs.append(CaptionJob([clip], messages, Path(f"{number}.mp4"), "task", number))
    return jobs


def test_a_batch_goes_through_at_once_where_the_processor_can() -> None:
    """Clips of several lengths are one part."""
    parts = make_parts(Processor(), _jobs(2, 3, 2))
    assert [(list(part.jobs), part.inputs["n_texts"]) for part in parts] == [([0, 1, 2], 3)]


def test_clips_of_equal_length_go_together_where_it_stacks() -> None:
    """Every job is in one part, with its own prompt and clip."""
    processor = Processor(stacks=True)
    parts = make_parts(processor, _jobs(2, 3, 2))
    assert [list(part.jobs) for part in parts] == [[0, 2], [1]]
    assert [call["text"] for call in processor.calls] == [
        ["<s>Prompt 0.", "<s>Prompt 2."], ["<s>Prompt 1."]
    ]  # fmt: skip
    assert [[len(video) for video in call["videos"]] for call in processor.calls] == [[2, 2], [3]]


def test_a_refusal_names_the_shapes() -> None:
    """A processor that takes no part of the batch says which clips it was shown."""
    with pytest.raises(DataError, match=r"\(2, 4, 6\), \(3, 4, 6\).*equal length"):
        make_parts(Processor(refuses=True), _jobs(2, 3))


def test_a_second_start_token_is_not_added() -> None:
    """The template has written it already; a tokenizer without one is left to itself."""
    processor = Processor()
    make_parts(processor, _jobs(2))
    processor.tokenizer = SimpleNamespace(bos_token="")
    make_parts(processor, _jobs(2))
    assert [call["add_special_tokens"] for call in processor.calls] == [False, True]


@pytest.mark.parametrize(
    ("fps", "positions"),
    [
        pytest.param(10.0, [0, 5, 17], id="times of a variable rate become positions"),
        pytest.param(0.0, [0, 1, 2], id="no rate is known"),
    ],
)
def test_models_are_told_the_file_s_own_times(fps: float, positions: list[int]) -> None:
    """Position / rate is when a frame is shown, channels come first, and nothing is resampled."""
    processor = Processor()
    make_parts(processor, _jobs(3, times_s=[0.0, 0.52, 1.7], fps=fps))
    [call] = processor.calls
    [metadata] = call["video_metadata"]
    assert metadata["frames_indices"] == positions
    assert (metadata["fps"], metadata["total_num_frames"]) == (fps or 1.0, 99)
    assert tuple(call["videos"][0].shape) == (3, 3, 4, 6)
    assert call["do_sample_frames"] is False


@pytest.mark.parametrize(("frame_pixels", "shortest"), [(100, 100), (999, 256)])
def test_a_frame_s_area_is_bounded_from_both_sides(frame_pixels: int, shortest: int) -> None:
    """The smallest area never exceeds the largest, which the processor would refuse."""
    processor = Processor()
    make_parts(processor, _jobs(1), frame_pixels=frame_pixels)
    assert processor.calls[0]["size"] == {
        "shortest_edge": shortest, "longest_edge": frame_pixels
    }  # fmt: skip
