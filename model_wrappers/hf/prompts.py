"""Prompts in the form that a transformers model was trained to read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from lmms_eval_captions.judges.errors import DataError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Turn = dict[str, Any]
"""A message as chat templates take it: ``role``, and ``content`` in typed parts."""


Processor: TypeAlias = Any
"""A ``transformers.ProcessorMixin``, or a checkpoint's own."""


@dataclass(frozen=True, slots=True)
class PromptForm:
    """The prompt of a model that has no chat template, as its makers document it."""

    user: str
    """The question; ``{}`` stands for marks and text."""
    answer: str
    """Beginning of the answer."""
    source: str
    """Documentation of the form."""
    models: tuple[str, ...] = ()
    """Types of models (``config.model_type``) that use the form if they have no template."""
    system: str | None = None
    """Form of the system prompt; ``None`` if models know none."""
    default_system: str = ""
    """System prompt if the user gives none."""
    mark: str = "{}"
    """Mark of a picture or video; ``{}`` stands for the processor's own token."""

    def text(self, processor: Processor, turns: Sequence[Turn]) -> str:
        """Return the question, with the marks at which pictures and videos are shown."""
        *system, question = (_joined(turn["content"], processor, self.mark) for turn in turns)
        before = system[0] if system else self.default_system
        if before and self.system is None:
            raise DataError(
                "the model's prompt form has no place for a turn of the system; leave "
                "system_prompt out"
            )
        start = (self.system or "").replace("{}", before) if before else ""
        return start + self.user.replace("{}", question) + self.answer


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A chat template: the processor's own, or one of the checkpoint or of the user's."""

    template: str | None = None
    """Jinja, as transformers takes it; ``None``: the processor's own."""
    takes_text: bool = False
    """True if its messages are text with the processor's marks, not parts."""

    def text(self, processor: Processor, turns: Sequence[Turn]) -> str:
        """Return the question, with the marks at which pictures and videos are shown."""
        if not self.takes_text:
            return _rendered(processor, turns, self.template)
        plain = [{**turn, "content": _joined(turn["content"], processor)} for turn in turns]
        return _rendered(processor.tokenizer, plain, self.template)


OWN_TEMPLATE: Final = ChatTemplate()
PromptFormat = PromptForm | ChatTemplate
"""A way to make one text of a question."""


def find_format(processor: Processor, model_type: str, name: str | None = None) -> PromptFormat:
    """Return a checkpoint's prompt format.

    ``name`` is the user's ``prompt_format``: a name of ``PROMPT_FORMS``, a file ``*.jinja`` with a
    chat template, or ``None``: the checkpoint's template, else its model's documented form.
    """
    if name is not None and str(name).endswith(".jinja"):
        path = Path(name)
        if not path.is_file():
            raise SettingsError(f"prompt_format: there is no file {path}")
        template = path.read_text(encoding="utf-8")
        return ChatTemplate(template, _takes_text(processor, template))
    if name is not None:
        if name not in PROMPT_FORMS:
            raise SettingsError(
                f"prompt_format={name!r} is neither one of {sorted(PROMPT_FORMS)} nor "
                "a file *.jinja with a chat template"
            )
        return PROMPT_FORMS[name]
    own = getattr(processor, "chat_template", None)
    # Some processors drop the template that their tokenizer keeps; some have several.
    found = own or getattr(processor.tokenizer, "chat_template", None)
    if found is not None:
        template = found if isinstance(found, str) else found["default"]
        takes_text = _takes_text(processor, template)
        return ChatTemplate(None if own and not takes_text else template, takes_text)
    for form in PROMPT_FORMS.values():
        if model_type in form.models:
            return form
    raise SettingsError(
        f"the checkpoint has no chat template, and no prompt is known for "
        f"{model_type!r}: take an instruction-tuned checkpoint, or give prompt_format=, one of "
        f"{sorted(PROMPT_FORMS)} or a file *.jinja, as its makers document it"
    )


def _rendered(processor: Any, turns: Sequence[Turn], template: str | None = None) -> str:  # noqa: ANN401
    """Return the question by a processor's or tokenizer's chat template, or by the given one."""
    chosen = {} if template is None else {"chat_template": template}
    text: str = processor.apply_chat_template(
        list(turns), tokenize=False, add_generation_prompt=True, **chosen
    )
    return text


def _joined(content: Sequence[Mapping[str, str]], processor: Processor, mark: str = "{}") -> str:
    """Join parts to one text, pictures and videos as the processor's tokens within ``mark``."""
    texts = []
    for part in content:
        kind = part["type"]
        token = getattr(processor, f"{kind}_token", None)
        shown = str(getattr(token, "content", token) or f"<{kind}>")
        texts.append(part["text"] if kind == "text" else mark.replace("{}", shown))
    return "".join(texts)


def _takes_text(processor: Processor, template: str) -> bool:
    """Return if a template wants a message's content as text: it fails on parts, or prints them."""
    from jinja2 import TemplateError, TemplateSyntaxError

    probe = [{"role": "user", "content": [{"type": "text", "text": "probe"}]}]
    try:
        text = _rendered(processor.tokenizer, probe, template)
    except TemplateSyntaxError as error:
        raise SettingsError(
            f"the chat template is not readable as Jinja: line {error.lineno}: "
            f"{error.message}; correct it, or name another by prompt_format="
        ) from error
    except (TemplateError, TypeError):
        return True
    return "'type'" in text


PROMPT_FORMS: Final[Mapping[str, PromptForm]] = {
    "vicuna": PromptForm(
        system="{} ",
        user="USER: {} ",
        answer="ASSISTANT:",
        mark="{}\n",
        models=("llava", "video_llava"),
        source="transformers' pages on LLaVA and Video-LLaVA",
    ),
    "mistral": PromptForm(
        user="[INST] {} [/INST]",
        answer="",
        mark="{}\n",
        source="transformers' page on LLaVA-NeXT, the checkpoints on Mistral",
    ),
    "chatml": PromptForm(
        system="<|im_start|>system\n{}<|im_end|>\n",
        user="<|im_start|>user\n{}<|im_end|>\n",
        answer="<|im_start|>assistant\n",
        mark="{}\n",
        source="transformers' pages on LLaVA-OneVision and Ovis2",
    ),
    "vipllava": PromptForm(
        system="{}",
        default_system=(
            "A chat between a curious human and an artificial intelligence assistant. "
            "The assistant gives helpful, detailed, and polite answers to the human's questions."
        ),
        user="###Human: {}",
        answer="###Assistant:",
        mark="{}\n",
        models=("vipllava",),
        source="transformers' page on VipLlava",
    ),
    "idefics": PromptForm(
        user="User:{}<end_of_utterance>\n",
        answer="Assistant:",
        models=("idefics2", "idefics3"),
        source="transformers' page on Idefics2",
    ),
    "phi4": PromptForm(
        system="<|system|>{}<|end|>",
        user="<|user|>{}<|end|>",
        answer="<|assistant|>",
        models=("phi4_multimodal",),
        source="the model card of microsoft/Phi-4-multimodal-instruct",
    ),
    "paligemma": PromptForm(
        # Its processor adds the start token and the line break.
        user="{}",
        answer="",
        models=("paligemma",),
        source="transformers' page on PaliGemma; the checkpoints named -mix take instructions",
    ),
    "chameleon": PromptForm(
        # Its processor adds the start token, and the end of the turn.
        user="{}",
        answer="",
        models=("chameleon",),
        source="transformers' page on Chameleon",
    ),
    "question": PromptForm(
        # The processor puts the marks before the text.
        user="Question: {}",
        answer=" Answer:",
        mark="",
        models=("blip-2",),
        source="transformers' page on BLIP-2",
    ),
    "plain": PromptForm(
        user="{}",
        answer="",
        mark="",
        models=("instructblip", "instructblipvideo"),
        source="transformers' pages on InstructBLIP and InstructBlipVideo",
    ),
}
"""Prompt forms by the name that ``prompt_format`` takes."""
