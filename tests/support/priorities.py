"""At what priority tests and what they start are run."""

from __future__ import annotations

import os


def be_scheduled_as_usual() -> None:
    """Run this thread, and all that it starts, as any program is run.

    At a real-time priority a browser that spins on a lock keeps the thread that holds it from ever
    running: two of them stop a machine of two cores.
    """
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
