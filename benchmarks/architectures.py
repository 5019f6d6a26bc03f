"""Captions by every architecture of the zoo, compared with those that its documentation gives.

``python benchmarks/architectures.py`` writes the table of docs/architectures.md; a test holds both
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from caption_requests import results_of
from hostile_clips import write_clip
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from zoo import ARCHITECTURES
from zoo.recipes import Shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

N_FRAMES: Final = 5
MAX_NEW_TOKENS: Final = 12
PROMPTS: Final = {"short": "Describe.", "long": "Describe the camera, then the background."}
_CLIPS: Final = ((3, (64, 48)), (24, (64, 48)), (9, (48, 96)), (1, (32, 32)))
"""Frames, width and height."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption, and the tokens that it took."""

    text: str
    n_input: int | None
    n_output: int | None


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one architecture: all captions of one prompt, then of the other."""

    name: str
    alone: list[Caption]
    """One at a time."""
    together: list[Caption]
    """By three at a time."""
    documented: list[str]


def write_clips(folder: Path) -> list[Path]:
    """Clips of several lengths and shapes, one of them of a single frame."""
    return [
        write_clip(folder / f"{index}.mp4", n_frames, size=size)
        for index, (n_frames, size) in enumerate(_CLIPS)
    ]


def try_architecture(name: str, folder: Path, clips: Sequence[Path]) -> Trial:
    """Caption clips with a checkpoint written into a folder."""
    architecture = ARCHITECTURES[name]
    architecture.write(folder)
    model = CaptionHf(
        pretrained=str(folder),
        device="cpu",
        **{"max_num_frames": N_FRAMES, **architecture.arguments},  # type: ignore[arg-type] # --model_args
    )
    alone = _captions(model, clips)
    model.batch_size = 3
    together = _captions(model, clips)
    documented = architecture.documented(folder)
    shown = [_shown(clip, model) for clip in clips]
    return Trial(
        name,
        alone,
        together,
        [documented(clip, prompt, MAX_NEW_TOKENS) for prompt in PROMPTS.values() for clip in shown],
    )


def _captions(model: CaptionHf, clips: Sequence[Path]) -> list[Caption]:
    settings = {"max_new_tokens": MAX_NEW_TOKENS, "do_sample": False, "until": []}
    results = results_of(model, clips, PROMPTS, settings)
    return [
        Caption(result.text, result.token_counts.input_tokens, result.token_counts.output_tokens)
        if result.token_counts is not None
        else Caption(result.text, None, None)
        for result in results
    ]


def _shown(path: Path, model: CaptionHf) -> Shown:
    clip = read_frames(path, model.sampling)
    fps = clip.fps or 1.0
    return Shown(
        frames=clip.frames,
        positions=[round(time_s * fps) for time_s in clip.timestamps_s],
        fps=fps,
        n_total=clip.n_total,
        duration_s=clip.duration_s,
    )
