"""``Captioner``: everything that a video captioner needs but the model itself."""

from __future__ import annotations

import inspect
import os
import time
from abc import abstractmethod
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch
from lmms_eval.api.instance import GenerationResult, TokenCounts
from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.errors import CaptionsError, DataError, SettingsError
from lmms_eval_captions.judges.surrogates import whole
from lmms_eval_captions.model_wrappers.base import CaptionModel, refuse_unknown
from lmms_eval_captions.model_wrappers.generation import Generation
from lmms_eval_captions.model_wrappers.ordering import (
    Planned,
    make_batches,
    merge_twins,
    size_bytes,
)
from lmms_eval_captions.model_wrappers.outcome import Outcome
from lmms_eval_captions.model_wrappers.video.decode_ahead import DecodeAhead, Decoded
from lmms_eval_captions.model_wrappers.video.frames import (
    DEFAULT_LIMITS,
    MAX_PIXELS,
    Clip,
    read_frames,
)
from lmms_eval_captions.model_wrappers.video.limits import Limits
from lmms_eval_captions.model_wrappers.video.sampling import Sampling, Uniform

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence
    from pathlib import Path

    from lmms_eval.api.instance import Instance

_MOST_DECODERS: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class CaptionJob:
    """One caption to write: the frames of a clip, and what is asked about them."""

    clip: Clip
    """``clip.frames`` is (n, height, width, 3), uint8, RGB; jobs on one clip share it."""
    prompt: str
    path: Path
    """The clip's file."""
    task: str
    doc_id: int


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What a captioner is handed: at most ``batch_size`` jobs with one set of settings."""

    jobs: Sequence[CaptionJob]
    """At least one."""
    generation: Generation
    """``max_new_tokens``, ``do_sample``, ... of the task's YAML or of ``--gen_kwargs``."""
    prepared: object = None
    """What ``prepare`` returned for these jobs."""


@dataclass(frozen=True, slots=True)
class Caption:
    """A caption and what it cost; a captioner that does not count tokens returns plain text."""

    text: str
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A batch whose clips are decoded, and what of it cannot be captioned."""

    planned: Sequence[Planned]
    """One a job of the batch."""
    batch: Batch | None
    """``None`` where nothing of it can be captioned."""
    broken: Sequence[tuple[Planned, str]]


class Captioner(CaptionModel):
    """A captioner with a model. A subclass sets ``sampling`` and writes ``caption``.

    In its ``__init__`` it names its own ``--model_args``, passes the rest to ``super().__init__``
    and loads its model onto ``self.device``. The base does the rest: it reads lmms-eval's
    requests, orders them so that a clip's prompts follow each other, decodes each clip once, in
    background threads and ahead of need, batches, counts, reports broken clips (no caption, the
    run goes on), stops captions at ``until``, and says how long the model waited for frames.
    ``is_simple = False`` in a sub-subclass makes it a chat model without further change.

    Args:
        batch_size: Most jobs a batch, >= 1 (``--batch_size``).
        device: Where the model runs; under ``accelerate launch`` each process has its own.
        decode_threads: Clips decoded at once, >= 1; by default this process's share of the CPU
            cores, at most 8.
        max_pixels: Frames of more pixels are shrunk to that many, in shape.
        decode_timeout_s: Longest time for reading one clip; it has no caption then.
        decode_memory_gib: Most memory for reading one clip, in GiB; held on Linux.
        max_batch_size: Taken for compatibility.
        unknown: Refused.

    Raises:
        SettingsError: If an argument is unknown or cannot be used.
    """

    sampling: Sampling = Uniform(32)
    """Frames that the model looks at; set it on the class or in ``__init__``."""

    def __init__(
        self,
        *,
        batch_size: int | str = 1,
        device: str | None = None,
        decode_threads: int | None = None,
        max_pixels: int = MAX_PIXELS,
        decode_timeout_s: float = DEFAULT_LIMITS.timeout_s,
        decode_memory_gib: float = DEFAULT_LIMITS.memory_gib,
        max_batch_size: int | None = None,  # noqa: ARG002 (lmms-eval passes it to every model)
        **unknown: object,
    ) -> None:
        refuse_unknown(type(self).__name__, known=_arguments(type(self)), unknown=unknown)
        super().__init__()
        self.batch_size = _whole("batch_size", batch_size)
        self.max_pixels = _whole("max_pixels", max_pixels)
        try:
            self.limits = Limits(timeout_s=decode_timeout_s, memory_gib=decode_memory_gib)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"--model_args, decoding: {error}") from error
        share = (os.cpu_count() or 1) // self.world_size
        self.decode_threads = (
            max(1, min(_MOST_DECODERS, share))
            if decode_threads is None
            else _whole("decode_threads", decode_threads)
        )
        self._device = torch.device(device) if device and self.world_size == 1 else None
        self.outcome = Outcome()

    @property
    def device(self) -> torch.device:
        """Where the model runs: this process's own accelerator, or what ``device=`` says."""
        return self._device or self.accelerator.device

    def variant(self, task: str) -> Hashable:  # noqa: ARG002
        """What is done otherwise for one task than for others, e.g. how much of a frame is kept.

        By default nothing. Requests that are alike share a caption only where it is equal, too. It
        is asked about every request before the first caption: the place to refuse a task.
        """
        return None

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> object:  # noqa: ARG002
        """Turn frames into inputs, in a background thread, while the model works on other jobs.

        By default nothing is done. Must not touch the accelerator, nor anything that ``caption``
        changes. What it returns is ``batch.prepared``. A ``DataError`` means that one of the jobs
        cannot be used: they are then prepared one by one, and the culprit is left out by name.
        """
        return None

    @abstractmethod
    def caption(self, batch: Batch) -> Sequence[str | Caption | Future[Caption]]:
        """One caption a job, in order, unchanged by any stripping; called in the main thread.

        A captioner that asks someone else may return futures: the next batches follow at once.
        """

    def cost(self, path: Path) -> float:
        """What a clip costs, in any unit; costly clips come first."""
        return size_bytes(path)

    def generate_until(self, requests: Sequence[Instance]) -> list[GenerationResult]:
        """One caption a request, in the order of the requests, or a ``NoCaption``."""
        self.outcome = outcome = Outcome()
        results: dict[int, GenerationResult | Future[Caption]] = {}
        planned = merge_twins(self._plan(requests))
        batches = make_batches(planned, self.batch_size, self.cost)
        ahead = DecodeAhead(
            batches,
            decode=self._decode,
            prepare=self._ready,
            n_threads=self.decode_threads,
            # Small batches: enough of them that no decoder is idle.
            n_ahead=max(2, -(-self.decode_threads // self.batch_size) + 1),
        )
        bar = tqdm(total=len(planned), desc="Captions", unit="caption", disable=self.rank != 0)
        started_s = time.perf_counter()
        for ready in ahead:
            outcome.wait_s += time.perf_counter() - started_s
            for one, reason in ready.broken:
                outcome.fail(one.path.name, one.task, one.doc_id, reason, one.positions)
            if ready.batch is not None:
                computing_s = time.perf_counter()
                captions = self._caption(ready.planned, ready.batch)
                outcome.compute_s += time.perf_counter() - computing_s
                for one, caption in zip(ready.planned, captions, strict=True):
                    self._keep(results, one, caption, ready.batch.generation)
            bar.update(len(ready.planned) + len(ready.broken))
            bar.set_postfix_str(outcome.shares(), refresh=False)
            started_s = time.perf_counter()
        finished = self._finish(planned, results)
        bar.close()
        outcome.report()
        # No token in and none out: how a log without verdicts shows that there is no caption.
        nothing = TokenCounts(input_tokens=0, output_tokens=0)
        return [
            finished.get(position) or GenerationResult(outcome.no_caption(position), nothing)
            for position in range(len(requests))
        ]

    def _plan(self, requests: Sequence[Instance]) -> list[Planned]:
        """What can be captioned; a video that cannot be found is reported here.

        Raises:
            SettingsError: If the captioner's arguments do not fit a task.
        """
        planned = []
        for position, instance in enumerate(requests):
            asked = self.read_request(instance.args)
            generation = Generation.read(asked.generation_kwargs)
            variant = self.variant(asked.task)
            try:
                path = asked.video_path()
            except DataError as error:
                name = f"document {asked.doc_id} of {asked.task}"
                self.outcome.fail(name, asked.task, asked.doc_id, str(error), (position,))
                continue
            task, doc_id = asked.task, asked.doc_id
            planned.append(
                Planned(path, asked.prompt, generation, task, doc_id, (position,), variant)
            )
        return planned

    def _decode(self, path: Path) -> Clip:
        # One thread a decoder: there are several at once, and the model wants cores too.
        return read_frames(
            path, self.sampling, max_pixels=self.max_pixels, n_threads=1, limits=self.limits
        )

    def _ready(self, planned: Sequence[Planned], clips: Decoded) -> _Ready:
        """Jobs of the clips that could be read, prepared; in a background thread."""
        jobs: list[tuple[Planned, CaptionJob]] = []
        broken: list[tuple[Planned, str]] = []
        for one in planned:
            clip = clips[one.path]
            if isinstance(clip, str):
                broken.append((one, clip))
            else:
                jobs.append((one, CaptionJob(clip, one.prompt, one.path, one.task, one.doc_id)))
        if not jobs:
            return _Ready((), None, broken)
        generation = planned[0].generation
        try:
            prepared = self.prepare([job for _, job in jobs], generation)
        except DataError as error:
            if len(jobs) == 1:
                return _Ready((), None, [*broken, (jobs[0][0], str(error))])
            usable, reasons = self._one_by_one(jobs, generation)
            broken += reasons
            if not usable:
                return _Ready((), None, broken)
            jobs = usable
            prepared = self.prepare([job for _, job in jobs], generation)
        batch = Batch([job for _, job in jobs], generation, prepared)
        return _Ready([one for one, _ in jobs], batch, broken)

    def _one_by_one(
        self, jobs: Sequence[tuple[Planned, CaptionJob]], generation: Generation
    ) -> tuple[list[tuple[Planned, CaptionJob]], list[tuple[Planned, str]]]:
        usable, broken = [], []
        for one, job in jobs:
            try:
                self.prepare([job], generation)
            except DataError as error:
                broken.append((one, str(error)))
            else:
                usable.append((one, job))
        return usable, broken

    def _caption(
        self, planned: Sequence[Planned], batch: Batch
    ) -> list[str | Caption | Future[Caption] | None]:
        """Captions of a batch, in halves where the device's memory does not hold it at once."""
        try:
            captions: list[str | Caption | Future[Caption] | None] = list(self.caption(batch))
        except torch.OutOfMemoryError as error:
            words = str(error).splitlines()[0]
        else:
            if len(captions) != len(batch.jobs):
                raise SettingsError(
                    f"{type(self).__name__}.caption: expected one caption a job, "
                    f"{len(batch.jobs)}, got {len(captions)}"
                )
            return captions
        torch.cuda.empty_cache()
        if len(batch.jobs) == 1:
            one = planned[0]
            self.outcome.fail(one.path.name, one.task, one.doc_id, words, one.positions)
            return [None]
        middle = len(batch.jobs) // 2
        logger.warning(
            "{} captions at once need more memory than there is: trying {}; a smaller "
            "--batch_size saves the detour",
            len(batch.jobs),
            middle,
        )
        halves: list[str | Caption | Future[Caption] | None] = []
        for part in (slice(None, middle), slice(middle, None)):
            jobs = batch.jobs[part]
            prepared = self.prepare(jobs, batch.generation)
            halves += self._caption(planned[part], Batch(jobs, batch.generation, prepared))
        return halves

    def _keep(
        self,
        results: dict[int, GenerationResult | Future[Caption]],
        one: Planned,
        caption: str | Caption | Future[Caption] | None,
        generation: Generation,
    ) -> None:
        if caption is None:
            return
        kept = caption if isinstance(caption, Future) else _result(caption, generation)
        results.update(dict.fromkeys(one.positions, kept))

    def _finish(
        self,
        planned: Sequence[Planned],
        results: dict[int, GenerationResult | Future[Caption]],
    ) -> dict[int, GenerationResult]:
        """Wait for the captions that are still under way, and count them all."""
        finished: dict[int, GenerationResult] = {}
        waiting_s = time.perf_counter()
        for one in planned:
            kept = results.get(one.positions[0])
            if isinstance(kept, Future):
                try:
                    kept = _result(kept.result(), one.generation)
                except CaptionsError as error:
                    self.outcome.fail(
                        one.path.name, one.task, one.doc_id, str(error), one.positions
                    )
                    continue
            if kept is not None:
                self.outcome.n_captions += 1
                finished.update(dict.fromkeys(one.positions, kept))
        self.outcome.compute_s += time.perf_counter() - waiting_s
        return finished


def _result(caption: str | Caption, generation: Generation) -> GenerationResult:
    one = Caption(caption) if isinstance(caption, str) else caption
    counts = TokenCounts(input_tokens=one.n_input_tokens, output_tokens=one.n_output_tokens)
    return GenerationResult(generation.cut(whole(one.text)), counts)


def _whole(name: str, value: object) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(text)


def _arguments(model: type) -> set[str]:
    """Names that a captioner's ``__init__`` takes, its bases' included."""
    inits = (vars(cls).get("__init__") for cls in model.__mro__ if issubclass(cls, Captioner))
    parameters = [p for init in inits if init for p in inspect.signature(init).parameters.values()]
    return {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)} - {
        "self"
    }
