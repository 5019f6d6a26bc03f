"""Captions without a neural network: measurements of classical computer vision."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path

from lmms_eval_captions.lmms_eval_tasks.sample.vision import Seen, read_shots
from lmms_eval_captions.lmms_eval_tasks.sample.wording import in_each_shot
from lmms_eval_captions.model_wrappers.caption_jobs import Batch, CaptionJob
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.model_args import Generation, at_least_one
from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

_FOCUS_WORDS = {
    "camera": ("camera",),
    "background": ("background",),
    "objects": ("main object", "main subject", "subject"),
    "short": ("short", "brief", "one sentence", "one-sentence"),
}
"""Subject that a caption begins with, and words in a prompt that ask for it."""


class CaptionBaseline(Captioner):
    """A captioner that needs no GPU and no weights: a floor for real captioners.

    Args:
        n_frames: Frames looked at in each clip, >= 1.
        batch_size: Taken for compatibility; captions are written one by one.
        common: See ``Captioner``. ``device`` has no effect: everything runs on the CPU.

    Raises:
        SettingsError: For an argument that is unknown or cannot be used.
    """

    def __init__(
        self,
        *,
        n_frames: int = 16,
        batch_size: int | str = 1,  # noqa: ARG002 (lmms-eval passes it to every model)
        **common: object,
    ) -> None:
        super().__init__(batch_size=1, **common)  # type: ignore[arg-type] # checked by the base
        self.sampling = Uniform(at_least_one("--model_args: n_frames", n_frames))
        self._shots: dict[Path, list[Seen]] = {}

    def begin(self, planned: Sequence[PlannedCaption]) -> None:  # noqa: ARG002 (of the base's)
        """Forget the clips of an earlier call: the files may have changed."""
        self._shots.clear()

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> list[list[Seen]]:  # noqa: ARG002
        """Measure each job's clip once for all prompts."""
        for job in jobs:
            if job.path not in self._shots:
                self._shots[job.path] = read_shots(job.clip.frames)
        return [self._shots[job.path] for job in jobs]

    def caption(self, batch: Batch) -> list[str]:
        """Describe each job's clip, beginning with the subject of its prompt."""
        if not isinstance(batch.prepared, list):
            raise TypeError(f"expected what prepare returned, got {batch.prepared!r}")
        return [
            describe(shots, focus_of(job.prompt))
            for shots, job in zip(batch.prepared, batch.jobs, strict=True)
        ]


class CaptionBaselineChat(CaptionBaseline):
    """The same captioner behind lmms-eval's chat interface."""

    is_simple = False


def focus_of(prompt: str) -> str:
    """Return the subject that a caption prompt asks for, ``all`` for several or none.

    >>> focus_of("Describe any camera zooms, pans, or angle changes.")
    'camera'
    """
    text = prompt.lower()
    asked = [focus for focus, words in _FOCUS_WORDS.items() if any(word in text for word in words)]
    return asked[0] if len(asked) == 1 else "all"


def describe(shots: Sequence[Seen], focus: str = "all") -> str:
    """Return a caption of one to about ten sentences; what was not measured is not mentioned.

    Args:
        shots: Measurements, at least one.
        focus: Subject that comes first, see :func:`focus_of`; ``short`` leaves out the rest.
    """
    if focus == "short":
        return " ".join([*shots[0]["objects"], *shots[0]["background"][:1]])
    subjects = {
        name: in_each_shot(shots, itemgetter(name))
        for name in ("objects", "background", "camera", "light")
    }
    subjects["camera"] += [*_cuts(shots), *subjects.pop("light")]
    if focus in subjects:
        subjects = {focus: subjects.pop(focus), **subjects}
    return " ".join(chain.from_iterable(subjects.values()))


def _cuts(shots: Sequence[Seen]) -> list[str]:
    if len(shots) == 2:
        return ["There is one cut between two shots."]
    if len(shots) > 2:
        return [f"There are {len(shots) - 1} cuts between {len(shots)} shots."]
    is_moving = shots[0]["camera"] or shots[0]["light"]  # a single frame shows no cut, no movement
    return ["It appears to be one continuous shot without a cut."] if is_moving else []
