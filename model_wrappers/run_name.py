"""Name of a run that all its processes know: what they save belongs together."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.store import slug

_KEY: Final = "lmms_eval_captions/run"
_START_FIELD: Final = 19
"""Index of a process's start, in clock ticks since boot, after its name in ``/proc/PID/stat``."""


@dataclass(frozen=True, slots=True)
class RunName:
    """The name of a run, and the role of this process in it."""

    name: str
    rank: int = 0
    world_size: int = 1
    is_shared: bool = True
    """True if all processes of the run have this name."""
    local_rank: int | None = None
    """Number of this process on its node, ``None`` if there is one node."""
    has_nodes: bool = False
    """True if the run has processes on other nodes, too."""

    @property
    def is_first(self) -> bool:
        """True for the process that logs for its node, and for each without a shared name."""
        return not self.is_shared or not (self.rank if self.local_rank is None else self.local_rank)

    def scope(self) -> str:
        """Return a remark for messages if the files may not be all of the run's."""
        if not self.is_shared:
            return (
                f" (those of rank {self.rank} of {self.world_size}: join the paths that the "
                "processes name by a plus sign)"
            )
        if self.has_nodes:
            return (
                " (if the nodes do not share that folder, those of this node's processes: join "
                "the nodes' folders by a plus sign)"
            )
        return ""


def run_name(environ: Mapping[str, str] | None = None, *, number: int = 1) -> RunName:
    """Return the name of the run that this process belongs to.

    The first process that asks puts the name into the store through which torch.distributed met,
    where the others find it, on whatever node. Without one, processes of one node are named after
    their launcher. Otherwise each has a name of its own.

    Args:
        environ: The launcher's variables, by default the process's own.
        number: Number of this run in this process; all of its processes count alike.
    """
    env = os.environ if environ is None else environ
    rank, world_size = launcher_number(env, "RANK", 0), launcher_number(env, "WORLD_SIZE", 1)
    # Containers that were started together have few process numbers, and the same ones.
    host = slug(socket.gethostname()) or "host"
    own = f"{time.strftime('%Y%m%d-%H%M%S')}-{host}-{os.getpid()}"
    suffix = f"-{number}" if number > 1 else ""
    if world_size == 1:
        return RunName(f"{own}{suffix}")
    name = _agreed(own) or _launch(env, world_size)
    return RunName(
        f"{name or own}{suffix}",
        rank,
        world_size,
        is_shared=name is not None,
        local_rank=launcher_number(env, "LOCAL_RANK", rank),
        has_nodes=launcher_number(env, "LOCAL_WORLD_SIZE", world_size) != world_size,
    )


def launcher_number(env: Mapping[str, str], name: str, default: int) -> int:
    """Return a launcher's number, or the default if it is none: others complain of that."""
    text = env.get(name, "")
    return int(text) if text.isdecimal() else default


def _agreed(own: str) -> str | None:
    """Return the name that the run's processes agree on, ``None`` if they have not met."""
    # Importing it takes seconds; processes that have met have done so.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    try:
        store = distributed.distributed_c10d._get_default_store()
        agreed: bytes = store.compare_set(_KEY, "", own)
    except (AttributeError, RuntimeError, ValueError):
        return None
    return agreed.decode("ascii")


def _launch(env: Mapping[str, str], world_size: int) -> str | None:
    """Return a name common to all children of one launcher, ``None`` if there may be several."""
    if env.get("LOCAL_WORLD_SIZE") != str(world_size):
        return None
    launcher = os.getppid()
    try:
        stat = Path(f"/proc/{launcher}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    started = stat.rpartition(")")[2].split()[_START_FIELD]
    # An elastic launcher restarts all processes after one has failed: that is another run.
    n_restarts = launcher_number(env, "TORCHELASTIC_RESTART_COUNT", 0)
    suffix = f"-restart{n_restarts}" if n_restarts else ""
    return f"{socket.gethostname()}-{launcher}-{started}{suffix}"
