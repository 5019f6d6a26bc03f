"""What the stages of a build work with."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from lmms_eval_captions.judges.endpoint.request import Ask, Asked, Message, Reply, Request
from lmms_eval_captions.judges.protocols.asking import object_schema, response_format
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Crew, Job
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import Frames, Shown
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.tally import Tally
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import Video
from lmms_eval_captions.lmms_eval_tasks.named_models import Model

R = TypeVar("R")
T = TypeVar("T")

Row = dict[str, Any]
"""A line of a stage's file: a clip, or a question about one. ``dropped`` says why it goes no
further; without, it does."""

_PROTOCOL = 1
"""Version of how replies are read: another one asks anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted(Generic[T]):
    """One request, and how its reply is read."""

    model: Model
    prompt: str
    """Name of the prompt."""
    messages: Sequence[Message]
    read: Callable[[Reply], T | None]
    typical: Callable[[], str]
    """The reply that is typically given, for estimates."""
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int = 256
    keys: Sequence[str] = ()
    """Keys of each item, if the reply is a list of objects."""


@dataclass(slots=True, kw_only=True)
class Work:
    """A build under way."""

    options: Options
    settings: JudgeSettings
    prompts: Prompts
    videos: Sequence[Video]
    frames: Frames
    crew: Crew
    categories: Mapping[str, str]
    """Category of questions to its definition: the paper's, or one's own."""
    is_rehearsal: bool = False
    """Whether nothing is asked, and what would be is counted."""
    rows: dict[str, list[Row]] = field(default_factory=dict)
    """Stage to its rows, those that were dropped too."""
    tally: Tally = field(default_factory=Tally)
    """Of the stage that is run."""
    by_id: dict[str, Video] = field(init=False)
    """The clips by name: one is looked up for every request that shows frames."""

    def __post_init__(self) -> None:
        self.by_id = {video.video_id: video for video in self.videos}

    def ask(self, wanted: Iterable[Wanted[T]], *, n: int, what: str) -> list[Asked[T]]:
        """Put requests, as many at once as may be.

        Args:
            wanted: Made one after the other as there is room for them.
            n: How many there are.
            what: What they do, for whoever waits.

        Returns:
            Their outcomes, in order.
        """
        jobs = (Job(each.model, partial(self._put, each)) for each in wanted)
        return self.run(jobs, n=n, what=what)

    def run(self, jobs: Iterable[Job[R]], *, n: int, what: str) -> list[R]:
        """Run jobs of several requests; see :meth:`.Crew.run`."""
        return self.crew.run(jobs, self.tally, n=n, what=what)

    async def _put(self, wanted: Wanted[T], ask: Ask) -> Asked[T]:
        request = Request(
            protocol=f"{wanted.prompt}:{_PROTOCOL}",
            model=wanted.model.name,
            messages=wanted.messages,
            params={
                "temperature": wanted.temperature,
                "max_tokens": wanted.max_tokens,
                **(_structured(wanted) if self.settings.structured and wanted.keys else {}),
            },
            seed=wanted.seed,
            timeout_s=self.options.timeout_s,
            stand_in=wanted.typical,
        )
        return await ask(request, wanted.read)

    def expect(self, rows: Iterable[Row]) -> None:
        """Say which clips are asked about next, by their rows or those of their questions."""
        self.frames.expect(
            [self.by_id[name] for name in dict.fromkeys(row["video"] for row in rows)]
        )

    def shown(self, row: Row) -> Shown:
        """The frames of a row's clip.

        Raises:
            DataError: If it cannot be read.
        """
        return self.frames.of(self.by_id[row["video"]])

    def drawn(self, row: Row) -> float:
        """A number by which one of several questions is drawn, whoever wrote them, in [0, 1)."""
        return self.rng("drawn", row["id"]).random()

    def rng(self, *about: object) -> random.Random:
        """Random numbers that are the same in every run of a build, and others for all else."""
        return random.Random(":".join(map(str, (self.options.seed, *about))))  # noqa: S311 - no secret # nosec B311


def _structured(wanted: Wanted[Any]) -> dict[str, object]:
    """The parameter for a reply that is an object with a list of items."""
    text = {"type": "string"}
    each = {
        key: {"type": "array", "items": text} if key == "options" else text for key in wanted.keys
    }
    schema = object_schema(items={"type": "array", "items": object_schema(**each)})
    return {"response_format": response_format(wanted.prompt, schema)}


def kept(rows: Iterable[Row]) -> list[Row]:
    """The rows that go on."""
    return [row for row in rows if "dropped" not in row]
