"""Prompts of models that have no chat template, as their makers document them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.model_wrappers.hf.turns import joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lmms_eval_captions.model_wrappers.hf.turns import Processor, Turn


@dataclass(frozen=True, slots=True)
class PromptForm:
    """The prompt of a model that has no chat template, as its makers document it."""

    user: str
    """The user's turn; ``{}`` stands for marks and text."""
    answer: str
    """What the model goes on from."""
    source: str
    """Where it is documented."""
    models: tuple[str, ...] = ()
    """Types of models (``config.model_type``) that are asked so where they have no template."""
    system: str | None = None
    """The system prompt's place; ``None`` where models know none."""
    default_system: str = ""
    """System prompt where the user gives none."""
    assistant: str | None = None
    """A turn that the model has taken; ``None`` where models know one question alone."""
    image: str = "{}"
    """Mark of a picture; ``{}`` stands for the processor's own token."""
    video: str = "{}"
    """Mark of a video, in the same way."""

    def text(self, processor: Processor, turns: Sequence[Turn]) -> str:
        """The conversation as one text.

        Raises:
            DataError: If there are turns that the model knows no form for.
        """
        forms = {"system": self.system, "user": self.user, "assistant": self.assistant}
        known = list(turns)
        if self.default_system and known[0]["role"] != "system":
            content = [{"type": "text", "text": self.default_system}]
            known.insert(0, {"role": "system", "content": content})
        said = []
        for turn in known:
            form = forms.get(turn["role"])
            if form is None:
                raise DataError(
                    f"the model's prompt form has no place for a turn of the {turn['role']}; "
                    "choose tasks that ask one question, without a system prompt"
                )
            marks = {"image": self.image, "video": self.video}
            said.append(form.replace("{}", joined(turn["content"], processor, marks)))
        return "".join(said) + self.answer


PROMPT_FORMS: Final[Mapping[str, PromptForm]] = {
    "vicuna": PromptForm(
        system="{} ",
        user="USER: {} ",
        assistant="ASSISTANT: {}</s>",
        answer="ASSISTANT:",
        image="{}\n",
        video="{}\n",
        models=("llava", "video_llava"),
        source="transformers' pages on LLaVA and Video-LLaVA",
    ),
    "mistral": PromptForm(
        user="[INST] {} [/INST]",
        assistant=" {}</s>",
        answer="",
        image="{}\n",
        video="{}\n",
        source="transformers' page on LLaVA-NeXT, the checkpoints on Mistral",
    ),
    "chatml": PromptForm(
        system="<|im_start|>system\n{}<|im_end|>\n",
        user="<|im_start|>user\n{}<|im_end|>\n",
        assistant="<|im_start|>assistant\n{}<|im_end|>\n",
        answer="<|im_start|>assistant\n",
        image="{}\n",
        video="{}\n",
        source="transformers' pages on LLaVA-OneVision and Ovis2",
    ),
    "vipllava": PromptForm(
        system="{}",
        default_system=(
            "A chat between a curious human and an artificial intelligence assistant. "
            "The assistant gives helpful, detailed, and polite answers to the human's questions."
        ),
        user="###Human: {}",
        assistant="###Assistant: {}",
        answer="###Assistant:",
        image="{}\n",
        models=("vipllava",),
        source="transformers' page on VipLlava",
    ),
    "idefics": PromptForm(
        user="User:{}<end_of_utterance>\n",
        assistant="Assistant: {}<end_of_utterance>\n",
        answer="Assistant:",
        models=("idefics2", "idefics3"),
        source="transformers' page on Idefics2",
    ),
    "phi4": PromptForm(
        system="<|system|>{}<|end|>",
        user="<|user|>{}<|end|>",
        assistant="<|assistant|>{}<|end|>",
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
        image="",
        video="",
        models=("blip-2",),
        source="transformers' page on BLIP-2",
    ),
    "plain": PromptForm(
        user="{}",
        answer="",
        image="",
        video="",
        models=("instructblip", "instructblipvideo"),
        source="transformers' pages on InstructBLIP and InstructBlipVideo",
    ),
}
"""By the name that ``prompt_format`` takes."""
