"""Which examples of a property are tried: the same ones every time, or others."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers


def draw_examples(*, anew: bool) -> None:
    """Set how hypothesis draws in this process, before the first property is read.

    Args:
        anew: Whether each run tries other examples, which finds more; a run that fails then says
            nothing of what was changed last.
    """
    # How fast values are drawn says something of the machine, and nothing of us.
    settings.register_profile(
        "ours", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not anew
    )
    settings.load_profile("ours")
    # It also tries constants of our modules: those that earlier tests have happened to load. No
    # setting says that it shall not; versions that have no such function try none.
    if not anew and hasattr(providers, "_get_local_constants"):
        none = providers._local_constants
        providers._get_local_constants = lambda: none
