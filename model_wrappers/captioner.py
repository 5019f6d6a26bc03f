"""``Captioner``: everything that a video captioner needs except the model itself."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from loguru import logger
from tqdm import tqdm

from lmms_eval_captions.judges.errors import DataError, NoVideosError, SettingsError
from lmms_eval_captions.model_wrappers import captions
from lmms_eval_captions.model_wrappers.base import CaptionModel, read_request
from lmms_eval_captions.model_wrappers.caption_jobs import (
    Answer,
    Batch,
    Caption,
    CaptionJob,
    Shown,
    Source,
)
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS, KeptCaptions, launcher_number
from lmms_eval_captions.model_wrappers.documents import Sources, Takes, read_document
from lmms_eval_captions.model_wrappers.identity import arguments_with_defaults, stamped
from lmms_eval_captions.model_wrappers.model_args import (
    Generation,
    above_zero,
    arguments_of,
    at_least_one,
    refuse_unknown,
    shown_name,
    true_or_false,
)
from lmms_eval_captions.model_wrappers.pipeline import (
    DecodeAhead,
    PlannedCaption,
    make_batches,
    merge_twins,
)
from lmms_eval_captions.model_wrappers.results import SHOWN, Outcome, Results
from lmms_eval_captions.model_wrappers.video.clip import DEFAULT_LIMITS, Clip, Limits
from lmms_eval_captions.model_wrappers.video.decoders import DECODERS
from lmms_eval_captions.model_wrappers.video.frames import VideoReader, read_frames, require_reader
from lmms_eval_captions.model_wrappers.video.pictures import MAX_PIXELS
from lmms_eval_captions.model_wrappers.video.sampling import Sampling, Uniform

if TYPE_CHECKING:
    import torch
    from lmms_eval.api.instance import GenerationResult, Instance
    from typing_extensions import Self


__all__ = ["Batch", "Caption", "CaptionJob", "Captioner"]

_MOST_DECODERS: Final = 8
_UNLIMITED: Final = 1e6
"""Longer times in seconds, and more memory in GiB, are beyond what systems count in."""
_SKIPPED: Final = 1009
"""Random numbers that are skipped for a kept draw."""


class Captioner(CaptionModel):
    """A captioner with a model. A subclass sets ``sampling`` and writes ``caption``.

    In its ``__init__`` it names its own ``--model_args``, passes the rest to ``super().__init__``
    and loads its model onto ``self.device``. The base reads lmms-eval's requests, orders them so
    that a clip's prompts follow each other, decodes each clip once, in background threads and ahead
    of need, batches, counts, keeps captions, reports broken clips (no caption, the run continues),
    and ends captions at ``until``. ``is_simple = False`` in a sub-subclass makes it a chat model.

    Args:
        batch_size: Most jobs of a batch, >= 1 (``--batch_size``).
        device: Where the model runs; under ``accelerate launch`` each process has its own.
        decode_threads: Clips decoded at once, >= 1; by default this process's share of its node's
            CPU cores, at most 8.
        max_pixels: Frames of more pixels are shrunk to that many, keeping their shape.
        video_reader: ``pyav``, whose frames are ffmpeg's, or ``decord``, which the code of some
            benchmarks uses, and nothing else.
        decode_timeout_s: Longest time for reading one clip; it has no caption then.
        decode_memory_gib: Most memory for reading one clip, in GiB; held on Linux.
        reuse: If captions are kept for later runs, and taken from earlier runs of an equal
            captioner (``identity``), of any tasks, ``batch_size`` and processes.
        max_batch_size: Taken for compatibility.
        unknown: Refused.
    """

    sampling: Sampling = Uniform(32)
    """Frames that the model sees; set it on the class or in ``__init__``."""
    without_bearing: ClassVar[frozenset[str]] = frozenset()
    """Arguments of a subclass that affect no caption, next to ``batch_size`` and the like."""
    prompts_together: int = 1
    """Prompts of one clip that come in one batch, even beyond ``batch_size``, for models that
    encode a clip once for all of them."""
    prepare_threads: int = 1
    """Threads in which ``prepare`` may be called at once."""
    takes: ClassVar[Takes] = "videos"
    """Input that ``caption`` is written for, with one prompt: ``videos``, one video; ``one``, one
    video or one picture (``job.clip``); ``all``, one video or any number of pictures
    (``job.clips`` and ``job.content``). Tasks that show anything else are refused by name."""

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Record the arguments: captions are kept for a captioner of equal ones."""
        self: Self = super().__new__(cls)
        self._arguments = arguments_with_defaults(cls, Captioner, args, kwargs)
        return self

    def __init__(  # noqa: PLR0913
        self,
        *,
        batch_size: int | str = 1,
        device: str | None = None,
        decode_threads: int | None = None,
        max_pixels: int = MAX_PIXELS,
        video_reader: VideoReader = "pyav",
        decode_timeout_s: float = DEFAULT_LIMITS.timeout_s,
        decode_memory_gib: float = DEFAULT_LIMITS.memory_gib,
        reuse: bool = True,
        max_batch_size: int | None = None,  # noqa: ARG002 (lmms-eval passes it to every model)
        **unknown: object,
    ) -> None:
        refuse_unknown(
            shown_name(type(self)), known=arguments_of(type(self), Captioner), unknown=unknown
        )
        super().__init__()
        self.batch_size = at_least_one("batch_size", batch_size)
        self.max_pixels = at_least_one("max_pixels", max_pixels)
        self.reuse = true_or_false("reuse", reuse)
        require_reader(video_reader)
        self.video_reader = video_reader
        self.limits = Limits(
            timeout_s=min(above_zero("decode_timeout_s", decode_timeout_s), _UNLIMITED),
            memory_gib=min(above_zero("decode_memory_gib", decode_memory_gib), _UNLIMITED),
        )
        # Each node has its own cores: what counts is how many processes share them.
        n_here = launcher_number(os.environ, "LOCAL_WORLD_SIZE", self.world_size)
        share = min(_MOST_DECODERS, (os.cpu_count() or 1) // max(1, n_here))
        n_decoders = max(1, share) if decode_threads is None else decode_threads
        self.decode_threads = at_least_one("decode_threads", n_decoders)
        DECODERS.n_processes = self.decode_threads
        self._device: torch.device | None = None
        if device and self.world_size == 1:
            import torch

            try:
                self._device = torch.device(device)
            except RuntimeError as error:
                raise SettingsError(
                    f"--device: expected cuda, cuda:1, cpu, mps or the like, got {device!r}"
                ) from error
        self.outcome = Outcome()

    @property
    def device(self) -> torch.device:
        """Device of the model: this process's own accelerator, or ``device=``."""
        return self._device or super().device

    def identity(self) -> Mapping[str, object]:
        """Return everything about the captioner that affects a caption, as a key of kept ones.

        Its arguments with the checkpoints' commits and the content of the files that they name, and
        its frames; not the code of the class. A subclass whose captions depend on more adds it:
        ``{**super().identity(), "weights": ...}``.
        """
        used = {k: v for k, v in self._arguments.items() if k not in self.without_bearing}
        return {
            "class": type(self).__qualname__,
            "arguments": stamped(used),
            "sampling": self.sampling,
        }

    def variant(self, task: str) -> Hashable:  # noqa: ARG002
        """Return what differs for one task from others, e.g. how much of a frame is kept.

        Equal requests share a caption only if it is equal, too. It is called for every request
        before the first caption: the place to refuse a task.
        """
        return None

    def begin(self, planned: Sequence[PlannedCaption]) -> None:
        """Look at the planned captions before the first one: the place to refuse settings."""

    def prepare(self, jobs: Sequence[CaptionJob], generation: Generation) -> object:  # noqa: ARG002
        """Turn frames into inputs, in a background thread, while the model works on other jobs.

        By default nothing is done. Must not touch the accelerator, nor anything that ``caption``
        changes. It returns ``batch.prepared``. After a ``DataError`` the jobs are prepared one by
        one, and those that raise it are left out by name.
        """
        return None

    @abstractmethod
    def caption(self, batch: Batch) -> Sequence[Answer]:
        """Return one caption per job, in order, not stripped; called in the main thread.

        A captioner that asks a server may return futures: the next batches follow at once.
        """

    def cost(self, path: Path) -> float:
        """Return a clip's cost, in any unit; costly clips come first."""
        try:
            return path.stat().st_size
        except OSError:
            return 0

    def generate_until(self, requests: Sequence[Instance]) -> list[GenerationResult]:
        """Return one caption per request, in order, or a ``NoCaption``."""
        import torch

        self.outcome = Outcome()
        kept = self._kept_captions()
        results = Results(self.outcome, kept.keep)
        taken, left = kept.take(merge_twins(self._plan(requests)))
        for asked, caption in taken:
            results.reuse(asked, caption)
            if asked.generation.do_sample:
                # Skip its random numbers, else the next draw would repeat it.
                for device in {torch.device("cpu"), self.device}:
                    torch.rand(_SKIPPED, device=device)
        if taken:
            logger.info(
                "{} of {} captions are taken from earlier runs of this captioner, kept in {}; "
                "--model_args reuse=false writes all of them again",
                len(taken),
                len(taken) + len(left),
                kept.folder,
            )
        self.begin(left)
        self._write(left, results)
        finished = results.finish(len(requests))
        self.outcome.report()
        return finished

    def _write(self, left: Sequence[PlannedCaption], results: Results) -> None:
        """Write the captions that are not kept, batch by batch."""
        outcome = self.outcome
        ahead = DecodeAhead(
            make_batches(left, self.batch_size, self.cost, self.prompts_together),
            decode=self._decode,
            prepare=self.prepare,
            n_threads=self.decode_threads,
            n_preparers=self.prepare_threads,
            # Small batches: enough of them that no decoder is idle.
            n_ahead=max(2, -(-self.decode_threads // self.batch_size) + 1),
        )
        started_s = time.perf_counter()
        # Closed by whatever ends the run, so that its reason is the last line.
        with tqdm(total=len(left), desc="Captions", unit="caption", disable=self.rank != 0) as bar:
            for ready in ahead:
                outcome.wait_s += time.perf_counter() - started_s
                for asked, reason in ready.broken:
                    results.fail(asked, reason)
                if ready.batch is not None:
                    computing_s = time.perf_counter()
                    self._caption(ready.planned, ready.batch, results)
                    outcome.compute_s += time.perf_counter() - computing_s
                bar.update(len(ready.planned) + len(ready.broken))
                bar.set_postfix_str(outcome.shares(), refresh=False)
                started_s = time.perf_counter()

    def _kept_captions(self) -> KeptCaptions:
        """Open this captioner's captions of earlier runs and of this one."""
        if not self.reuse:
            return KeptCaptions(None, "")
        named = Path(str(self._arguments.get("pretrained") or "")).name
        name = "-".join(filter(None, [type(self).__name__, named]))
        return captions.open_kept(name, self.identity())

    def _plan(self, requests: Sequence[Instance]) -> list[PlannedCaption]:
        """Return what can be captioned; a video that cannot be found is reported here."""
        planned: list[PlannedCaption] = []
        lost: list[str] = []
        sources = Sources(self.takes, shown_name(type(self)))
        for position, instance in enumerate(requests):
            request = read_request(instance.args, self.task_dict, is_simple=self.is_simple)
            task, doc_id = request.task, request.doc_id
            generation = Generation.read(request.generation_kwargs)
            variant = self.variant(task)
            try:
                source, prompt = sources.of(request)
            except NoVideosError:
                raise
            except DataError as error:
                lost.append(str(error))
                name, is_quiet = f"document {doc_id} of {task}", len(lost) > SHOWN
                self.outcome.fail(name, (task, doc_id), lost[-1], (position,), is_quiet=is_quiet)
                continue
            identity = RUN_CAPTIONS.identity(task, lambda: request.doc)  # noqa: B023 (called now)
            rows = () if identity is None else ((task, *identity),)
            planned.append(
                PlannedCaption(source, prompt, generation, task, doc_id, (position,), variant, rows)
            )
        # Another process may have found some of its own.
        if len(lost) > 1 and not planned and self.world_size == 1:
            raise NoVideosError(f"none of {len(lost):,} videos was found: {lost[0]}")
        if len(lost) > SHOWN:
            logger.warning("{} of {} videos were not found", len(lost), len(requests))
        return planned

    def _decode(self, source: Source) -> Shown:
        if isinstance(source, Path):
            return Shown([self._read(source)])
        return read_document(source, self.takes, self._read)

    def _read(self, path: Path) -> Clip:
        # One thread per decoder: there are several at once, and the model wants cores too.
        return read_frames(
            path,
            self.sampling,
            max_pixels=self.max_pixels,
            n_threads=1,
            limits=self.limits,
            video_reader=self.video_reader,
        )

    def _answers(self, batch: Batch) -> list[Answer]:
        """Return the captions of a batch, after checking that they are some."""
        returned = self.caption(batch)
        expected = f"{type(self).__name__}.caption: expected"
        if isinstance(returned, str) or not isinstance(returned, Iterable):
            raise SettingsError(
                f"{expected} a list with one caption per job, got {type(returned).__name__}"
            )
        answers, n_jobs = list(returned), len(batch.jobs)
        if len(answers) != n_jobs:
            raise SettingsError(f"{expected} one caption per job, {n_jobs}, got {len(answers)}")
        kinds = {type(a).__name__ for a in answers if not isinstance(a, str | Caption | Future)}
        if kinds:
            raise SettingsError(
                f"{expected} captions as text, Caption or futures of Caption, got {min(kinds)}"
            )
        return answers

    def _caption(self, planned: Sequence[PlannedCaption], batch: Batch, results: Results) -> None:
        """Caption a batch, in halves if the device's memory does not hold it at once."""
        import torch

        try:
            answers = self._answers(batch)
        except torch.OutOfMemoryError as error:
            reason = str(error).splitlines()[0]
        else:
            for asked, answer in zip(planned, answers, strict=True):
                results.take(asked, answer)
            return
        torch.cuda.empty_cache()
        if len(batch.jobs) == 1:
            results.fail(planned[0], reason)
            return
        middle = len(batch.jobs) // 2
        logger.warning(
            "{} captions at once need more memory than there is: trying {}; a smaller "
            "--batch_size saves the detour",
            len(batch.jobs),
            middle,
        )
        for half in (slice(None, middle), slice(middle, None)):
            jobs = batch.jobs[half]
            prepared = self.prepare(jobs, batch.generation)
            self._caption(planned[half], Batch(jobs, batch.generation, prepared), results)
