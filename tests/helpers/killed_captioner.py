"""A process that captions and is killed: ``killed_captioner.py NAME RANK WORLD N CHECKPOINTS CLIPS``.

It captions its share of the clips, three prompts each, and is gone as by ``kill -9`` when it was
asked for one caption more than ``N``; what was promised by then has come.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import torch

import vllm_stand_in
from caption_requests import GREEDY, make_requests
from lmms_eval_captions.model_wrappers.caption_auroracap import CaptionAuroraCap
from lmms_eval_captions.model_wrappers.caption_baseline import CaptionBaseline
from lmms_eval_captions.model_wrappers.caption_custom import CaptionCustom
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.caption_jobs import Answer
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai
from lmms_eval_captions.model_wrappers.caption_vllm import CaptionVllm
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner
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
    """Where the checkpoints of ``MAKERS`` are."""
    return {name: folder / name for name in ("hf", "auroracap", "mine.py")}


def ended_after(model: Captioner, n: int, end: Callable[[], None]) -> list[int]:
    """Have something end a captioner's run when it is asked for more captions than so many.

    Returns:
        How many captions it was asked for, batch by batch.
    """
    asked: list[int] = []
    answers: list[Answer] = []
    write = model.caption

    def caption(batch: Batch) -> Sequence[Answer]:
        if sum(asked) + len(batch.jobs) > n:
            wait([answer for answer in answers if isinstance(answer, Future)])
            end()
        asked.append(len(batch.jobs))
        answers.extend(written := write(batch))
        return written

    model.caption = caption  # type: ignore[method-assign] # as a killed process ends
    return asked


def kill() -> None:
    """As ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.modules.update(vllm_stand_in.modules())
    captioner = MAKERS[sys.argv[1]](checkpoints_of(Path(sys.argv[5])))
    ended_after(captioner, int(sys.argv[4]), kill)
    ask(captioner, [Path(name) for name in sys.argv[6:]], int(sys.argv[2]), int(sys.argv[3]))
