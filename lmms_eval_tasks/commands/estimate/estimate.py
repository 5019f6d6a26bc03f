"""What judging would take, before anything is sent: calls, tokens and cost.

The protocols themselves ask: they are handed an ``ask`` that counts requests in place of sending
them, so that prompts and steps are those of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.errors import CaptionsError
from lmms_eval_captions.judges.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import Settings
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import Counter, Row
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.plans import PLANS, Document, Plan
from lmms_eval_captions.lmms_eval_tasks.judge_run import judge_defaults
from lmms_eval_captions.model_wrappers.caption_files.records import CaptionTable, open_captions
from lmms_eval_captions.model_wrappers.no_caption import says_nothing

_WORD: Final = "word "


@dataclass(slots=True)
class Estimate:
    """What all tasks take."""

    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """A line for each task that cannot be estimated."""
    captions: Path | None = None
    ask_again: bool = False
    """Whether what the store holds unreadable replies to alone is asked anew."""


def estimate(settings: Settings, tasks: Sequence[str], *, captions: Path | None = None) -> Estimate:
    """Count what a run of these tasks would ask.

    Args:
        settings: The run's settings: judge, runs, data, cache.
        tasks: Names in ``PLANS``.
        captions: File of captions or folder of sample logs; without, captions of typical length.

    Raises:
        CaptionError: If the captions cannot be read.
        SettingsError: If the settings or the prices cannot be used.
    """
    made = Estimate(captions=captions, ask_again=settings.ask_again)
    find = None if captions is None else open_captions(captions)
    counter = Counter(
        load_prices(settings.prices),
        settings.cache / "replies",
        alias=settings.alias,
        ask_again=settings.ask_again,
    )
    for task in tasks:
        plan = PLANS[task]
        config = JudgeConfig.build(judge_defaults(plan.template), settings)
        row = Row(task, config.model, config.runs)
        try:
            table = None if find is None else find(task)
            documents = plan.documents(settings)
            asyncio.run(counter.count(row, _captioned(documents, table, plan, row), config, table))
        except CaptionsError as error:
            made.problems.append(f"{task}: {error}")
        else:
            made.rows.append(row)
    counter.close()
    return made


def _captioned(
    documents: Iterable[Document], table: CaptionTable | None, plan: Plan, row: Row
) -> Iterator[tuple[Document, str]]:
    """Each document with the caption that a run would judge."""
    typical = (_WORD * (plan.caption_chars // len(_WORD) + 1))[: plan.caption_chars]
    for document in documents:
        caption: str | None = typical
        if table is not None:
            found = (table.find(video, document.aspect) for video in document.videos)
            # lmms-eval strips what it hands to a task.
            caption = next((text.strip() for text in found if text is not None), None)
        if caption is None:
            row.n_missing += 1
        elif not says_nothing(caption):
            row.n_captions += 1
            row.caption_chars += len(caption)
            yield document, caption
