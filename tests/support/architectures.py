"""Captions by every architecture of the zoo, compared with those that its documentation gives.

``python tests/support/architectures.py`` writes the table of docs/architectures.md; a test holds
both together.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import av
import numpy as np
import torch
import transformers
from lmms_eval.api.instance import Instance
from PIL import Image

from architecture_table import table, with_table
from caption_requests import results_of
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.hf.sharing import MOST_TOGETHER, PrefixSharing
from lmms_eval_captions.model_wrappers.video.frames import read_frames
from zoo import ARCHITECTURES
from zoo.recipes import Shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval.api.instance import GenerationResult

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "architectures.md"
N_FRAMES: Final = 5
MAX_NEW_TOKENS: Final = 10
PROMPTS: Final = {"short": "Describe.", "long": "Describe the camera, then the background."}
_CLIPS: Final = ((3, (64, 48)), (24, (64, 48)), (9, (48, 96)), (1, (32, 32)))
"""Frames, width and height."""
_PICTURE: Final = (40, 56)
"""Height and width."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption, and the tokens that it took."""

    text: str
    n_input: int | None
    n_output: int | None


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    alone: list[Caption]
    """One at a time."""
    together: list[Caption]
    """By three at a time."""
    shared: list[Caption]
    """A clip's prompts at once, where the model can share what it makes of the clip."""
    is_shared: bool
    documented: list[str]
    picture: Caption
    documented_picture: str


def write_clips(folder: Path) -> list[Path]:
    """Clips of several lengths and shapes, one of them of a single frame."""
    return [
        _write_clip(folder / f"{index}.mp4", n_frames, size)
        for index, (n_frames, size) in enumerate(_CLIPS)
    ]


def _write_clip(path: Path, n_frames: int, size: tuple[int, int]) -> Path:
    """Squares of any colour: what a model makes of two such clips is not alike."""
    width, height = size
    colours = np.random.default_rng(n_frames).integers(
        0, 256, (n_frames, height // 8, width // 8, 3), np.uint8
    )
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=12)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for picture in colours.repeat(8, axis=1).repeat(8, axis=2):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def try_architecture(name: str, folder: Path, clips: Sequence[Path]) -> Trial:
    """Caption clips and a picture with a checkpoint written into a folder."""
    architecture = ARCHITECTURES[name]
    architecture.write(folder)
    arguments: dict[str, Any] = {"max_num_frames": N_FRAMES, **architecture.arguments}
    model = CaptionHf(
        pretrained=str(folder), device="cpu", share_prefix=False, reuse=False, **arguments
    )
    documented = architecture.documented(folder)
    alone = _captions(model, clips)
    picture = Image.fromarray(_noise(_PICTURE))
    _, prompt = PROMPTS.values()
    of_picture = _picture_caption(model, picture, prompt)
    together = _captions(_set(model, batch_size=3, is_sharing=False), clips)
    shared = _captions(_set(model, batch_size=3, is_sharing=True), clips)
    return Trial(
        name,
        alone=alone,
        together=together,
        shared=shared,
        is_shared=model.sharing.is_possible is True,
        documented=[documented(_shown(clip, model), prompt, MAX_NEW_TOKENS) for clip in clips],
        picture=of_picture,
        documented_picture=documented(_shown_picture(picture), prompt, MAX_NEW_TOKENS),
    )


def _set(model: CaptionHf, *, batch_size: int, is_sharing: bool) -> CaptionHf:
    """The same model, called otherwise."""
    model.batch_size = batch_size
    model.prompts_together = MOST_TOGETHER if is_sharing else 1
    model.sharing = PrefixSharing(
        model.model,
        model.processor,
        model.showing,
        batch_size=batch_size,
        is_wanted=is_sharing and not model.is_encoder_decoder,
    )
    return model


def _settings() -> dict[str, object]:
    return {"max_new_tokens": MAX_NEW_TOKENS, "do_sample": False, "until": []}


def _captions(model: CaptionHf, clips: Sequence[Path]) -> list[Caption]:
    return [_caption(result) for result in results_of(model, clips, PROMPTS, _settings())]


def _caption(result: GenerationResult) -> Caption:
    counts = result.token_counts
    if counts is None:
        return Caption(result.text, None, None)
    return Caption(result.text, counts.input_tokens, counts.output_tokens)


def _picture_caption(model: CaptionHf, picture: Image.Image, prompt: str) -> Caption:
    model.task_dict = {"picture": {"test": [{"image": picture}]}}

    def visual(doc: dict[str, Image.Image]) -> list[Image.Image]:
        return [doc["image"]]

    arguments = (prompt, _settings(), visual, 0, "picture", "test")
    metadata = {"task": "picture", "doc_id": 0, "repeats": 1}
    [result] = model.generate_until([Instance("generate_until", arguments, 0, metadata)])
    return _caption(result)


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


def _shown_picture(picture: Image.Image) -> Shown:
    frames = np.asarray(picture)[None]
    return Shown(frames, positions=[0], fps=1.0, n_total=1, duration_s=1.0, is_picture=True)


def _noise(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        clips = write_clips(folder)
        trials = {name: try_architecture(name, folder / name, clips) for name in ARCHITECTURES}
    rows = table(trials)
    PAGE.write_text(with_table(PAGE.read_text(), transformers.__version__, rows))
    print(rows)


if __name__ == "__main__":
    main()
