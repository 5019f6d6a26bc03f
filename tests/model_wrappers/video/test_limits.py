"""What one clip may cost."""

from __future__ import annotations

import pytest

from lmms_eval_captions.model_wrappers.video.limits import DEFAULT_LIMITS, Limits


@pytest.mark.parametrize("value", [0, -1, 1_000_001, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["timeout_s", "memory_gib"])
def test_a_limit_that_cannot_be_held_is_named(name: str, value: float) -> None:
    """Above 0 and at most a million, whichever it is."""
    with pytest.raises(ValueError, match=f"expected {name} above 0"):
        Limits(**{name: value})


def test_the_defaults_are_those_of_the_readme() -> None:
    """300 seconds and 4 GiB."""
    assert (DEFAULT_LIMITS.timeout_s, DEFAULT_LIMITS.memory_gib) == (300, 4)
