"""What captions of an endpoint would cost, on the built-in sample."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.captioning import (
    _DO_NOT,
    _MATTER,
    CaptionerArguments,
    estimate_captions,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.model_wrappers import caption_openai
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.model_args import arguments_of

_TASKS = sorted(name for benchmark in all_benchmarks().values() for name in benchmark.tasks)


@pytest.fixture(scope="module")
def sample_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which the sample is generated once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _sample(sample_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(sample_cache))
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", "sample")


def test_arguments_are_those_of_the_captioner() -> None:
    """Names cannot drift apart."""
    own = arguments_of(caption_openai.CaptionOpenai, caption_openai.CaptionOpenai)
    assert own - {"common"} <= {*_MATTER, *_DO_NOT}
    assert {*_MATTER, *_DO_NOT} == arguments_of(caption_openai.CaptionOpenai, Captioner)
    assert inspect.signature(caption_openai.CaptionOpenai).parameters["model"].default == ""


@pytest.mark.parametrize("task", _TASKS)
def test_each_task_is_estimated(task: str) -> None:
    """Every document is one request of so many frames, of all five benchmarks."""
    prices = load_prices()
    few, many = (
        estimate_captions(read_settings(), [task], CaptionerArguments("gpt-4o", n), prices)[0]
        for n in (8, 16)
    )
    assert few.n_captions == many.n_captions
    added = many.input_tokens - few.input_tokens
    assert added == pytest.approx(8 * 765 * few.n_captions)


def test_a_caption_that_two_tasks_share_counts_once() -> None:
    """As it is asked for once."""
    names = ["vidcapbench_ae", "vidcapbench_he"]
    arguments = CaptionerArguments("gpt-4o")
    alone = [estimate_captions(read_settings(), [n], arguments, load_prices())[0] for n in names]
    both = estimate_captions(read_settings(), names, arguments, load_prices())
    assert sum(e.n_captions for e in both) < sum(e.n_captions for e in alone)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("model=gpt-4o", 765, id="four tiles"),
        pytest.param("model=gpt-4o,detail=low", 85, id="low"),
        pytest.param("model=gpt-4o,frame_pixels=200000", 425, id="two tiles"),
        pytest.param("model=gpt-4.1-mini", 934, id="32 by 18 patches"),
        pytest.param("model=some-model", 1500, id="unknown"),
    ],
)
def test_frames_count_as_their_model_counts_pictures(text: str, tokens: int) -> None:
    """By the makers' rule where it is known, else by the most."""
    assert CaptionerArguments.parse(text).frame_tokens(load_prices()) == tokens


def test_the_command_prints_captions_and_judging(capsys: pytest.CaptureFixture[str]) -> None:
    """Both tables, and what the user measured in the place of a rule."""
    arguments = ["--captioner", "model=gpt-4o,max_num_frames=10", "--tokens-per-frame", "100"]
    assert main(["estimate", "--tasks", "vdc_camera", "--judge", "gpt-4o", *arguments]) == 0
    out = capsys.readouterr().out
    assert "10 frames of each clip, 100 tokens per frame (" in out
    assert out.index("captioner") < out.index("judge ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_num_frames=4", "such as model=gpt-4o"),
        ("model=gpt-4o,frames=4", "does not know"),
        ("model=gpt-4o,send=video", "what a video costs"),
        ("model=gpt-4o,max_num_frames=0", "max_num_frames"),
    ],
)
def test_wrong_arguments_are_named(text: str, message: str) -> None:
    """Before any data is read."""
    with pytest.raises(SettingsError, match=message):
        CaptionerArguments.parse(text)


def test_it_takes_every_argument_of_the_captioner() -> None:
    """The ``--model_args`` of a run can be pasted, a JSON object with commas among them."""
    body = '{"top_k": 1, "chat_template_kwargs": {"enable_thinking": false}}'
    parsed = CaptionerArguments.parse(f"model=gpt-4o,extra_body={body},max_num_frames=4,reuse=true")
    assert parsed.n_frames == 4
