"""Generation settings, as a task's YAML and ``--gen_kwargs`` give them."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.model_args import Generation


@pytest.mark.parametrize(
    ("kwargs", "wanted"),
    [
        pytest.param({}, Generation(), id="nothing said"),
        pytest.param({"temperature": 0.5}, Generation(do_sample=True, temperature=0.5), id="warm"),
        pytest.param({"temperature": 0.5, "do_sample": False}, Generation(), id="greedy wins"),
        pytest.param({"do_sample": True}, Generation(do_sample=True, temperature=1.0), id="drawn"),
        pytest.param({"max_gen_toks": 7}, Generation(max_new_tokens=7), id="the other name"),
        pytest.param({"until": "x"}, Generation(until=("x",)), id="one stop"),
        pytest.param({"until": ["", "x"]}, Generation(until=("x",)), id="an empty stop is none"),
        pytest.param({"top_p": 0.9, "top_k": 5}, Generation(), id="greedy draws from one"),
    ],
)
def test_generation_settings(kwargs: dict[str, object], wanted: Generation) -> None:
    """Settings of a YAML are read as lmms-eval's own wrappers read them."""
    assert Generation.read(kwargs) == wanted


@pytest.mark.parametrize("kwargs", [{"temperature": "hot"}, {"until": 3}, {"num_beams": True}])
def test_generation_settings_of_the_wrong_kind(kwargs: dict[str, object]) -> None:
    """A value of the wrong kind is named."""
    with pytest.raises(SettingsError, match=next(iter(kwargs))):
        Generation.read(kwargs)


def test_the_first_of_several_stops_ends_a_caption() -> None:
    """It is the first in the text that counts, not the first in the list."""
    assert Generation(until=("##", "\n")).cut("A dog.\nA cat. ## More") == "A dog."
