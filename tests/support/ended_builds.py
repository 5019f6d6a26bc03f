"""Builds for tests: fast ones that need no decoder, and processes that a signal ends."""

from __future__ import annotations

import base64
import multiprocessing
import os
import signal
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from building_runs import in_this_process
from lmms_eval_captions.construction import models, pipeline
from lmms_eval_captions.construction.media import Frames, Shown, Video
from lmms_eval_captions.judges.endpoint.endpoint import EngineConfig

WAITS = {"backoff_s": 0.01, "max_backoff_s": 0.02, "n_attempts": 2, "outage_patience_s": 0.2}


def name_clips(folder: Path, n: int) -> Path:
    """Files that stand for clips, where :func:`hasten` has no decoder read them."""
    folder.mkdir()
    for number in range(n):
        (folder / f"clip{number}.mp4").write_bytes(b"no clip")
    return folder


def hasten(patch: pytest.MonkeyPatch) -> None:
    """Have clips shown without a decoder, each as a picture of its own, and failures pass soon."""
    patch.setattr(Frames, "_show", _show)
    patch.setattr(models, "FINISH_S", 0.2)
    patch.setattr(models, "EngineConfig", lambda **given: EngineConfig(**{**given, **WAITS}))


def _show(_: Frames, video: Video) -> Shown:
    url = f"data:image/png;base64,{base64.b64encode(video.file.encode()).decode()}"
    part = {"type": "image_url", "image_url": {"url": url}}
    return Shown((part, part), (0.0, 0.5), 1.0, (32, 32))


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a benchmark's folder, those of its stages among them, but for its spending."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.jsonl"))
        if path.name != "spending.jsonl"
    }


def start(number: signal.Signals, before: str | None, *build: Any, **further: Any) -> BaseProcess:
    """Start a process that builds.

    Args:
        number: Signal that it sends itself.
        before: Stage before whose file is written it does; ``None`` for never.
        build: What :func:`.in_this_process` takes.
        further: Its keyword arguments.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with pytest.MonkeyPatch.context() as patch:
        # The server of the processes has no other way to this folder.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        process = context.Process(target=_build_and_end, args=(number, before, build, further))
        process.start()
    return process


def _build_and_end(
    number: signal.Signals, before: str | None, build: tuple[Any, ...], further: dict[str, Any]
) -> None:
    # What it says of its end is nobody's error.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    # A shell has what it starts in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hasten(pytest.MonkeyPatch())
    write = pipeline.write_rows

    def end(path: Path, rows: Any) -> None:
        if path.stem[3:] == before:
            os.kill(os.getpid(), number)
        write(path, rows)

    pipeline.write_rows = end
    in_this_process(*build, **further)
