"""How long the captions are that are compared: longer ones may have advantages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from lmms_eval_captions.analysis.verdicts.samples import caption_of
from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.results_folder import RESULTS, RunResults
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.t5_tokens import (
    HUB_REPO,
    token_counter,
)
from lmms_eval_captions.model_wrappers.caption_files.sample_logs import logs_of_run

_MOST_BYTES: Final = 256 * 2**20
"""Of sample logs that are read to count the tokens of captions."""


@dataclass(frozen=True, slots=True)
class Length:
    """Captions of one captioner."""

    n_captions: int
    n_empty: int
    """Those without a word, which count as ones that say nothing."""
    words: float | None
    """Mean of a caption; ``None`` where the run did not keep it."""
    tokens: float | None
    """Mean of T5's tokens, end of sequence included; ``None`` where they cannot be counted."""
    tokens_reason: str = ""
    """Why they cannot, else empty."""


def length_of(verdicts: Verdicts, run: RunResults) -> Length:
    """Mean words and T5 tokens of the captions that verdicts are of.

    Tokens are those that the run counted; else those of the captions in its sample logs, where
    there is a T5 tokenizer on this machine.

    Args:
        verdicts: Of one captioner.
        run: The one that they are of.
    """
    captions = [caption for task in verdicts.tasks for caption in task.captions]
    words = [caption.n_words for caption in captions if caption.n_words is not None]
    counted = [n for caption in captions if isinstance(n := caption.fields.get("n_tokens"), int)]
    reason = ""
    if not counted:
        try:
            counted = list(_tokens_in_logs(verdicts, run))
        except DataError as error:
            reason = str(error)
    return Length(
        len(captions),
        sum(caption.n_empty for caption in captions),
        fmean(words) if words else None,
        fmean(counted) if counted else None,
        reason,
    )


def _tokens_in_logs(verdicts: Verdicts, run: RunResults) -> Iterator[int]:
    """Tokens of the captions in sample logs.

    Raises:
        DataError: If there is no tokenizer here, a log is missing, or they are too large.
    """
    count = token_counter(_tokenizer())
    # A task of a group may have a newer run of its own, which has other captions.
    logs = [_log_of(task, run) for task in verdicts.tasks]
    n_bytes = sum(log.stat().st_size for log in logs)
    if n_bytes > _MOST_BYTES:
        raise DataError(f"the sample logs have {n_bytes / 2**20:,.0f} MiB, too much to read here")
    for task in verdicts.tasks:
        videos = {caption.video_id for caption in task.captions}
        for sample in run.samples(task.task):
            item = sample.get(task.benchmark.headline)
            video = item.get("video_id") if isinstance(item, dict) else None
            if video in videos:
                yield count(caption_of(sample))


def _tokenizer() -> Path:
    """T5's, as set, or as the hub's cache has it: nothing is downloaded to count tokens.

    Raises:
        DataError: If there is none.
    """
    path = data_settings().t5
    if path is not None:
        return path
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(HUB_REPO, "spiece.model")
    if isinstance(cached, str):
        return Path(cached)
    raise DataError("there is no T5 tokenizer here: set LMMS_CAPTIONS_T5 to a spiece.model")


def _log_of(task: TaskVerdicts, run: RunResults) -> Path:
    logs = logs_of_run(run.path.parent, run.path.name.removesuffix(RESULTS))
    if task.task not in logs:
        raise DataError("there is no sample log with the captions: run with --log_samples")
    return logs[task.task]
