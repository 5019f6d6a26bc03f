"""Protocol prompts: read from packaged data files, filled in one pass."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final

import yaml

from lmms_eval_captions.judges.endpoint.picture import Picture
from lmms_eval_captions.judges.endpoint.request import Message

Content = Mapping[str, list[dict[str, str]]]
"""What a file of prompts holds: ``messages``, or texts under keys of their own."""

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


@cache
def load_prompt(name: str) -> Prompt:
    """The packaged prompt ``prompts/<name>.yaml``; its source is cited in the file."""
    return prompt_of(read_yaml(name))


def prompt_of(content: Content) -> Prompt:
    """The prompt of a file that holds messages."""
    return Prompt([(message["role"], message["content"]) for message in content["messages"]])


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


def attach_picture(messages: Sequence[Message], picture: Picture) -> list[Message]:
    """The messages with a picture after the words of the last one.

    It is marked as of high detail: an endpoint that may choose could scale it down.

    >>> attach_picture([{"role": "user", "content": "Look."}], Picture(b"abc", "image/png"))
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Look.'},
     {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj', 'detail': 'high'}}]}]
    """
    *before, last = messages
    url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
    parts = [
        {"type": "text", "text": last["content"]},
        {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
    ]
    return [*before, {**last, "content": parts}]
