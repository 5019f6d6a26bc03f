"""Prompts: texts with slots, read from the package or from the user's folder."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import yaml

from lmms_eval_captions.judges.endpoint.request import Message, Picture
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import read_yaml_file, whole_json
from lmms_eval_captions.judges.protocols.released import released_prompts

if TYPE_CHECKING:
    from importlib.abc import Traversable

Messages = Sequence[Mapping[str, str]]
Content = Mapping[str, Messages | str]
"""A file of prompts: messages for a judge, or texts for captioners, by their keys."""

_SLOT: Final = re.compile(r"\{\{(\w+)\}\}")
_FOLDER: Final = resources.files("lmms_eval_captions.judges.protocols") / "prompts"


class Prompt:
    """A chat prompt with slots, written ``{{name}}`` in its data file.

    Slots are filled in one pass, so that a caption that holds braces, quotes or another slot's name
    goes to the judge unchanged.
    """

    def __init__(self, messages: Messages) -> None:
        self._messages = [(m["role"], _SLOT.split(m["content"])) for m in messages]
        self.slots = {name for _, parts in self._messages for name in parts[1::2]}

    def render(self, **values: str) -> list[Message]:
        """The messages with every slot filled."""
        messages: list[Message] = []
        for role, parts in self._messages:
            filled = list(parts)
            filled[1::2] = map(values.__getitem__, parts[1::2])
            messages.append({"role": role, "content": "".join(filled)})
        return messages


def file_and_key(name: str) -> tuple[str, str]:
    """Return the file ``prompts/<file>.yaml`` of a prompt, and its key in it."""
    file, _, key = name.partition(".")
    return file, key or "messages"


@cache
def read_yaml(name: str) -> Content:
    """Return the packaged data file ``prompts/<name>.yaml`` as it is."""
    files = [file for folder in _folders() if (file := folder / f"{name}.yaml").is_file()]
    loaded: Content = yaml.safe_load((files or [_FOLDER / f"{name}.yaml"])[0].read_text("utf-8"))
    return loaded


@cache
def _folders() -> Sequence[Traversable]:
    """Return the folders of prompts: ours, and those next to benchmarks of other packages."""
    points = entry_points(group="lmms_eval_captions.benchmarks")
    packages = dict.fromkeys(point.module.rpartition(".")[0] for point in points)
    found = [_FOLDER]
    for package in packages:
        with suppress(ImportError):
            found.append(resources.files(package) / "prompts")
    return [folder for folder in found if folder.is_dir()]


def attach_pictures(messages: Sequence[Message], *pictures: Picture) -> list[Message]:
    """The messages with pictures after the words of the last one, in their order.

    They are marked as of high detail: an endpoint that may choose could scale them down.

    >>> attach_pictures([{"role": "user", "content": "Look."}], Picture(b"abc", "image/png"))
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Look.'},
     {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,YWJj', 'detail': 'high'}}]}]
    """
    *before, last = messages
    parts: list[Message] = [{"type": "text", "text": last["content"]}]
    for picture in pictures:
        url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
        parts.append({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
    return [*before, {**last, "content": parts}]


_VARIABLE: Final = "LMMS_CAPTIONS_PROMPTS"
_ROLES: Final = ("system", "user", "assistant")
_ENDING: Final = ".yaml"


@dataclass(frozen=True, slots=True)
class Prompts:
    """Every prompt by name, such as ``vdc_answer``.

    A method raises :class:`SettingsError` if the folder, or a file in it, cannot be used.
    """

    folder: Path | None = None
    """Files that replace packaged ones, or ``None``."""
    is_released: bool = False
    """Take the wording that VDC's authors released for what the folder does not have."""

    def check(self) -> None:
        """Raise if the folder cannot be used, before anything is asked."""
        _replacing(self.folder)

    @property
    def replaced(self) -> tuple[str, ...]:
        """Names of the prompts that the folder has."""
        return tuple(_replacing(self.folder))

    def load(self, name: str) -> Prompt:
        """A prompt of messages, by its file's name, or ``file.key`` if that has several."""
        return _load(self, name)

    def messages(self, name: str) -> Messages:
        """The messages of a prompt as they are."""
        file, key = file_and_key(name)
        return cast("Messages", self.read(file)[key])

    def read(self, name: str) -> Content:
        """A prompt's file as it is."""
        released = released_prompts().get(name) if self.is_released else None
        return _replacing(self.folder).get(name) or released or read_yaml(name)

    def text(self, name: str, key: str) -> str:
        """One of the texts of a file of caption prompts."""
        return str(self.read(name)[key])

    def extras(self, names: Iterable[str]) -> dict[str, str]:
        """Signature field ``prompts`` of custom prompts, empty if all are those of the papers.

        Args:
            names: Prompts that a score depends on; a text in a file of several is written
                ``vdc_caption.camera``.
        """
        changed: dict[str, object] = {}
        for name in names:
            file, key = file_and_key(name)
            content = self.read(file)[key]
            if content != read_yaml(file)[key]:
                changed[name] = content
        if not changed:
            return {}
        text = json.dumps(changed, sort_keys=True).encode("ascii")
        return {"prompts": hashlib.blake2b(text, digest_size=4).hexdigest()}


@cache
def _load(prompts: Prompts, name: str) -> Prompt:
    return Prompt(prompts.messages(name))


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


def _packaged_names() -> list[str]:
    names = (entry.name for folder in _folders() for entry in folder.iterdir())
    return sorted(name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))


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
            _check_messages(path, loaded[key], Prompt(prompt).slots)
    # Without lone surrogates, which YAML can spell as JSON does.
    content: Content = json.loads(whole_json(json.dumps(loaded, default=str)))
    return content


def _check_text(path: Path, key: str, text: object) -> None:
    if not isinstance(text, str) or not text.strip():
        raise _refusal(path, f"a text under {key!r}", f"{text!r:.80}")
    if slots := sorted(set(_SLOT.findall(text))):
        raise _refusal(path, f"no slots under {key!r}", f"{slots}")


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
        used |= set(_SLOT.findall(message["content"]))
    if messages[-1]["role"] != "user":
        raise _refusal(path, "a last message of the role user", f"{messages[-1]['role']!r}")
    if used != slots:
        missing, unknown = sorted(slots - used), sorted(used - slots)
        parts = [f"{missing} missing"] * bool(missing) + [f"{unknown} unknown"] * bool(unknown)
        listed = ", ".join(f"{{{{{slot}}}}}" for slot in sorted(slots))
        raise _refusal(path, f"the slots {listed}", " and ".join(parts))


def _refusal(path: Path, expected: str, came: str) -> SettingsError:
    return SettingsError(f"{_VARIABLE}: {path}: expected {expected}, got {came:.300}")
