"""What is asked of a transformers model, in the form that it was trained to read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.hf.prompt_forms import PROMPT_FORMS
from lmms_eval_captions.model_wrappers.hf.turns import Processor, Turn, joined, rendered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmms_eval_captions.model_wrappers.caption_jobs import CaptionJob
    from lmms_eval_captions.model_wrappers.video.clip import Clip

__all__ = ["PROMPT_FORMS", "Processor", "PromptFormat", "find_format", "prompt_text"]


class PromptFormat(Protocol):
    """How a conversation becomes one text."""

    def text(self, processor: Processor, turns: Sequence[Turn]) -> str:
        """The conversation, with the marks at which pictures and videos are shown."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A template of the checkpoint or of the user's, where the processor has none of its own."""

    template: str
    """Jinja, as transformers takes it."""
    takes_text: bool = False
    """Its messages are text with the processor's marks, not parts."""

    def text(self, processor: Processor, turns: Sequence[Turn]) -> str:
        """The conversation as one text."""
        if not self.takes_text:
            return rendered(processor, turns, self.template)
        plain = [
            {"role": turn["role"], "content": joined(turn["content"], processor, {})}
            for turn in turns
        ]
        return rendered(processor.tokenizer, plain, self.template)


def find_format(
    processor: Processor, model_type: str, name: str | None = None
) -> PromptFormat | None:
    """How a checkpoint is asked; ``None`` is by its processor's own chat template.

    Args:
        processor: The checkpoint's.
        model_type: The config's.
        name: The user's ``prompt_format``: a name of ``PROMPT_FORMS``, a file ``*.jinja`` with a
            chat template, or ``None``: the checkpoint's template, else its model's documented form.

    Raises:
        SettingsError: If there is no such form, or none is known for the model.
    """
    if name is not None and str(name).endswith(".jinja"):
        return _template_of_file(processor, Path(name))
    if name is not None:
        if name not in PROMPT_FORMS:
            raise SettingsError(
                f"prompt_format={name!r} is neither one of {sorted(PROMPT_FORMS)} nor "
                "a file *.jinja with a chat template"
            )
        return PROMPT_FORMS[name]
    own = getattr(processor, "chat_template", None)
    # Some processors drop the template that their tokenizer keeps.
    template = own or getattr(processor.tokenizer, "chat_template", None)
    if template is not None:
        takes_text = _takes_text(processor, template)
        return None if own and not takes_text else ChatTemplate(_text(template), takes_text)
    for form in PROMPT_FORMS.values():
        if model_type in form.models:
            return form
    raise SettingsError(
        f"the checkpoint has no chat template, and no prompt is known for "
        f"{model_type!r}: take an instruction-tuned checkpoint, or give prompt_format=, one of "
        f"{sorted(PROMPT_FORMS)} or a file *.jinja, as its makers document it"
    )


def prompt_text(
    processor: Processor,
    job: CaptionJob,
    system_prompt: str | None,
    *,
    sees_videos: bool,
    form: PromptFormat | None = None,
) -> str:
    """A job's conversation as one text, with the marks at which its frames are shown.

    Args:
        processor: The checkpoint's.
        job: What is shown and asked.
        system_prompt: Put first, where there is one.
        sees_videos: Whether a clip is shown as a video, and not as pictures.
        form: What ``find_format`` gave; ``None`` is the processor's own chat template.
    """
    turns = [
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
        turns.insert(0, {"role": "system", "content": system})
    return rendered(processor, turns) if form is None else form.text(processor, turns)


def _shown(clip: Clip, *, sees_videos: bool) -> list[dict[str, str]]:
    if sees_videos and not clip.is_image:
        return [{"type": "video"}]
    return [{"type": "image"}] * len(clip.frames)


def _takes_text(processor: Processor, template: str | dict[str, str]) -> bool:
    """Whether a template wants a message's content as text: it fails on parts, or prints them.

    Raises:
        SettingsError: If it is no template at all.
    """
    from jinja2 import TemplateError, TemplateSyntaxError

    probe = [{"role": "user", "content": [{"type": "text", "text": "probe"}]}]
    try:
        text = rendered(processor.tokenizer, probe, _text(template))
    except TemplateSyntaxError as error:
        raise SettingsError(
            f"the chat template is not readable as Jinja: line {error.lineno}: "
            f"{error.message}; mend it, or name another by prompt_format="
        ) from error
    except (TemplateError, TypeError):
        return True
    return "'type'" in text


def _text(template: str | dict[str, str]) -> str:
    """A checkpoint's template, or its default one where it has several."""
    return template if isinstance(template, str) else template["default"]


def _template_of_file(processor: Processor, path: Path) -> ChatTemplate:
    if not path.is_file():
        raise SettingsError(f"prompt_format: there is no file {path}")
    template = path.read_text(encoding="utf-8")
    return ChatTemplate(template, _takes_text(processor, template))
