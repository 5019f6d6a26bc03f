"""Estimate of what captioning and judging would take: calls, tokens and cost. Sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from lmms_eval_captions.judges.endpoint.cost import Prices
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN, PICTURE_TOKENS
from lmms_eval_captions.judges.errors import CaptionsError, SettingsError
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.judging.expected import (
    TOKENS_A_MESSAGE,
    RequestCounter,
    TaskEstimate,
    typical_caption,
    why_no_score,
)
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
from lmms_eval_captions.model_wrappers.chat_api import FRAME_PIXELS, MAX_NUM_FRAMES
from lmms_eval_captions.model_wrappers.model_args import (
    arguments_of,
    at_least_one,
    one_of,
    parse_model_args,
    refuse_unknown,
)
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption
from lmms_eval_captions.model_wrappers.video.pictures import shrunk

_FILE_ARGUMENTS: Final = ("path", "column", "video_column", "missing")
_FULL_HD: Final = (1920, 1080)


class CaptionFile(NamedTuple):
    """Arguments of ``caption_file``."""

    path: str
    column: str | None = None
    video_column: str | None = None
    missing: str | None = None
    """``None`` for a path by itself, which leaves open what a run does."""

    @classmethod
    def parse(cls, text: str) -> CaptionFile:
        """Return the arguments in a text, or the path that it is.

        Raises:
            SettingsError: If an argument is unknown, given twice, or cannot be used.

        >>> CaptionFile.parse("captions/a=b.jsonl").path
        'captions/a=b.jsonl'
        >>> CaptionFile.parse("path=a.csv,column=text,missing=drop")[:2]
        ('a.csv', 'text')
        """
        if (
            text.partition("=")[0].strip() not in _FILE_ARGUMENTS
            or Path(text).expanduser().exists()
        ):
            return cls(text)
        pairs = [part.partition("=") for part in text.split(",") if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in pairs}
        unknown = set(given) - set(_FILE_ARGUMENTS)
        refuse_unknown("caption_file", known=_FILE_ARGUMENTS, unknown=unknown)
        if len(given) < len(pairs) or not given.get("path"):
            raise SettingsError(
                "--captions: expected path=FILE[,column=NAME][,video_column=NAME][,missing=...], "
                f"each once, got {text!r}"
            )
        given.setdefault("missing", "error")
        one_of("missing", given["missing"], ("error", "skip", "drop"))
        return cls(**given)


@dataclass(slots=True)
class Estimate:
    """Estimate of the tasks of a run."""

    settings: Settings
    tasks: list[TaskEstimate] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line for each task that cannot be estimated."""
    captions: CaptionFile | None = None
    n_distinct: int = 0
    """Captions of the file that are judged, each once, however many tasks judge it."""


def estimate(
    settings: Settings, tasks: Sequence[str], *, captions: CaptionFile | None = None
) -> Estimate:
    """Count the requests of a run; without captions, for captions of typical length.

    Raises:
        CaptionError: If the captions cannot be read.
        SettingsError: If the settings or the prices cannot be used.
    """
    result = Estimate(settings, captions=captions)
    open_table = captions and open_captions(*captions[:3])
    distinct: set[tuple[str, str]] = set()
    with closing(RequestCounter(settings)) as counter:
        for name in tasks:
            benchmark = benchmark_of_task(name)
            config, task = benchmark.judge_config(settings), benchmark.tasks[name]
            try:
                docs = benchmark.read(settings, task)
                texts = [typical_caption(task)] * len(docs)
                if captions and open_table:
                    missing = DroppedCaption if captions.missing == "drop" else NoCaption
                    none, table = missing("the caption file has none"), open_table(name)
                    found = [table.find_any(benchmark.video_names(d), task.aspect) for d in docs]
                    # lmms-eval strips captions before it hands them to a task.
                    texts = [none if text is None else text.strip() for text in found]
                why_nan = ""
                if captions and captions.missing in ("skip", "drop"):
                    by_index = dict(enumerate(texts))
                    why_nan = why_no_score(benchmark, docs, by_index, settings) or ""
                captioned = [] if why_nan else list(zip(docs, texts, strict=True))
                is_real = captions is not None
                counts = counter.count(
                    benchmark, task, config, captioned, is_real=is_real, has_anchors=True
                )
            except CaptionsError as error:
                result.problems.append(f"{name}: {error}")
                continue
            counts.why_nan = why_nan
            counts.n_missing = sum(isinstance(text, NoCaption) for text in texts)
            distinct |= {
                (benchmark.video_names(doc)[0], text)
                for doc, text in zip(docs, texts, strict=True)
                if not isinstance(text, NoCaption)
            }
            result.tasks.append(counts)
            if captions and captions.missing == "error" and counts.n_missing:
                result.problems.append(
                    f"{name}: {counts.n_missing:,} captions are missing in {captions.path}: a run "
                    "stops there; add them, or give missing=skip or missing=drop"
                )
    result.n_distinct = len(distinct)
    return result


class Captioner(NamedTuple):
    """Arguments of ``caption_openai`` that affect the cost."""

    model: str
    n_frames: int
    frame_tokens: int
    """Input tokens of a frame in full HD."""
    is_exact: bool
    """True if the tokens of a frame follow from the price list."""
    system_prompt: str

    @classmethod
    def parse(cls, text: str, prices: Prices) -> Captioner:
        """Return the arguments in the ``--model_args`` of ``caption_openai``.

        Raises:
            SettingsError: If one is unknown or cannot be used, or ``model`` is missing.
        """
        from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai
        from lmms_eval_captions.model_wrappers.captioner import Captioner as AnyCaptioner

        given = parse_model_args(text)
        known = arguments_of(CaptionOpenai, AnyCaptioner)
        refuse_unknown("caption_openai", known=known, unknown=set(given) - known)
        if not given.get("model") or given.get("send") == "video":
            raise SettingsError(
                "--captioner: expected the --model_args of caption_openai with a model and without "
                "send=video, as only the server knows the cost of a video, such as "
                f"model=gpt-4o,max_num_frames=16, got {text!r}"
            )
        model, detail = str(given["model"]), given.get("detail")
        price = prices.price(model)
        pixels = at_least_one("frame_pixels", given.get("frame_pixels", FRAME_PIXELS))
        size = shrunk(*_FULL_HD, pixels)
        return cls(
            model,
            at_least_one("max_num_frames", given.get("max_num_frames", MAX_NUM_FRAMES)),
            PICTURE_TOKENS if price is None else price.picture_tokens(*size, detail),
            is_exact=price is not None and bool(price.image_tiles or price.image_patches),
            system_prompt=str(given.get("system_prompt", "")),
        )


class CaptioningEstimate(NamedTuple):
    """Requests for the captions of one task."""

    task: str
    n_captions: int
    input_tokens: float
    output_tokens: float


def estimate_captions(
    settings: Settings, tasks: Sequence[str], captioner: Captioner
) -> list[CaptioningEstimate]:
    """Count the requests of a captioner; tasks whose data cannot be read are left out.

    Captions of the same clip with the same prompt are counted once, whichever tasks need them.
    """
    seen: set[tuple[str, str, str]] = set()
    estimates = []
    for name in tasks:
        benchmark = benchmark_of_task(name)
        task, to_text = benchmark.tasks[name], hooks_of(benchmark).doc_to_text
        try:
            docs = benchmark.read(settings, task)
        except CaptionsError:
            continue  # the estimate of judging reports it
        prompts = {(benchmark.name, benchmark.video_names(d)[-1], to_text(d)) for d in docs} - seen
        seen |= prompts
        n_chars = sum(len(prompt) + len(captioner.system_prompt) for _, _, prompt in prompts)
        messages = TOKENS_A_MESSAGE * (2 if captioner.system_prompt else 1)
        per_caption = captioner.n_frames * captioner.frame_tokens + messages
        n, n_output = len(prompts), len(prompts) * task.caption_chars / CHARS_PER_TOKEN
        n_input = n * per_caption + n_chars / CHARS_PER_TOKEN
        estimates.append(CaptioningEstimate(name, n, n_input, n_output))
    return estimates
