"""What is asked of a transformers model, in the form that it was trained to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from transformers import BatchFeature

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.video.clip import Clip


class Processor(Protocol):
    """What is used of a ``transformers.ProcessorMixin``."""

    tokenizer: object

    def apply_chat_template(self, conversation: object, **kwargs: object) -> str:
        """The prompt as the model was trained to read it."""

    def __call__(self, **kwargs: object) -> BatchFeature:
        """Tokens and pixels."""


def prompt_text(
    processor: Processor, job: CaptionJob, system_prompt: str | None, *, sees_videos: bool
) -> str:
    """A job's conversation as one text, with the marks at which its frames are shown."""
    messages = [
        {
            "role": message.role,
            "content": [
                entry
                for part in message.content
                for entry in (
                    [{"type": "text", "text": part}]
                    if isinstance(part, str)
                    else _shown(job.clips[part], sees_videos=sees_videos)
                )
            ],
        }
        for message in job.messages
    ]
    if system_prompt:
        system = [{"type": "text", "text": system_prompt}]
        messages.insert(0, {"role": "system", "content": system})
    return processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def _shown(clip: Clip, *, sees_videos: bool) -> list[dict[str, str]]:
    if sees_videos and not clip.is_image:
        return [{"type": "video"}]
    return [{"type": "image"}] * len(clip.frames)
