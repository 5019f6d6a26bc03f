"""Every architecture of the zoo, made tiny, captioned through ``caption_hf``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from architectures import Trial, try_architecture, write_clips
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")

TRIALS: dict[str, Trial] = {}
"""What came of each architecture, for the table."""


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny models are slower in several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of several lengths and shapes."""
    return write_clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="module", params=ARCHITECTURES)
def trial(
    request: pytest.FixtureRequest, clips: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Trial:
    """What comes of one architecture."""
    name = request.param
    TRIALS[name] = try_architecture(name, tmp_path_factory.mktemp("zoo") / name, clips)
    return TRIALS[name]


def test_captions_do_not_depend_on_the_batch(trial: Trial) -> None:
    """Greedy captions and counts are those of batches of one, whatever stands beside a clip."""
    assert trial.alone == trial.together


def test_captions_follow_what_is_shown_and_asked(trial: Trial) -> None:
    """A captioner that sees nothing, or hears nothing, would write one caption for all."""
    sees_one_frame = ARCHITECTURES[trial.name].arguments.get("max_num_frames") == 1
    # All these clips begin alike.
    least = 1 if sees_one_frame else len(trial.alone) // 2
    assert len(set(trial.alone)) > least


def test_captions_are_those_of_the_documented_recipe(trial: Trial) -> None:
    """Token for token what the documentation of transformers has one write."""
    assert [caption.text for caption in trial.alone] == trial.documented
