"""A process that captions and kills itself: ``killed_captioner.py RANK WORLD N CHECKPOINT CLIPS``.

It captions its share of the clips, about three prompts each, and is gone when it was asked for one
caption more than ``N``, as by ``kill -9``.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from caption_requests import GREEDY, make_requests
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner

PROMPTS = {"camera": "How does the camera move?", "short": "In short?", "long": "Tell all of it."}


def ask(model: Captioner, clips: Sequence[Path], rank: int = 0, world: int = 1) -> list[str]:
    """The captions of one process of several: every so-many-th request is its own."""
    model.task_dict = {task: {"test": [{"video": str(path)} for path in clips]} for task in PROMPTS}
    requests = make_requests(len(clips), PROMPTS, GREEDY, model.is_simple)[rank::world]
    return [result.text for result in model.generate_until(requests)]


class CountedHf(CaptionHf):
    """Counts its captions, and may die of them."""

    n_written = 0
    n_left = 10**9

    def caption(self, batch: Batch) -> list[Caption]:
        """As ``caption_hf`` does, up to the last one."""
        self.n_left -= len(batch.jobs)
        if self.n_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.n_written += len(batch.jobs)
        return super().caption(batch)


def counted_hf(checkpoint: str) -> CountedHf:
    """Writes one caption after the other."""
    return CountedHf(pretrained=checkpoint, device="cpu", max_num_frames=2, share_prefix=False)


if __name__ == "__main__":
    own_rank, n_processes, n_captions = map(int, sys.argv[1:4])
    captioner = CountedHf(
        pretrained=sys.argv[4], device="cpu", max_num_frames=2, share_prefix=False
    )
    captioner.n_left = n_captions
    ask(captioner, [Path(name) for name in sys.argv[5:]], own_rank, n_processes)
