"""A name for a run that all its processes know: what they save belongs together."""

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
"""Place of a process's start, in clock ticks since boot, behind its name in ``/proc/PID/stat``."""


@dataclass(frozen=True, slots=True)
class RunName:
    """The name of a run, and what this process is in it."""

    name: str
    rank: int = 0
    world_size: int = 1
    is_shared: bool = True
    """Whether all processes of the run have this name."""
    local_rank: int | None = None
    """Which of its node's processes this one is, ``None`` where there is one node."""
    has_nodes: bool = False
    """Whether the run has processes on other nodes, too."""


def run_name(environ: Mapping[str, str] | None = None, *, number: int = 1) -> RunName:
    """The name of the run that this process belongs to.

    Of several processes the first that asks puts the name into the store through which
    torch.distributed met, where the others find it, on whatever node: nobody waits for anybody.
    Without one, processes of one node are named after the launcher that started them. Where that
    cannot be told either, each has a name of its own.

    Args:
        environ: The launcher's variables, by default the process's own.
        number: Which one of the runs of this process it is; all of its processes count alike.
    """
    env = os.environ if environ is None else environ
    rank, world_size = launcher_number(env, "RANK", 0), launcher_number(env, "WORLD_SIZE", 1)
    # Containers that were started together have few process numbers, and the same ones.
    host = slug(socket.gethostname()) or "host"
    own = f"{time.strftime('%Y%m%d-%H%M%S')}-{host}-{os.getpid()}"
    behind = f"-{number}" if number > 1 else ""
    if world_size == 1:
        return RunName(f"{own}{behind}")
    name = _agreed(own) or _launch(env, world_size)
    return RunName(
        f"{name or own}{behind}",
        rank,
        world_size,
        is_shared=name is not None,
        local_rank=launcher_number(env, "LOCAL_RANK", rank),
        has_nodes=launcher_number(env, "LOCAL_WORLD_SIZE", world_size) != world_size,
    )


def launcher_number(env: Mapping[str, str], name: str, default: int) -> int:
    """A launcher's number; captions are saved also where it is none, which others complain of."""
    text = env.get(name, "")
    return int(text) if text.isdecimal() else default


def _agreed(own: str) -> str | None:
    """The name that the run's processes agree on, ``None`` where they have not met."""
    # Whoever has met has imported it: importing it here would take seconds for nothing.
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
    """What is the same for all children of one launcher, ``None`` where there may be several."""
    if env.get("LOCAL_WORLD_SIZE") != str(world_size):
        return None
    launcher = os.getppid()
    try:
        words = Path(f"/proc/{launcher}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The name in parentheses may hold anything, parentheses, too.
    started = words.rpartition(")")[2].split()[_START_FIELD]
    # An elastic launcher starts all processes anew after one has failed: that is another run.
    n_restarts = launcher_number(env, "TORCHELASTIC_RESTART_COUNT", 0)
    behind = f"-restart{n_restarts}" if n_restarts else ""
    return f"{socket.gethostname()}-{launcher}-{started}{behind}"
