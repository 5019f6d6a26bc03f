"""Models of a build that answer by a function: no server, no thread, every request kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import av
import numpy as np

from lmms_eval_captions.construction.models import Job, ModelPool, Tally
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.progress import Totals
from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Reply, Request, Usage
from lmms_eval_captions.judges.errors import Failure
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model

R = TypeVar("R")
Answer = Callable[[Request], str | Reply]
"""A reply, its text alone, or the kind of failure; what cannot be read is unreadable."""
FAILURES: tuple[Failure, ...] = ("refused", "unavailable", "silent", "stopped")


class ScriptedPool(ModelPool):
    """See :class:`.ModelPool`.

    Args:
        answer: Answers each request.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.requests: list[Request] = []
        """All that were put, in order."""

    def run(self, jobs: Iterable[Job[R]], tally: Tally, *, n: int, what: str) -> list[R]:
        """Run jobs one after the other."""
        results = asyncio.run(self._all(jobs, tally))
        assert len(results) == n, f"{what}: {n} jobs were announced, {len(results)} came"
        tally.raise_if_stopped(n)
        return results

    async def _all(self, jobs: Iterable[Job[R]], tally: Tally) -> list[R]:
        async def ask(request: Request, read: Callable[[Reply], Any]) -> Asked[Any]:
            self.requests.append(request)
            text = self._answer(request)
            asked = _asked(text, read)
            tally.count(request.model, asked)
            return asked

        scripted: Ask = ask
        return [await job.chain(scripted) for job in jobs]

    @property
    def totals(self) -> Totals:
        """One call for each request."""
        return Totals(calls=len(self.requests))

    def close(self) -> None:
        """Do nothing."""


def _asked(said: str | Reply, read: Callable[[Reply], Any]) -> Asked[Any]:
    usage = Usage(1, 10, 2)
    reply = said if isinstance(said, Reply) else Reply(said, "stop")
    text = reply.text
    for failure in FAILURES:
        if text == failure:
            return Asked(None, "", f"it was {text}", cached=False, usage=usage, failure=failure)
    value = read(reply)
    if value is None:
        return Asked(None, text, "unreadable", cached=False, usage=usage, failure="unreadable")
    return Asked(value, text, None, cached=False, usage=usage)


def model(name: str, url: str = "http://127.0.0.1:1/v1") -> Model:
    """A model behind an address on this machine."""
    return Model(name, Endpoint(urls=(url,)))


def write_clip(path: Path, *, shade: int = 60, n_frames: int = 6) -> None:
    """Write a clip of a moving square, 64 x 64 px, 5 frames a second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=5)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for number in range(n_frames):
            picture = np.full((64, 64, 3), shade, np.uint8)
            picture[20:40, 4 * number : 4 * number + 20] = 255 - shade
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode(None))


def text_of(request: Request) -> str:
    """All words of a request, without its pictures."""
    words: list[str] = []
    for message in request.messages:
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        words += [str(part["text"]) for part in parts if part["type"] == "text"]
    return "\n".join(words)


def n_pictures(request: Request) -> int:
    """Pictures of a request."""
    return sum(
        part["type"] == "image_url"
        for message in request.messages
        if isinstance(content := message["content"], list)
        for part in content
    )
