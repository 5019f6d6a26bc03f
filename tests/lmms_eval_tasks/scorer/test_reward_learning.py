"""TRL's trainer takes the reward as it is, and a tiny policy learns by it."""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="trl is not installed: pip install trl")

from reward_learning import learn

pytestmark = pytest.mark.filterwarnings("ignore:.*")


def test_a_policy_of_random_weights_learns_what_is_in_its_clips(logged: list[str]) -> None:
    """From hardly any of what is asked to most of it, and nothing is missing on the way."""
    learned = learn(seed=0, n_steps=70)
    assert len(learned.rewards) == 70
    assert learned.first < 0.2
    assert learned.last > 0.5
    assert learned.missing == 0.0
    assert not [line for line in logged if line.startswith(("ERROR", "WARNING"))]
