"""Architectures of the zoo, made tiny, captioned through ``caption_hf``.

Eight of them, one of each way to show a clip; all with ``WHOLE_ZOO=1``, as every night.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import torch
import transformers

from architecture_table import table, table_of, version_of
from architectures import PAGE, Trial, try_architecture, write_clips
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")

SAMPLE = (
    "gemma3",
    "internvl",
    "llava_onevision",
    "mllama",
    "pixtral",
    "qwen2_5_vl",
    "qwen3_vl",
    "smolvlm",
)
TRIALS: dict[str, Trial] = {}


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


@pytest.fixture(scope="module", params=ARCHITECTURES if os.environ.get("WHOLE_ZOO") else SAMPLE)
def trial(
    request: pytest.FixtureRequest, clips: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Trial:
    name = request.param
    if not hasattr(transformers, ARCHITECTURES[name].model):
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    for package in ARCHITECTURES[name].needs:
        pytest.importorskip(package)
    TRIALS[name] = try_architecture(name, tmp_path_factory.mktemp("zoo") / name, clips)
    return TRIALS[name]


def test_captions_do_not_depend_on_the_batch(trial: Trial) -> None:
    """Greedy captions and counts are those of batches of one, whatever stands beside a clip."""
    assert trial.together == trial.alone


def test_prompts_that_share_a_clip_get_the_same_captions(trial: Trial) -> None:
    assert trial.shared == trial.alone


def test_captions_follow_what_is_shown_and_asked(trial: Trial) -> None:
    """A captioner that sees nothing, or hears nothing, would write one caption for all."""
    texts = [caption.text for caption in trial.alone]
    half = len(texts) // 2
    assert all(texts)
    assert len(set(texts[:half])) > 1
    assert len(set(texts[half:])) > 1
    assert texts[:half] != texts[half:]


def test_captions_are_those_of_the_documented_recipe(trial: Trial) -> None:
    """Token for token what the documentation of transformers has one write."""
    of_long_prompt = trial.alone[len(trial.documented) :]
    assert [caption.text for caption in of_long_prompt] == trial.documented


def test_a_picture_is_shown_as_a_picture(trial: Trial) -> None:
    assert trial.picture.text == trial.documented_picture


def test_the_table_of_the_docs_is_up_to_date() -> None:
    """Each line says what came of an architecture in the tests above."""
    page = PAGE.read_text()
    if transformers.__version__ != version_of(page):
        pytest.skip(f"the table was made with transformers {version_of(page)}")
    if len(TRIALS) != len(ARCHITECTURES):
        pytest.skip("not all architectures were tried in this run")
    assert table(TRIALS) == table_of(page), "run: python tests/support/architectures.py"
