"""Protocol prompts: read from packaged data files, filled in one pass."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

import yaml

from lmms_eval_captions.judges.endpoint.request import Message, Picture

Messages = Sequence[Mapping[str, str]]
Content = Mapping[str, Messages | str]
"""What a file of prompts holds under its keys: messages for a judge, or texts for captioners."""

_SLOT: Final = re.compile(r"\{\{(\w+)\}\}")


class Prompt:
    """A chat prompt with slots, written ``{{name}}`` in its data file.

    Slots are filled in one pass, so that a caption that holds braces, quotes or another slot's name
    goes to the judge unchanged.
    """

    def __init__(self, messages: list[tuple[str, str]]) -> None:
        self._messages = [(role, _SLOT.split(content)) for role, content in messages]
        self.slots = {name for _, content in messages for name in slots_of(content)}

    def render(self, **values: str) -> list[Message]:
        """The messages with every slot filled.

        Raises:
            KeyError: If a slot has no value.
        """
        return [
            {
                "role": role,
                "content": "".join(
                    values[part] if index % 2 else part for index, part in enumerate(parts)
                ),
            }
            for role, parts in self._messages
        ]


def file_and_key(name: str) -> tuple[str, str]:
    """Where a prompt stands: the file ``prompts/<name>.yaml``, and the key in it.

    >>> file_and_key("vdc_answer"), file_and_key("vdc_caption.camera")
    (('vdc_answer', 'messages'), ('vdc_caption', 'camera'))
    """
    file, _, key = name.partition(".")
    return file, key or "messages"


def messages_in(content: Content, key: str) -> Messages:
    """The messages that a file holds under a key.

    Raises:
        TypeError: If it holds a text there.
    """
    messages = content[key]
    if isinstance(messages, str):
        raise TypeError(f"expected messages under {key!r}, got the text {messages!r:.80}")
    return messages


def prompt_of(messages: Messages) -> Prompt:
    """The prompt that a file's messages are."""
    return Prompt([(message["role"], message["content"]) for message in messages])


def slots_of(text: str) -> set[str]:
    """Names of the slots in a text.

    >>> slots_of("Caption: {{caption}}, {not} {{ one }}")
    {'caption'}
    """
    return set(_SLOT.findall(text))


@cache
def read_yaml(name: str) -> Content:
    """The packaged data file ``prompts/<name>.yaml`` as it is."""
    folder = resources.files("lmms_eval_captions.judges.protocols").joinpath("prompts")
    loaded: Content = yaml.safe_load(folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


def attach_pictures(messages: Sequence[Message], *pictures: Picture) -> list[Message]:
    """The messages with pictures after the words of the last one, in their order.

    They are marked as of high detail: an endpoint that may choose could scale them down.

    >>> attach_pictures([{"role": "user", "content": "Look."}], Picture(b"abc", "image/png"))
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Look.'},
     {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj', 'detail': 'high'}}]}]
    """
    *before, last = messages
    parts = [{"type": "text", "text": last["content"]}, *map(_part, pictures)]
    return [*before, {**last, "content": parts}]


def _part(picture: Picture) -> dict[str, object]:
    url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url, "detail": "high"}}
