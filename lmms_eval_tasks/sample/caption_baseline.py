"""Captions without a neural network: what classical computer vision can measure, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.sample.baseline.reading import read_scene
from lmms_eval_captions.lmms_eval_tasks.sample.baseline.sentences import describe, focus_of
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lmms_eval_captions.lmms_eval_tasks.sample.baseline.reading import Observations
    from lmms_eval_captions.model_wrappers.caption_jobs import Batch, CaptionJob
    from lmms_eval_captions.model_wrappers.model_args import Generation
    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption


class CaptionBaseline(Captioner):
    """A captioner that needs no GPU and no weights.

    It tries a pipeline from clip to score with captions that depend on the clip, and gives a floor
    that a real captioner should be well above.

    Args:
        n_frames: Frames looked at in each clip, >= 1; below 4 nothing is said about movement that
            happens between them.
        batch_size: Taken for compatibility; captions are written one by one.
        common: ``decode_threads``, ``max_pixels``; see ``Captioner``. ``device`` has no bearing:
            everything runs on the CPU.

    Raises:
        SettingsError: If ``n_frames`` is not a whole number of at least 1, or for an argument that
            is unknown or cannot be used.
    """

    def __init__(
        self,
        *,
        n_frames: int = 16,
        batch_size: int | str = 1,  # noqa: ARG002 (lmms-eval passes it to every model)
        **common: object,
    ) -> None:
        super().__init__(batch_size=1, **common)  # type: ignore[arg-type] # checked by the base
        if not isinstance(n_frames, int) or isinstance(n_frames, bool) or n_frames < 1:
            raise SettingsError(
                f"--model_args: expected n_frames as a whole number of at least 1, got {n_frames!r}"
            )
        self.n_frames = n_frames
        self.sampling = Uniform(n_frames)
        self._seen: dict[Path, Observations] = {}

    def begin(self, planned: Sequence[PlannedCaption]) -> None:  # noqa: ARG002 (of the base's)
        """Forget the clips of an earlier call: other ones may lie there now."""
        self._seen.clear()

    def prepare(
        self,
        jobs: Sequence[CaptionJob],
        generation: Generation,  # noqa: ARG002 (of the base's signature)
    ) -> list[Observations]:
        """Measure each job's clip once for all prompts."""
        for job in jobs:
            if job.path not in self._seen:
                self._seen[job.path] = read_scene(job.clip.frames, job.clip.duration_s)
        return [self._seen[job.path] for job in jobs]

    def caption(self, batch: Batch) -> list[str]:
        """Describe each job's clip, beginning with the subject of its prompt."""
        observed = batch.prepared
        if not isinstance(observed, list):
            raise TypeError(f"expected what prepare returned, got {observed!r}")
        return [
            describe(observations, focus_of(job.prompt))
            for observations, job in zip(observed, batch.jobs, strict=True)
        ]


class CaptionBaselineChat(CaptionBaseline):
    """The same captioner behind lmms-eval's chat interface."""

    is_simple = False
