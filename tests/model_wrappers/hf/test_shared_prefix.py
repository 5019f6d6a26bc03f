"""Prompts about one clip share what the model makes of it, and captions stay the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from caption_requests import results_of
from hostile_clips import write_clip
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_captions_are_the_same(name: str, clips: list[Path], tmp_path: Path) -> None:
    """A clip that is encoded once for its prompts has the captions of one that is read for each."""
    architecture = ARCHITECTURES[name]
    folder = architecture.write(tmp_path / name)

    def results(*, share_prefix: bool, batch_size: int) -> tuple[list[object], bool | None]:
        model = CaptionHf(
            pretrained=str(folder),
            device="cpu",
            dtype="float32",
            max_num_frames=4,
            batch_size=batch_size,
            share_prefix=share_prefix,
            **architecture.arguments,
        )
        written = results_of(model, clips, PROMPTS)
        return [(one.text, one.token_counts) for one in written], model.sharing.is_possible

    alone, _ = results(share_prefix=False, batch_size=1)
    for batch_size in (1, 9):
        shared, is_shared = results(share_prefix=True, batch_size=batch_size)
        assert shared == alone
        assert is_shared
