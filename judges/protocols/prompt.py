"""Prompts: texts with slots, read from the package or from the user's folder."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import yaml

from lmms_eval_captions.judges.endpoint.request import Message, Picture
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import read_yaml_file, whole_json

Messages = Sequence[Mapping[str, str]]
Content = Mapping[str, Messages | str]
"""A file of prompts: messages for a judge, or texts for captioners, by their keys."""

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
        """The messages with every slot filled."""
        messages: list[Message] = []
        for role, parts in self._messages:
            filled = list(parts)
            filled[1::2] = map(values.__getitem__, parts[1::2])
            messages.append({"role": role, "content": "".join(filled)})
        return messages


def file_and_key(name: str) -> tuple[str, str]:
    """Return the file ``prompts/<file>.yaml`` of a prompt, and its key in it.

    >>> file_and_key("vdc_answer"), file_and_key("vdc_caption.camera")
    (('vdc_answer', 'messages'), ('vdc_caption', 'camera'))
    """
    file, _, key = name.partition(".")
    return file, key or "messages"


def messages_in(content: Content, key: str) -> Messages:
    """The messages that a file holds under a key."""
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


_EXAMPLE: Final = re.compile(r"\bfor example\b[^:\n]*:[ \t]*(\S[^\n]*)", re.IGNORECASE)
_IGNORED: Final = re.compile(r"[\s`'\"]+")
_LEAST_CHARS: Final = 8
"""Shorter examples are what honest replies hold, too: ``yes``."""


@cache
def examples_of(prompts: Prompts, names: Sequence[str]) -> tuple[str, ...]:
    """Return the examples after "for example:" in prompts, as :func:`is_example` has them.

    >>> examples_of(Prompts(), ("vdc_answer", "vdc_match"))
    ('{pred:yes,score:4.8}',)
    """
    texts = (part["content"] for name in names for part in prompts.messages(name))
    shown = (_bare(match.rstrip(" .")) for text in texts for match in _EXAMPLE.findall(text))
    return tuple(dict.fromkeys(x for x in shown if len(x) >= _LEAST_CHARS and "{{" not in x))


def is_example(reply: str, examples: Sequence[str]) -> bool:
    """Return whether a reply holds one of the examples, whatever is around it.

    >>> is_example("`{'pred': 'yes', 'score': 4.8}`.", ("{pred:yes,score:4.8}",))
    True
    >>> is_example("{'pred': 'yes', 'score': 5}", ("{pred:yes,score:4.8}",))
    False
    """
    if not examples:
        return False
    bare = _bare(reply)
    return any(example in bare for example in examples)


def _bare(text: str) -> str:
    return _IGNORED.sub("", text).lower()


_VARIABLE: Final = "LMMS_CAPTIONS_PROMPTS"
_ROLES: Final = ("system", "user", "assistant")
_ENDING: Final = ".yaml"


@dataclass(frozen=True, slots=True)
class Prompts:
    """Every prompt by name, such as ``vdc_answer``.

    A method raises :class:`SettingsError` where the folder, or a file in it, cannot be used.
    """

    folder: Path | None = None
    """Files that replace packaged ones, or ``None``."""

    def check(self) -> None:
        """Do nothing where all is well: an error is better told before anything is asked."""
        _replacing(self.folder)

    @property
    def replaced(self) -> tuple[str, ...]:
        """Names of the prompts that the folder has."""
        return tuple(_replacing(self.folder))

    def load(self, name: str) -> Prompt:
        """A prompt of messages, by its file's name, or ``file.key`` where it has several."""
        return _load(self, name)

    def messages(self, name: str) -> Messages:
        """The messages of a prompt as they are."""
        file, key = file_and_key(name)
        return messages_in(self.read(file), key)

    def read(self, name: str) -> Content:
        """A prompt's file as it is."""
        return _replacing(self.folder).get(name) or read_yaml(name)

    def text(self, name: str, key: str) -> str:
        """One of the texts of a file of caption prompts."""
        return str(self.read(name)[key])

    def extras(self, names: Iterable[str]) -> dict[str, str]:
        """Signature field ``prompts`` of custom prompts, empty if all are those of the papers.

        Args:
            names: What a score depends on: prompts, or texts in a file of them, written
                ``vdc_caption.camera``.
        """
        changed: dict[str, object] = {}
        for name in names:
            file, key = file_and_key(name)
            content = self.read(file)[key]
            if content != read_yaml(file)[key]:
                changed[name] = content
        if changed:
            text = json.dumps(changed, sort_keys=True)
            digest = hashlib.blake2b(text.encode("ascii"), digest_size=4).hexdigest()
            return {"prompts": digest}
        return {}


@cache
def _load(prompts: Prompts, name: str) -> Prompt:
    return prompt_of(prompts.messages(name))


@cache
def _replacing(folder: Path | None) -> Mapping[str, Content]:
    if folder is None:
        return {}
    try:
        # Hidden files are what file managers and editors leave.
        paths = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    except OSError as error:
        raise SettingsError(
            f"{_VARIABLE}: expected a folder of prompts, got {str(folder)!r}: {error.strerror}"
        ) from error
    packaged = _packaged_names()
    for path in paths:
        if path.stem not in packaged or path.suffix != _ENDING:
            raise SettingsError(
                f"{_VARIABLE}: {str(path)!r} is none of our prompts; expected files called "
                f"{', '.join(f'{name}{_ENDING}' for name in packaged)}"
            )
    if not paths:
        raise SettingsError(
            f"{_VARIABLE}: expected at least one file such as {packaged[0]}{_ENDING} in "
            f"{str(folder)!r}, it is empty"
        )
    return {path.stem: _read(path) for path in paths}


@cache
def _packaged_names() -> tuple[str, ...]:
    folder = resources.files("lmms_eval_captions.judges.protocols") / "prompts"
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(n.removesuffix(_ENDING) for n in names if n.endswith(_ENDING)))


def _read(path: Path) -> Content:
    try:
        loaded = read_yaml_file(path)
    except (OSError, ValueError) as error:
        raise _refusal(path, "a YAML file in UTF-8", str(error)) from error
    ours = read_yaml(path.stem)
    if not isinstance(loaded, dict) or set(loaded) != set(ours):
        came = f"the keys {list(loaded)!r:.120}" if isinstance(loaded, dict) else f"{loaded!r:.80}"
        raise _refusal(path, f"the keys {', '.join(ours)}", came)
    for key, prompt in ours.items():
        if isinstance(prompt, str):
            _check_text(path, key, loaded[key])
        else:
            _check_messages(path, loaded[key], prompt_of(prompt).slots)
    return _whole(loaded)


def _whole(content: Content) -> Content:
    """A prompt's file without half characters, which YAML can spell as JSON does."""
    made: Content = json.loads(whole_json(json.dumps(content, default=str)))
    return made


def _check_text(path: Path, key: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise _refusal(path, f"a text under {key!r}", f"{text!r:.80}")
    if slots_of(text):
        raise _refusal(path, f"no slots under {key!r}", f"{sorted(slots_of(text))}")


def _check_messages(path: Path, messages: object, slots: set[str]) -> None:
    if not isinstance(messages, list) or not messages:
        raise _refusal(path, "a list of messages", f"{messages!r:.80}")
    used: set[str] = set()
    for message in messages:
        if not isinstance(message, dict) or set(message) != {"role", "content"}:
            raise _refusal(path, "messages with a role and a content", f"{message!r:.80}")
        if message["role"] not in _ROLES or not isinstance(message["content"], str):
            expected = f"a role among {', '.join(_ROLES)} and a text as content"
            raise _refusal(path, expected, f"{message!r:.80}")
        used |= slots_of(message["content"])
    if messages[-1]["role"] != "user":
        raise _refusal(path, "a last message of the role user", f"{messages[-1]['role']!r}")
    if used != slots:
        missing, unknown = sorted(slots - used), sorted(used - slots)
        parts = [f"{missing} missing"] * bool(missing) + [f"{unknown} unknown"] * bool(unknown)
        listed = ", ".join(f"{{{{{slot}}}}}" for slot in sorted(slots))
        raise _refusal(path, f"the slots {listed}", " and ".join(parts))


def _refusal(path: Path, expected: str, came: str) -> SettingsError:
    return SettingsError(f"{_VARIABLE}: {path}: expected {expected}, got {came:.300}")
