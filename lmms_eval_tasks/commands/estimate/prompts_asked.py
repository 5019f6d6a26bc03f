"""The prompts that a task's judge is asked with, and what they share in either order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from lmms_eval_captions.judges.endpoint.answers.tokens import CHARS_PER_TOKEN
from lmms_eval_captions.judges.endpoint.outcome import Asked
from lmms_eval_captions.judges.endpoint.request import Message, Reply, Request
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.settings import PROMPT_ORDERS, PromptOrder
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import (
    CaptionedDocument,
    typical_reading,
)
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.shared_prefix import (
    SharedPrefix,
    shared_prefix,
)

T = TypeVar("T")

N_CAPTIONS: Final = 50
"""Captions of a task whose prompts are looked at for an estimate: all share much the same."""


def prompts_asked(
    documents: Sequence[CaptionedDocument], config: JudgeConfig, names: Sequence[str]
) -> dict[str, list[list[str]]]:
    """What a judge is asked about captions, without their pictures.

    Args:
        documents: The captions with their questions.
        config: The judge.
        names: Names of the task's prompts.

    Returns:
        Name of a prompt to the prompts about each caption, filled in, in the order in which they
        are asked. A first step's answer, which a second step's prompt holds, is a typical one.
    """
    asked: dict[str, list[list[str]]] = {}
    for recorder in asyncio.run(_ask_all(documents, config, names)):
        for name, texts in recorder.texts.items():
            asked.setdefault(name, []).append(texts)
    return asked


def shares_by_order(
    documents: Sequence[CaptionedDocument], config: JudgeConfig, names: Sequence[str]
) -> dict[PromptOrder, SharedPrefix]:
    """What the prompts of a task share, by estimate, in each order.

    Args:
        documents: The captions with their questions; anchors do not count.
        config: The judge.
        names: Names of the task's prompts.
    """
    # Captions that are made up are all the same: that is not to count as shared.
    different = [
        replace(each, caption=f"{n}: {each.caption}")
        for n, each in enumerate(documents)
        if not each.is_anchor
    ]
    return {
        order: sum(
            (
                shared_prefix(captions, chars_per_token=CHARS_PER_TOKEN)
                for captions in prompts_asked(different, in_order(config, order), names).values()
            ),
            SharedPrefix(),
        )
        for order in PROMPT_ORDERS
    }


def in_order(config: JudgeConfig, order: PromptOrder) -> JudgeConfig:
    """The same judge, asked with prompts in that order."""
    return replace(config, prompts=replace(config.prompts, order=order))


@dataclass(slots=True)
class _Recorder:
    """Stands for the engine's ``ask``: keeps what would be sent."""

    typical: dict[str, Asked[Any]]
    """Protocol to what its replies are taken to say."""
    names: Sequence[str]
    texts: dict[str, list[str]] = field(default_factory=dict)

    async def __call__(self, request: Request, read: Callable[[Reply], T | None]) -> Asked[T]:
        protocol = request.protocol.partition(":")[0]
        # G-VEval's requests are called so whatever their prompt.
        name = self.names[0] if len(self.names) == 1 else protocol
        self.texts.setdefault(name, []).append("\n".join(_texts(request.messages)))
        if request.protocol not in self.typical:
            self.typical[request.protocol] = typical_reading(request, read)
        asked: Asked[T] = self.typical[request.protocol]
        return asked


async def _ask_all(
    documents: Sequence[CaptionedDocument], config: JudgeConfig, names: Sequence[str]
) -> list[_Recorder]:
    """One recorder for each document."""
    typical: dict[str, Asked[Any]] = {}
    recorders = []
    for document in documents:
        recorder = _Recorder(typical, names)
        for question in document.questions:
            await document.ask(question, document.caption, config=config, run=0)(recorder)
        recorders.append(recorder)
    return recorders


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        parts: Sequence[Mapping[str, object]] = (
            content if isinstance(content, list) else [{"text": content}]
        )
        yield from (str(part["text"]) for part in parts if "text" in part)
