"""What scorers on all nodes have spent, and why one of them stopped."""

from __future__ import annotations

from typing import Any

from lmms_eval_captions.judges.errors import CaptionsError


class Ledger:
    """What was spent and what went wrong, in an actor that outlives scorers which are killed.

    It can be pickled: everyone who holds it asks the same actor, which is on the node of the
    process that made it, without which there is no run either.
    """

    def __init__(self) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        remote: Any = ray.remote(_Entries)
        self._actor: Any = remote.options(num_cpus=0, scheduling_strategy=here).remote()

    def spent_by(self, scorer: str) -> float:
        """What a scorer had spent before it was started again; 0 where this is its first start."""
        import ray

        spent_usd: float = ray.get(self._actor.spent_by.remote(scorer))
        return spent_usd

    def spend(self, scorer: str, spent_usd: float) -> None:
        """Note what a scorer has spent since the run began, over all its starts."""
        import ray

        ray.get(self._actor.spend.remote(scorer, spent_usd))

    def stop(self, error: CaptionsError) -> None:
        """Note why nothing more can be done: the first reason stands."""
        import ray

        ray.get(self._actor.stop.remote(error))

    def error(self) -> CaptionsError | None:
        """Why nothing more can be done, ``None`` where it can."""
        import ray

        error: CaptionsError | None = ray.get(self._actor.error.remote())
        return error

    def spent_usd(self) -> float:
        """What all scorers have spent since the run began."""
        import ray

        spent_usd: float = ray.get(self._actor.spent_usd.remote())
        return spent_usd


class _Entries:
    """The state of a ledger."""

    def __init__(self) -> None:
        self._spent_usd: dict[str, float] = {}
        self._error: CaptionsError | None = None

    def spent_by(self, scorer: str) -> float:
        return self._spent_usd.get(scorer, 0.0)

    def spend(self, scorer: str, spent_usd: float) -> None:
        # Threads of one scorer come in any order.
        self._spent_usd[scorer] = max(spent_usd, self.spent_by(scorer))

    def stop(self, error: CaptionsError) -> None:
        self._error = self._error or error

    def error(self) -> CaptionsError | None:
        return self._error

    def spent_usd(self) -> float:
        return sum(self._spent_usd.values())
