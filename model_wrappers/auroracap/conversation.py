"""A conversation as AuroraCap was tuned to read it: Vicuna's, each text tokenized alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import Message

SYSTEM: Final = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives "
    "helpful, detailed, and polite answers to the user's questions."
)
"""Vicuna's own system sentence. AuroraCap was tuned without it; lmms-eval's wrapper sends it."""

Texts = list[str]
"""What stands between two frames, in pieces that are tokenized one by one."""


def texts_around_frames(
    messages: Sequence[Message], n_frames: Sequence[int], *, end: str, system_prompt: bool = False
) -> list[Texts]:
    """What stands before, between and after the frames: one list more than there are frames.

    Of one question that is ``USER: <frame> <frame> ... <frame>`` and on a new line ``prompt
    ASSISTANT:``. What is shown elsewhere stands on a line of its own; an answer is followed by the
    token that ends answers, and a new line.

    Args:
        messages: The conversation; messages of the system come before the first question.
        n_frames: Frames of each clip or picture.
        end: Token that ends an answer.
        system_prompt: Whether to begin with :data:`SYSTEM`, where no message of the system does.

    Source:
        xtuner's template ``vicuna``, with which AuroraCap was tuned (SEP is a new line).
    """
    said = [part for turn in messages if turn.role == "system" for part in turn.content]
    system = " ".join(str(part) for part in said) or (SYSTEM if system_prompt else "")
    around: list[Texts] = [[]]
    before = f"{system} USER: " if system else "USER: "
    for turn in messages:
        if turn.role == "assistant":
            around[-1] += [" ".join(str(part) for part in turn.content), end, "\n"]
            before = "USER: "
        elif turn.role == "user":
            text, was_shown = before, False
            for place, part in enumerate(turn.content):
                gap = "" if not place else " " if was_shown and isinstance(part, int) else "\n"
                text += gap
                was_shown = isinstance(part, int)
                if isinstance(part, str):
                    text += part
                    continue
                for frame in range(n_frames[part]):
                    around[-1].append(text if not frame else " ")
                    around.append([])
                text = ""
            around[-1].append(f"{text} ASSISTANT:")
            before = "USER: "
    return around
