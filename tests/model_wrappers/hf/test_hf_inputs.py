"""Inputs of a transformers model: parts of a batch, and the times of frames."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BatchFeature

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob, asked_about
from lmms_eval_captions.model_wrappers.hf.inputs import Showing, make_parts
from lmms_eval_captions.model_wrappers.video.clip import make_clip


class Processor:
    """Remembers what it was asked for; it lays frames in a row, or refuses clips."""

    def __init__(self, *, refuses: bool = False, takes: int = 99) -> None:
        self.video_processor = SimpleNamespace()
        self.refuses = refuses
        self.takes = takes
        self.tokenizer: object = SimpleNamespace(bos_token="<s>", pad_token_id=7)  # noqa: S106 - no password
        self.calls: list[dict[str, Any]] = []

    def apply_chat_template(self, conversation: Any, **_: object) -> str:
        """The start token and the last text."""
        return f"<s>{conversation[-1]['content'][-1]['text']}"

    def __call__(self, **given: Any) -> BatchFeature:
        """As many tokens as a clip has frames, and one number for each frame."""
        if self.refuses or len(given["text"]) > self.takes:
            raise ValueError("expected clips of equal length")
        self.calls.append(given)
        videos = given.get("videos", [])
        ids = [[1] * max(len(video), 1) for video in videos] or [[1]] * len(given["text"])
        n_frames = sum(len(video) for video in videos)
        return BatchFeature(
            {
                "input_ids": torch.tensor(ids),
                "attention_mask": torch.ones_like(torch.tensor(ids)),
                "pixel_values_videos": torch.zeros(n_frames, 2),
            }
        )


def _jobs(*lengths: int, times_s: list[float] | None = None, fps: float = 2.0) -> list[CaptionJob]:
    jobs = []
    for number, n_frames in enumerate(lengths):
        shown = np.asarray(times_s or np.arange(n_frames) / 2, dtype=np.float64)
        frames = np.zeros((n_frames, 4, 6, 3), np.uint8)
        clip = make_clip(frames, shown, fps=fps, n_total=99)
        messages = asked_about(1, f"Prompt {number}.")
        jobs.append(CaptionJob([clip], messages, Path(f"{number}.mp4"), "task", number))
    return jobs


def test_clips_of_one_length_go_through_together() -> None:
    """Every job is in one part, with its own prompt and clip: no shorter clip is filled up."""
    processor = Processor()
    parts = make_parts(processor, _jobs(2, 3, 2), Showing())
    assert [list(part.jobs) for part in parts] == [[0, 2], [1]]
    assert [call["text"] for call in processor.calls] == [
        ["<s>Prompt 0.", "<s>Prompt 2."], ["<s>Prompt 1."]
    ]  # fmt: skip
    assert [[len(video) for video in call["videos"]] for call in processor.calls] == [[2, 2], [3]]


def test_parts_become_one_where_patches_lie_in_a_row() -> None:
    """Texts are filled up in front, and frames follow in the order of the jobs."""
    [part] = make_parts(Processor(), _jobs(2, 3, 2), Showing(is_row=True))
    assert list(part.jobs) == [0, 2, 1]
    assert part.inputs["input_ids"].tolist() == [[7, 1, 1], [7, 1, 1], [1, 1, 1]]
    assert part.inputs["attention_mask"].tolist() == [[0, 1, 1], [0, 1, 1], [1, 1, 1]]
    assert part.inputs["pixel_values_videos"].shape == (7, 2)


def test_text_alone_shows_nothing() -> None:
    """A conversation without a clip is the processor's text and no more."""
    processor = Processor()
    messages = asked_about(0, "Why?")
    make_parts(processor, [CaptionJob([], messages, Path("a"), "task", 0)], Showing())
    assert not processor.calls[0].keys() & {"videos", "images", "video_metadata"}


def test_the_user_s_arguments_reach_the_processor() -> None:
    """They are joined with ours where both speak of one part of it, and win."""
    processor = Processor()
    arguments = {"fps": 3, "videos_kwargs": {"do_rescale": False}}
    make_parts(processor, _jobs(2), Showing(arguments=arguments))
    assert processor.calls[0]["fps"] == 3
    assert processor.calls[0]["videos_kwargs"] == {"do_rescale": False}


def test_a_refusal_names_the_shapes() -> None:
    """A processor that does not take a job alone says which clips it was shown."""
    with pytest.raises(DataError, match=r"\(2, 4, 6\)\]: expected clips of equal length"):
        make_parts(Processor(refuses=True), _jobs(2, 3), Showing())


def test_jobs_that_are_refused_together_go_through_alone() -> None:
    """Pictures of as many frames may be cut into more or fewer tiles, which do not stack."""
    parts = make_parts(Processor(takes=1), _jobs(2, 3, 2), Showing())
    assert [list(part.jobs) for part in parts] == [[0], [2], [1]]


def test_a_second_start_token_is_not_added() -> None:
    """The template has written it already; a tokenizer without one is left to itself."""
    processor = Processor()
    make_parts(processor, _jobs(2), Showing())
    processor.tokenizer = SimpleNamespace(bos_token="")
    make_parts(processor, _jobs(2), Showing())
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
    make_parts(processor, _jobs(3, times_s=[0.0, 0.52, 1.7], fps=fps), Showing())
    [call] = processor.calls
    [metadata] = call["video_metadata"]
    assert metadata["frames_indices"] == positions
    assert (metadata["fps"], metadata["total_num_frames"]) == (fps or 1.0, 99)
    assert tuple(call["videos"][0].shape) == (3, 3, 4, 6)
    assert call["do_sample_frames"] is False
