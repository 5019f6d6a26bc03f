"""The step that VDC and VidCapBench begin with: a question is answered from the caption alone."""

from __future__ import annotations

from functools import partial

from lmms_eval_captions.judges.endpoint.answers.reasoning import strip_reasoning
from lmms_eval_captions.judges.endpoint.request import Reply, Request
from lmms_eval_captions.judges.protocols import lexical
from lmms_eval_captions.judges.protocols.judge_config import JudgeConfig
from lmms_eval_captions.judges.protocols.judge_request import request_of


def answer_request(
    prompt: str, question: str, caption: str, *, config: JudgeConfig, run: int
) -> Request:
    """What asks for the answer.

    Args:
        prompt: Name of the prompt, with slots for caption and question.
        question: The question.
        caption: Candidate caption, unchanged.
        config: The benchmark's judge.
        run: Judge run, sent as the seed, >= 0.
    """
    return request_of(
        prompt,
        config.prompts.load(prompt).render(caption=caption, question=question),
        config=config,
        seed=run,
        stand_in=partial(lexical.best_sentence, caption, question),
    )


def read_free_answer(reply: Reply) -> str | None:
    """The answer in a reply, ``None`` where there is none.

    >>> read_free_answer(Reply("<think>hm</think> A red ball. "))
    'A red ball.'
    """
    return strip_reasoning(reply.text) or None
