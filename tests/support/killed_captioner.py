"""Every captioner that keeps captions, and processes that caption and are ended by a signal."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch

import vllm_stand_in
from caption_requests import GREEDY, make_requests
from lmms_eval_captions.lmms_eval_tasks.sample.caption_baseline import CaptionBaseline
from lmms_eval_captions.model_wrappers.caption_auroracap import CaptionAuroraCap
from lmms_eval_captions.model_wrappers.caption_custom import CaptionCustom
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.caption_jobs import Answer
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai
from lmms_eval_captions.model_wrappers.caption_vllm import CaptionVllm
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner
from lmms_eval_captions.model_wrappers.captions import KeptCaptions
from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

PROMPTS = {"camera": "How does the camera move?", "short": "In short?", "long": "Tell all of it."}
MINE = """
from lmms_eval_captions.model_wrappers.captioner import Captioner

class Mine(Captioner):
    def caption(self, batch):
        return [f"{job.path.stem}: {job.prompt}" for job in batch.jobs]
"""


def ask(model: Captioner, clips: Sequence[Path], rank: int = 0, world: int = 1) -> list[str]:
    """The captions of one process of several: every so-many-th request is its own."""
    model.task_dict = {task: {"test": [{"video": str(path)} for path in clips]} for task in PROMPTS}
    requests = make_requests(len(clips), PROMPTS, GREEDY, model.is_simple)[rank::world]
    return [result.text for result in model.generate_until(requests)]


class Promising(Captioner):
    """Returns futures, as a captioner that asks someone else does."""

    sampling = Uniform(2)

    def caption(self, batch: Batch) -> Sequence[Answer]:
        """Name and prompt, and tokens."""
        promises: list[Future[Caption]] = [Future() for _ in batch.jobs]
        for promise, job in zip(promises, batch.jobs, strict=True):
            promise.set_result(Caption(f"{job.path.stem}: {job.prompt}", 3, 4))
        return promises


def hf(checkpoints: Mapping[str, Path], **given: Any) -> Captioner:
    """``caption_hf``."""
    return CaptionHf(
        pretrained=str(checkpoints["hf"]), **{"device": "cpu", "max_num_frames": 2, **given}
    )


def vllm(checkpoints: Mapping[str, Path], **given: Any) -> Captioner:
    """``caption_vllm``."""
    return CaptionVllm(pretrained=str(checkpoints["hf"]), device="cpu", max_num_frames=2, **given)


def openai(_: Mapping[str, Path]) -> Captioner:
    """``caption_openai``, its endpoint the one of ``OPENAI_BASE_URL``."""
    return CaptionOpenai(model="seer", device="cpu", max_num_frames=2)


MAKERS: dict[str, Callable[[Mapping[str, Path]], Captioner]] = {
    "caption_hf": hf,
    "caption_auroracap": lambda checkpoints: CaptionAuroraCap(
        pretrained=str(checkpoints["auroracap"]), device="cpu", max_num_frames=2
    ),
    "caption_vllm": vllm,
    "caption_openai": openai,
    "caption_baseline": lambda _: CaptionBaseline(n_frames=4, device="cpu"),
    "caption_custom": lambda checkpoints: CaptionCustom.create_from_arg_string(
        f"class={checkpoints['mine.py']}:Mine,device=cpu"
    ),
    "futures": lambda _: Promising(device="cpu"),
}
"""Every captioner that keeps captions."""


def checkpoints_of(folder: Path) -> Mapping[str, Path]:
    return {name: folder / name for name in ("hf", "auroracap", "mine.py")}


def ended_after(model: Captioner, n: int, end: Callable[[], None]) -> list[int]:
    """Have something end a captioner's run when it is asked for more captions than so many.

    What it has promised by then is kept, as it comes.

    Returns:
        How many captions it was asked for, batch by batch.
    """
    asked: list[int] = []
    kept: set[int] = set()
    open_kept, write = model._kept_captions, model.caption

    def counted() -> KeptCaptions:
        store = open_kept()
        keep = store.keep

        def count(asked: PlannedCaption, caption: Caption, text: str) -> None:
            keep(asked, caption, text)
            # A promised one is kept as it comes, and in its turn.
            kept.add(id(asked))

        store.keep = count  # type: ignore[method-assign] # of this one alone
        return store

    def caption(batch: Batch) -> Sequence[Answer]:
        if sum(asked) + len(batch.jobs) > n:
            until_s = time.monotonic() + 60
            while len(kept) < sum(asked) and time.monotonic() < until_s:
                time.sleep(0.01)
            end()
        asked.append(len(batch.jobs))
        return write(batch)

    model._kept_captions = counted  # type: ignore[method-assign] # to see what is kept
    model.caption = caption  # type: ignore[method-assign] # as a killed process ends
    return asked


def caption_and_die(
    environment: Mapping[str, str],
    name: str,
    number: signal.Signals,
    share: tuple[int, int, int],
    folder: Path,
    clips: Sequence[Path],
) -> None:
    os.environ.update(environment)
    torch.set_num_threads(1)
    sys.modules.update(vllm_stand_in.modules())
    rank, world, n = share
    model = MAKERS[name](checkpoints_of(folder))
    ended_after(model, n, partial(os.kill, os.getpid(), number))
    ask(model, clips, rank, world)


def start(*given: Any) -> BaseProcess:
    """Start a process that does ``caption_and_die``; what all need is imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with pytest.MonkeyPatch.context() as patch:
        # The server of the processes has no other way to this folder.
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        process = context.Process(target=caption_and_die, args=given, daemon=False)
        process.start()
    return process
