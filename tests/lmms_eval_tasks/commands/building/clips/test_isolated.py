"""A crash costs the call that it comes of."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.isolated import Isolated


def test_a_crash_is_an_error_and_the_next_call_goes_on() -> None:
    """A process that ends in the middle of a call is replaced."""
    with Isolated() as process:
        with pytest.raises(DataError, match="ended before its time"):
            process.call(os.abort)
        assert process.call(operator.add, 2, 3) == 5
        assert process.call(os.getpid) != os.getpid()


@pytest.mark.skipif(not Path("/proc/self/stat").is_file(), reason="reads /proc")
def test_the_process_ends_with_the_one_that_was_killed() -> None:
    """Nobody would end it else, and it may have a long video before it."""
    code = (
        "import os, sys\n"
        "from lmms_eval_captions.lmms_eval_tasks.commands.building.clips.isolated import Isolated\n"
        "if __name__ == '__main__':\n"
        "    print(Isolated().call(os.getpid), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    until_s = time.monotonic() + 20
    while _is_there(child):
        assert time.monotonic() < until_s
        time.sleep(0.05)


def _is_there(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
