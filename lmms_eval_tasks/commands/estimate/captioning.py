"""What captions of an endpoint would take, by the arguments of the model ``caption_openai``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.cost import Prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN
from lmms_eval_captions.judges.errors import CaptionsError, SettingsError
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.request_counter import (
    TOKENS_A_MESSAGE,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table
from lmms_eval_captions.model_wrappers.chat_api import FRAME_PIXELS, MAX_NUM_FRAMES
from lmms_eval_captions.model_wrappers.model_args import (
    at_least_one,
    parse_model_args,
    refuse_unknown,
)
from lmms_eval_captions.model_wrappers.video.pictures import shrunk

_MATTER: Final = ("model", "max_num_frames", "frame_pixels", "detail", "system_prompt")
_DO_NOT: Final = (
    "alias", "api_key_env", "base_url", "batch_size", "concurrency", "decode_memory_gib",
    "decode_threads", "decode_timeout_s", "device", "extra_body", "fps", "image_pixels",
    "max_batch_size", "max_cost", "max_pixels", "max_tokens_field", "reuse", "send", "store_by",
    "timeout_s", "video_reader",
)  # fmt: skip
_FULL_HD: Final = (1920, 1080)
_HEADER: Final = ("task", "captioner", "captions", "input tokens", "output tokens", "cost")


@dataclass(frozen=True, slots=True)
class CaptionerArguments:
    """What ``--model_args`` says to ``caption_openai``, as far as it moves the cost."""

    model: str
    n_frames: int = MAX_NUM_FRAMES
    frame_pixels: int = FRAME_PIXELS
    detail: str | None = None
    system_prompt: str = ""

    @classmethod
    def parse(cls, text: str) -> CaptionerArguments:
        """The arguments in a text.

        Raises:
            SettingsError: If one is unknown or cannot be used, or ``model`` is missing.

        >>> CaptionerArguments.parse("model=gpt-4o,max_num_frames=16").n_frames
        16
        """
        given = parse_model_args(text)
        known = (*_MATTER, *_DO_NOT)
        refuse_unknown("caption_openai", known=known, unknown=set(given) - set(known))
        if not given.get("model"):
            raise SettingsError(
                "--captioner: expected the --model_args of caption_openai, such as "
                f"model=gpt-4o,max_num_frames=16, got {text!r}"
            )
        if given.get("send") == "video":
            raise SettingsError(
                "--captioner: what a video costs is known to its server alone; send=frames can be "
                "estimated"
            )
        return cls(
            str(given["model"]),
            at_least_one("max_num_frames", given.get("max_num_frames", MAX_NUM_FRAMES)),
            at_least_one("frame_pixels", given.get("frame_pixels", FRAME_PIXELS)),
            None if given.get("detail") is None else str(given["detail"]),
            str(given.get("system_prompt", "")),
        )

    def frame_tokens(self, prices: Prices) -> int:
        """Input tokens of a frame of a clip in full HD."""
        size = shrunk(*_FULL_HD, self.frame_pixels)
        price = prices.price(self.model)
        return _UNKNOWN_TOKENS if price is None else price.picture_tokens(*size, self.detail)


_UNKNOWN_TOKENS: Final = 1500
"""Of a frame where nothing is known of the model."""


@dataclass(slots=True)
class CaptioningEstimate:
    """What the captions of one task take."""

    task: str
    n_captions: int = 0
    input_tokens: float = 0.0
    output_tokens: float = 0.0


def estimate_captions(
    settings: Settings,
    tasks: Sequence[str],
    captioner: CaptionerArguments,
    prices: Prices,
    *,
    frame_tokens: int | None = None,
) -> list[CaptioningEstimate]:
    """Count what captioning these tasks would ask; tasks that cannot be read are left out.

    Captions of the same clip with the same prompt are written once, whichever tasks ask for them.

    Args:
        settings: The run's: where data and prompts are.
        tasks: Names of tasks.
        captioner: Who writes.
        prices: What pictures take, by model.
        frame_tokens: Input tokens of a frame, where the user knows.
    """
    per_frame = captioner.frame_tokens(prices) if frame_tokens is None else frame_tokens
    seen: set[tuple[str, str, str]] = set()
    estimates = []
    for name in tasks:
        benchmark = benchmark_of_task(name)
        task = benchmark.tasks[name]
        counts = CaptioningEstimate(name)
        try:
            docs = benchmark.read(settings, task)
        except CaptionsError:
            continue  # said where judging is estimated
        to_text = hooks_of(benchmark).doc_to_text
        for doc in docs:
            prompt = to_text(doc)
            key = (benchmark.name, benchmark.video_names(doc)[-1], prompt)
            if key in seen:
                continue
            seen.add(key)
            n_chars = len(prompt) + len(captioner.system_prompt)
            counts.n_captions += 1
            counts.input_tokens += (
                captioner.n_frames * per_frame
                + n_chars / CHARS_PER_TOKEN
                + TOKENS_A_MESSAGE * (2 if captioner.system_prompt else 1)
            )
            counts.output_tokens += task.caption_chars / CHARS_PER_TOKEN
        estimates.append(counts)
    return estimates


def captioning_table(
    estimates: Sequence[CaptioningEstimate],
    captioner: CaptionerArguments,
    prices: Prices,
    *,
    frame_tokens: int | None = None,
) -> list[str]:
    """The lines of the estimate: a row for each task, their sum, and what was assumed."""
    rows = [_row(counts, captioner, prices) for counts in estimates]
    if len(rows) > 1:
        whole = CaptioningEstimate(
            "all",
            sum(counts.n_captions for counts in estimates),
            sum(counts.input_tokens for counts in estimates),
            sum(counts.output_tokens for counts in estimates),
        )
        rows.append(_row(whole, captioner, prices))
    per_frame = captioner.frame_tokens(prices) if frame_tokens is None else frame_tokens
    price = prices.price(captioner.model)
    is_exact = price is not None and (price.image_tiles or price.image_patches)
    how = "" if is_exact or frame_tokens is not None else " at most, by an assumption"
    lines = [
        *text_table([_HEADER, *rows], n_left=2),
        "",
        f"Captions: {captioner.n_frames} frames of each clip, {per_frame:,} tokens per frame{how} "
        "(--tokens-per-frame gives what you measured); clips with fewer frames, and captions that "
        "are stored already, cost less. Nothing is asked again but what fails or comes back empty.",
        f"Prices of {prices.as_of}. caption_openai's max_cost= sets a limit that is not passed.",
    ]
    if price is None:
        lines.append(f"No price is known of {captioner.model}: give one in LMMS_CAPTIONS_PRICES.")
    return lines


def _row(
    counts: CaptioningEstimate, captioner: CaptionerArguments, prices: Prices
) -> tuple[str, ...]:
    cost = prices.cost_usd(
        captioner.model, input_tokens=counts.input_tokens, output_tokens=counts.output_tokens
    )
    return (
        counts.task,
        captioner.model,
        f"{counts.n_captions:,}",
        f"{counts.input_tokens:,.0f}",
        f"{counts.output_tokens:,.0f}",
        "unknown" if cost is None else f"${cost:,.2f}",
    )
