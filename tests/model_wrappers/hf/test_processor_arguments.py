"""``processor_kwargs``: read from the command line, known to the processor, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lmms_eval.utils import simple_parse_args_string

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.model_args import mapping_of
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose processor takes a size."""
    return ARCHITECTURES["qwen2_5_vl"].write(tmp_path_factory.mktemp("zoo") / "qwen")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"size": {"longest_edge": 784, "shortest_edge": 784}}',
         {"size": {"longest_edge": 784, "shortest_edge": 784}}),
        ("do_rescale:false", {"do_rescale": False}),
        ("max_patches:4;do_resize:true", {"max_patches": 4, "do_resize": True}),
    ],
)  # fmt: skip
def test_the_command_line_carries_them(text: str, expected: dict[str, object]) -> None:
    """JSON and pairs come through lmms-eval's own reading of ``--model_args``."""
    arguments = simple_parse_args_string(f"pretrained=a,processor_kwargs={text},fps=2")
    assert mapping_of("processor_kwargs", arguments["processor_kwargs"]) == expected
    assert arguments["fps"] == 2


@pytest.mark.parametrize("value", ["{size", "[1]", "size", 3])
def test_what_cannot_be_read_is_named(value: object) -> None:
    """Neither JSON nor pairs."""
    with pytest.raises(SettingsError, match="processor_kwargs: expected"):
        mapping_of("processor_kwargs", value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("longest_side:3", r"does not know \['longest_side'\].*'size'", id="unknown"),
        pytest.param('{"videos_kwargs": {"sizes": 3}}', r"\['sizes'\]", id="unknown of a part"),
        pytest.param("padding:false", r"\['padding'\] are filled in", id="ours"),
        pytest.param('{"size": {"height": 1}}', "refuses a made-up clip", id="a wrong value"),
    ],
)
def test_what_the_processor_would_leave_out_or_refuse_is_an_error(
    qwen: Path, arguments: str, message: str
) -> None:
    """A misspelt argument does not caption with the processor's own."""
    with pytest.raises(SettingsError, match=message):
        CaptionHf(pretrained=str(qwen), device="cpu", processor_kwargs=arguments)


def test_they_move_what_the_model_is_shown(qwen: Path) -> None:
    """A size of the user's is the processor's, and the budget is counted with it."""

    def tokens(**arguments: Any) -> int:
        model = CaptionHf(pretrained=str(qwen), device="cpu", max_num_frames=8, **arguments)
        return model.budget.n_clip

    size = '{"size": {"shortest_edge": 784, "longest_edge": 784}}'
    assert tokens(processor_kwargs=f'{{"videos_kwargs": {size}}}') == 4
    assert tokens(processor_kwargs=size) == 4
    assert tokens() == 16
    with pytest.raises(SettingsError, match="not both"):
        tokens(processor_kwargs=size, frame_pixels=784)
