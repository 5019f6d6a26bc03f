"""Fixtures that all tests share: a scripted judge, engines that wait little, real data."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest
from loguru import logger

from drawn_examples import draw_examples
from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.model_wrappers import captions
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS, KeptCaptions
from priorities import be_scheduled_as_usual

draw_examples(anew="FULL_SIZE" in os.environ)

SHARED = Path(__file__).resolve().parents[2] / "shared"

ServerFactory = Callable[..., JudgeServer]
EngineFactory = Callable[..., Engine]


def pytest_configure() -> None:
    """Run tests at the usual priority, whatever started them."""
    be_scheduled_as_usual()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what was there before the first test out of the garbage collector's sight.

    The modules and tests are a million objects, which it would go through, most of a second each
    time, wherever lmms-eval, statsmodels or a test has it collect.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs nightly, unless asked for; begin with the longest."""
    unasked = [name for name in ("real", "nightly") if name not in config.option.markexpr]
    left_out = [item for item in items if any(map(item.get_closest_marker, unasked))]
    config.hook.pytest_deselected(items=left_out)
    kept = [item for item in items if item not in left_out]
    items[:] = sorted(kept, key=lambda item: item.path.parent.name not in ("runs", "golden"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, and all golden outputs, but not whole runs.

    They share what takes long to make. xdist's own groups (3.8) do nothing under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = PurePath(nodeid.partition("::")[0])
            if path.parent.name in ("runs", "golden"):
                return nodeid if path.parent.name == "runs" else "golden"
            return str(path)

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard() -> None:
    """A shell has what it starts in the background ignore Ctrl-C, and children inherit that."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _a_run_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test starts a new run."""
    # Other tests make documents of their own for the same tasks.
    monkeypatch.setattr(RUN_CAPTIONS, "_identities", {})
    THIS_RUN.clear()


@pytest.fixture(autouse=True)
def _captions_are_written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captioners of this process write all captions anew, but in tests of keeping them."""
    if request.node.get_closest_marker("keeps_captions") is None:
        monkeypatch.setattr(captions, "open_kept", lambda *_, **__: KeptCaptions(None, ""))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real data; tests that need it skip without."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"no real benchmark data at {folder}")
    return folder


@pytest.fixture
def serve() -> Iterator[ServerFactory]:
    """Starts judge servers that end with the test."""
    running: list[JudgeServer] = []

    def start(**behaviour: Any) -> JudgeServer:
        server = JudgeServer(Behaviour(**behaviour))
        running.append(server.__enter__())
        return server

    yield start
    for server in running:
        server.__exit__()


@pytest.fixture
def make_engine(tmp_path: Path) -> Iterator[EngineFactory]:
    """Makes engines with short waits that are closed with the test."""
    running: list[Engine] = []

    def make(*urls: str, **settings: Any) -> Engine:
        waits: dict[str, Any] = {
            "backoff_s": 0.01,
            "max_backoff_s": 0.05,
            "store_patience_s": 0.3,
            "outage_patience_s": 1.0,
        }
        config = EngineConfig(urls=urls, store=tmp_path / "replies", **{**waits, **settings})
        running.append(Engine(config))
        return running[-1]

    yield make
    for engine in running:
        engine.close()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process that has judged nothing yet, with a cache of its own, whose settings can be set."""
    # lmms-eval replaces all log sinks when it is first imported: not within a test that reads them.
    importlib.import_module("lmms_eval.models.model_utils.usage_metrics")
    SESSION.close()
    THIS_RUN.clear()
    RUN_CAPTIONS.put_into("")  # the captioner of an earlier test had a folder of its own
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    yield monkeypatch
    SESSION.close()
    THIS_RUN.finished.clear()


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """Everything that is logged during the test, one line each."""
    # lmms-eval removes all sinks when it is first imported.
    import lmms_eval.models  # noqa: F401

    lines: list[str] = []
    sink = logger.add(lines.append, format="{level} {message}", level="DEBUG")
    yield lines
    logger.remove(sink)
