"""Prompts: texts with slots, read from the package or from the user's folder."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import yaml

from lmms_eval_captions.judges.endpoint.request import Message, Picture
from lmms_eval_captions.judges.errors import INSTALL_EVAL, SettingsError
from lmms_eval_captions.judges.files import read_yaml_file, whole_json

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
    found = [_FOLDER]
    for point in entry_points(group="lmms_eval_captions.benchmarks"):
        with suppress(ImportError):
            found.append(resources.files(point.module.rpartition(".")[0]) / "prompts")
    return [folder for folder in found if folder.is_dir()]


def attach_pictures(messages: Sequence[Message], *pictures: Picture) -> list[Message]:
    """The messages with pictures after the words of the last one, in their order.

    They are marked as of high detail: an endpoint that may choose could scale them down.
    """
    *before, last = messages
    parts: list[Message] = [{"type": "text", "text": last["content"]}]
    for picture in pictures:
        url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
        parts.append({"type": "image_url", "image_url": {"url": url, "detail": "high"}})
    return [*before, {**last, "content": parts}]


_VARIABLE: Final = "LMMS_CAPTIONS_PROMPTS"
_ROLES: Final = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Prompts:
    """Every prompt by name, such as ``vdc_answer``."""

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
        """Signature field ``prompts`` of custom prompts, empty if all are those of the papers."""
        changed: dict[str, object] = {}
        for name in names:
            file, key = file_and_key(name)
            if self.read(file)[key] != read_yaml(file)[key]:
                changed[name] = self.read(file)[key]
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
        if path.stem not in packaged or path.suffix != ".yaml":
            raise SettingsError(
                f"{_VARIABLE}: {str(path)!r} is none of our prompts; expected files called "
                f"{', '.join(f'{name}.yaml' for name in packaged)}"
            )
    if not paths:
        raise SettingsError(
            f"{_VARIABLE}: expected at least one file such as {packaged[0]}.yaml in "
            f"{str(folder)!r}, it is empty"
        )
    return {path.stem: _read(path) for path in paths}


def _packaged_names() -> list[str]:
    names = (entry.name for folder in _folders() for entry in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def _read(path: Path) -> Content:
    refusal: tuple[str, str] | None
    try:
        loaded = read_yaml_file(path)
        refusal = _refusal(loaded, read_yaml(path.stem))
    except (OSError, ValueError) as error:
        loaded, refusal = None, ("a YAML file in UTF-8", str(error))
    if refusal is not None:
        raise SettingsError(f"{_VARIABLE}: {path}: expected {refusal[0]}, got {refusal[1]:.300}")
    # Without lone surrogates, which YAML can spell as JSON does.
    content: Content = json.loads(whole_json(json.dumps(loaded, default=str)))
    return content


def _refusal(loaded: object, ours: Content) -> tuple[str, str] | None:
    """Return what a file was expected to hold, and what it holds instead."""
    if not isinstance(loaded, dict) or set(loaded) != set(ours):
        came = f"the keys {list(loaded)!r:.120}" if isinstance(loaded, dict) else f"{loaded!r:.80}"
        return f"the keys {', '.join(ours)}", came
    for key, prompt in ours.items():
        is_text, value = isinstance(prompt, str), loaded[key]
        if is_text and not (isinstance(value, str) and value.strip()):
            return f"a text under {key!r}", f"{value!r:.80}"
        if is_text and (slots := sorted(set(_SLOT.findall(value)))):
            return f"no slots under {key!r}", f"{slots}"
        refusal = None if is_text else _refused_messages(value, Prompt(prompt).slots)  # type: ignore[arg-type] # messages
        if refusal is not None:
            return refusal
    return None


def _refused_messages(messages: object, slots: set[str]) -> tuple[str, str] | None:
    if not isinstance(messages, list) or not messages:
        return "a list of messages", f"{messages!r:.80}"
    for message in messages:
        if not isinstance(message, dict) or set(message) != {"role", "content"}:
            return "messages with a role and a content", f"{message!r:.80}"
        if message["role"] not in _ROLES or not isinstance(message["content"], str):
            return f"a role among {', '.join(_ROLES)} and a text as content", f"{message!r:.80}"
    if messages[-1]["role"] != "user":
        return "a last message of the role user", f"{messages[-1]['role']!r}"
    used = Prompt(messages).slots
    listed = ", ".join(f"{{{{{slot}}}}}" for slot in sorted(slots))
    differences = {"missing": sorted(slots - used), "unknown": sorted(used - slots)}
    parts = [f"{names} {word}" for word, names in differences.items() if names]
    return (f"the slots {listed}", " and ".join(parts)) if parts else None


_RELEASED: Final = {"vdc_answer": "gener_pred_response", "vdc_match": "gener_pred_score"}
_SCRIPT_SLOTS: Final = {
    "pred_cap": "caption", "q": "question", "question": "question", "answer": "answer",
    "pred_answer": "predicted_answer",
}  # fmt: skip
"""Names in the script to those of our prompts' slots."""


@cache
def released_prompts() -> Mapping[str, Mapping[str, Messages]]:
    """Return VDC's prompts as its authors released them, which an installed lmms-eval has, too.

    The file is parsed and not run: it needs SGLang and variables of its own.

    Source: AuroraCap's ``post_eval/process_vdc_result.py`` (rese1f/aurora), in lmms-eval's
    ``tasks/vdc/utils.py``.
    """
    spec = find_spec("lmms_eval")
    places = (spec and spec.submodule_search_locations) or []
    path = next((Path(place) / "tasks" / "vdc" / "utils.py" for place in places), None)
    if path is None:
        raise SettingsError(
            "LMMS_CAPTIONS_JUDGE=as-published: VDC's released wording is read from lmms-eval, "
            f"which is not installed. Run: {INSTALL_EVAL}"
        )
    try:
        tree = ast.parse(path.read_text("utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        return {
            name: {"messages": list(_released_messages(functions[function]))}
            for name, function in _RELEASED.items()
        }
    except (OSError, SyntaxError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"LMMS_CAPTIONS_JUDGE=as-published: {path} does not hold VDC's released wording as "
            f"lmms-eval 0.7.3 does ({error!r:.120})"
        ) from error


def _released_messages(function: ast.FunctionDef) -> Iterator[dict[str, str]]:
    for statement in function.body:
        call = statement.value if isinstance(statement, ast.AugAssign) else None
        role = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and role in ("system", "user"):
            yield {"role": role, "content": _text(call.args[0])}


def _text(node: ast.expr) -> str:
    texts = []
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if isinstance(part, ast.Constant):
            texts.append(str(part.value))
        else:
            value = part.value if isinstance(part, ast.FormattedValue) else part
            is_item = isinstance(value, ast.Subscript)
            name = ast.literal_eval(value.slice) if is_item else value.id  # type: ignore[attr-defined] # a name, else another wording
            texts.append(f"{{{{{_SCRIPT_SLOTS[name]}}}}}")
    return "".join(texts)
