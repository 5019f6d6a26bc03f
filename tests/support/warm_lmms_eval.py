"""lmms-eval started from a process that has imported it: a run costs no ten seconds of imports.

The process imports once and then forks a child for every command line that it is handed, over a
Unix socket, with the caller's own files for output. The child has the environment, the folder and
the arguments of its caller, runs what ``lmms-eval-captions run`` starts, or the command itself, and
ends as an interpreter does, ``atexit`` and all. What is read when a library is imported is set
anew in the child. Runs of several processes, and those that show that a plain start works, go
through ``runs.command``.
"""

from __future__ import annotations

import atexit
import copy
import inspect
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_START_S: Final = 300.0
_MOST_BYTES: Final = 1 << 20
Program = str
"""``lmms-eval`` or ``lmms-eval-captions``."""


@dataclass(frozen=True)
class Warm:
    log: str
    """Standard output and error, as they came."""
    returncode: int
    """Negative where a signal ended it."""


class _Starter:
    """The warm process of this process; started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def connect(self) -> socket.socket:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._folder is not None
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(f"{self._folder.name}/socket")
            return connection

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        line = [sys.executable, str(Path(__file__)), f"{self._folder.name}/socket"]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LMMS_", "OPENAI_"))}
        self._process = subprocess.Popen(
            line, env={**env, "HF_HUB_OFFLINE": "1"}, stdout=subprocess.PIPE
        )
        atexit.register(self.stop)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the warm lmms-eval did not start: see the error above")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()


_STARTER: Final = _Starter()


class WarmProcess:
    """A started command line.

    Args:
        arguments: What stands behind the program's name.
        env: Its environment, whole.
        cwd: The folder that it runs in.
        program: Which one.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        program: Program = "lmms-eval",
    ) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has ended
        self._connection = _STARTER.connect()
        wish = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd), "program": program}
        socket.send_fds(
            self._connection, [json.dumps(wish).encode() + b"\n"], [self._output.fileno()]
        )
        self._answers = self._connection.makefile("r")
        self.pid = int(self._answers.readline())

    def wait(self, timeout_s: float) -> Warm:
        """Wait for its end.

        Raises:
            TimeoutError: If it takes longer; it is killed then.
        """
        self._connection.settimeout(timeout_s)
        try:
            returncode = int(self._answers.readline())
        except TimeoutError:
            os.kill(self.pid, signal.SIGKILL)
            raise TimeoutError(f"no end after {timeout_s:g} s: {self.log()[-2000:]}") from None
        log = self.log()
        self._answers.close()
        self._connection.close()
        self._output.close()
        return Warm(log, returncode)

    def log(self) -> str:
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode("utf-8", "replace")


def run_warm(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    program: Program = "lmms-eval",
    timeout_s: float = 900.0,
) -> Warm:
    """Run a command line to its end; see :class:`WarmProcess`."""
    return WarmProcess(arguments, env=env, cwd=cwd, program=program).wait(timeout_s)


def _serve(path: str) -> None:
    """Import, then fork a child for every connection; only a child returns."""
    import lmms_eval.__main__  # noqa: F401
    import transformers  # noqa: F401

    _index_own_tasks_once()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    parent = os.getppid()
    children: dict[int, socket.socket] = {}
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while os.getppid() == parent:
        for _ in selector.select(0.05):
            connection, _address = listener.accept()
            text, (output, *_), _flags, _from = socket.recv_fds(connection, _MOST_BYTES, 1)
            while not text.endswith(b"\n"):
                text += connection.recv(_MOST_BYTES)
            pid = os.fork()
            if pid == 0:
                selector.close()
                listener.close()
                for other in (connection, *children.values()):
                    other.close()
                _become(json.loads(text), output)
                return
            os.close(output)
            children[pid] = connection
            connection.sendall(f"{pid}\n".encode())
        _report_ends(children)
    os._exit(0)


def _index_own_tasks_once() -> None:
    """Read lmms-eval's own 3,000 task files here: each run would spend most of its time on them."""
    from lmms_eval.tasks import TaskManager

    read = TaskManager._get_task_and_group
    own = f"{Path(inspect.getfile(TaskManager)).parent}/"
    manager = TaskManager(include_defaults=False)
    index = read(manager, own)

    def get_task_and_group(self: TaskManager, task_dir: str) -> object:
        return copy.deepcopy(index) if task_dir == own else read(self, task_dir)

    TaskManager._get_task_and_group = get_task_and_group


def _report_ends(children: dict[int, socket.socket]) -> None:
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            connection = children.pop(pid)
            with suppress(OSError):  # nobody waits any more
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            connection.close()


def _become(wish: Mapping[str, Any], output: int) -> None:
    """Take the place of a freshly started interpreter."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(output)
    os.close(null)
    os.environ.clear()
    os.environ.update(wish["env"])
    os.chdir(wish["cwd"])
    sys.argv = [wish["program"], *wish["arguments"]]
    sys.path[0] = wish["cwd"]
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    _as_imported_now()


def _as_imported_now() -> None:
    import datasets.config

    from lmms_eval_captions.lmms_eval_tasks.integration.plugin import print_at_exit

    print_at_exit.cache_clear()
    print_at_exit()

    cache = os.environ.get("HF_DATASETS_CACHE")
    if cache:
        datasets.config.HF_DATASETS_CACHE = Path(cache)
        datasets.config.DOWNLOADED_DATASETS_PATH = Path(cache) / "downloads"
        datasets.config.EXTRACTED_DATASETS_PATH = Path(cache) / "downloads" / "extracted"


def _main() -> None:
    _serve(sys.argv[1])
    if sys.argv[0] == "lmms-eval":
        from lmms_eval_captions.lmms_eval_tasks.integration.launch import main

        main()
    else:
        from lmms_eval_captions.cli.main import main as ours

        sys.exit(ours())


if __name__ == "__main__":
    _main()
