"""A conversation as chat templates take it, and as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transformers import BatchFeature


class Processor(Protocol):
    """What is used of a ``transformers.ProcessorMixin``."""

    tokenizer: Any

    def apply_chat_template(self, conversation: object, **kwargs: object) -> str:
        """The prompt as the model was trained to read it."""

    def __call__(self, **kwargs: object) -> BatchFeature:
        """Tokens and pixels."""


Turn = dict[str, Any]
"""A message as chat templates take it: ``role``, and ``content`` in typed parts."""


def rendered(processor: Any, turns: Sequence[Turn], template: str | None = None) -> str:  # noqa: ANN401
    """The conversation by a processor's or tokenizer's chat template, or by the one given."""
    chosen = {} if template is None else {"chat_template": template}
    text: str = processor.apply_chat_template(
        list(turns), tokenize=False, add_generation_prompt=True, **chosen
    )
    return text


def joined(
    content: Sequence[Mapping[str, str]], processor: Processor, marks: Mapping[str, str]
) -> str:
    """Parts as one text, pictures and videos as the processor's tokens within ``marks``."""
    said = []
    for part in content:
        kind = part["type"]
        said.append(
            part["text"]
            if kind == "text"
            else marks.get(kind, "{}").replace("{}", _token(processor, kind))
        )
    return "".join(said)


def _token(processor: Processor, kind: str) -> str:
    """The token that the processor replaces by a picture or a video."""
    token = getattr(processor, f"{kind}_token", None)
    return str(getattr(token, "content", token) or f"<{kind}>")
