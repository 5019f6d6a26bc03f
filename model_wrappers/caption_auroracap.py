"""AuroraCap as a captioner, from its released checkpoints and transformers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from loguru import logger

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.auroracap.checkpoint import load_auroracap, load_processor
from lmms_eval_captions.model_wrappers.captioner import Batch, Caption, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.hf.loading import (
    DTYPES,
    generation_config,
    n_written,
    positions,
)
from lmms_eval_captions.model_wrappers.model_args import (
    Generation,
    one_of,
    require_folder,
    true_or_false,
)
from lmms_eval_captions.model_wrappers.video.sampling import sampling_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import Source
    from lmms_eval_captions.model_wrappers.pipeline import PlannedCaption

    _Seen = dict[tuple[Source, float], list[list[torch.Tensor]]]
    """Input of the language model by source and kept ratio: clips, and frames of each."""

PAPER: Final = "paper"
"""Value that stands for :data:`PAPER_RATIOS`."""

PAPER_RATIOS: Final = {
    "camera": 0.6,
    "short": 0.5,
    "background": 0.4,
    "main_object": 0.2,
    "detailed": 0.2,
}
"""Kept ratio of each aspect of VDC in AuroraCap-7B's row of table 7.

Source: rese1f/aurora@a40096a, figure_in_paper.ipynb, the points of AuroraCap's (arXiv 2410.03051)
figure 6, of which these have the accuracies that table 7 prints. The paper's text does not name
them. All but the camera's are the best of their curve; the camera's best is 43.57, at 0.8.
"""

DEFAULT_RATIO: Final = 0.1
"""Source: AuroraCap, table G9, "token keep proportion" of the language stage; appendix F, setting
C, "the final training strategy"."""

_TASKS: Final = {
    f"{prefix}{aspect}": ratio
    for prefix in ("vdc_", "vdc_rouge_", "vdc_classic_", "vdc_vdd_")
    for aspect, ratio in PAPER_RATIOS.items()
}


def read_ratio(given: object) -> float | str:
    """Return the share of ``--model_args ratio=...``, in [0, 1], or :data:`PAPER`."""
    if given == PAPER:
        return PAPER
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1:
        return float(given)
    raise SettingsError(
        f"caption_auroracap: expected ratio as a number between 0 and 1, or {PAPER!r}, got "
        f"{given!r}"
    )


def ratio_of(setting: float | str, task: str) -> float:
    """Return the share of visual tokens to keep for a task's captions, in [0, 1].

    >>> ratio_of("paper", "vdc_camera"), ratio_of("paper", "vdc_rouge_detailed")
    (0.6, 0.2)
    >>> ratio_of(0.1, "capquiz")
    0.1
    """
    if not isinstance(setting, str):
        return setting
    if task not in _TASKS:
        raise SettingsError(
            f"caption_auroracap: ratio={setting} has a ratio for {', '.join(_TASKS)} "
            f"alone, got the task {task!r}; run it by itself with a number, such as "
            f"ratio={DEFAULT_RATIO}"
        )
    return _TASKS[task]


class CaptionAuroraCap(Captioner):
    """AuroraCap-7B, or any checkpoint in its layout.

    A clip is looked at once for all captions that are asked of it in a row with one kept ratio. A
    picture is a clip of one frame, of which no token is merged with those of others.

    Arguments are in the table of the README.

    Source:
        AuroraCap (arXiv 2410.03051), section 2.1 and appendix F (8 frames where its speed is
        measured; kept ratio 0.1 in setting C, "the final training strategy"; no slowfast).
    """

    takes = "all"

    def __init__(
        self,
        *,
        pretrained: str = "wchai/AuroraCap-7B-VID-xtuner",
        ratio: float | str = DEFAULT_RATIO,
        max_num_frames: int = 8,
        fps: float | None = None,
        system_prompt: bool = False,
        dtype: str = "auto",
        attn_implementation: str = "sdpa",
        **common: object,
    ) -> None:
        self.ratio = read_ratio(ratio)
        one_of("caption_auroracap: dtype", dtype, DTYPES)
        self.system_prompt = true_or_false("system_prompt", system_prompt)
        require_folder(str(pretrained))
        super().__init__(**common)  # type: ignore[arg-type] # checked by the base
        self.sampling = sampling_of(max_num_frames, fps)
        self.processor = load_processor(pretrained)
        is_slow = dtype == "auto" and self.device.type == "cpu"  # half precision is
        self.model = load_auroracap(
            pretrained,
            device=self.device,
            dtype=torch.float32 if is_slow else getattr(torch, dtype, dtype),
            attn_implementation=attn_implementation,
        )
        self._seen: _Seen = {}
        self._has_overflowed = False

    def identity(self) -> Mapping[str, object]:
        """Return the key of kept captions; ``auto`` is another dtype on a CPU."""
        return {**super().identity(), "dtype": str(self.model.llm.dtype)}

    def variant(self, task: str) -> float:
        """Return the kept ratio of a task's captions, in [0, 1]."""
        return ratio_of(self.ratio, task)

    def begin(self, planned: Sequence[PlannedCaption]) -> None:  # noqa: ARG002
        """Forget what was seen: another call may show other pictures under the same name."""
        self._seen = {}

    def prepare(
        self,
        jobs: Sequence[CaptionJob],
        generation: Generation,  # noqa: ARG002 (of the base's signature)
    ) -> dict[Source, list[torch.Tensor]]:
        """Return the tower's pixels, (n_frames, 3, height, width), by source."""
        return {
            source: [
                self.processor(
                    images=torch.from_numpy(clip.frames).permute(0, 3, 1, 2), return_tensors="pt"
                )["pixel_values"]
                for clip in clips
            ]
            for source, clips in {job.source: job.clips for job in jobs}.items()
        }

    def caption(self, batch: Batch) -> list[Caption]:
        """Return one caption per job."""
        pixels = batch.prepared
        looks = [(job.source, self.variant(job.task)) for job in batch.jobs]
        # The clips of this batch alone are kept: the next one may go on with the last of them.
        self._seen = {
            look: self._seen[look]
            if look in self._seen
            else [self.model.see(clip, kept_ratio=look[1]) for clip in pixels[look[0]]]
            for look in dict.fromkeys(looks)
        }
        inputs = [
            self.model.embed(job.content, self._seen[look], system_prompt=self.system_prompt)
            for job, look in zip(batch.jobs, looks, strict=True)
        ]
        n_read, n_new = max(map(len, inputs)), batch.generation.max_new_tokens
        n_positions = positions(self.model.llm.config)
        if n_positions is not None and n_read + n_new > n_positions and not self._has_overflowed:
            # Rotary positions continue beyond those that it was trained with.
            self._has_overflowed = True
            logger.warning(
                "a clip and its prompt are {:,} tokens and captions may have {:,}, the model was "
                "made for {:,} positions: it is run all the same, as in the paper; a smaller "
                "ratio or max_num_frames stays within them",
                n_read,
                n_new,
                n_positions,
            )
        tokenizer = self.model.tokenizer
        settings = generation_config(self.model.llm.generation_config, tokenizer, batch.generation)
        written = self.model.generate(inputs, generation_config=settings)
        n_outputs = n_written(written, settings)
        return [
            Caption(tokenizer.decode(ids[:n], skip_special_tokens=True), len(given), n)
            for given, ids, n in zip(inputs, written.tolist(), n_outputs, strict=True)
        ]


class CaptionAuroraCapChat(CaptionAuroraCap):
    """The same captioner behind lmms-eval's chat interface."""

    is_simple = False
