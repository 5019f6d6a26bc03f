"""Reading the structured captions of a video: five texts, each under its name.

Source: AuroraCap (arXiv 2410.03051), appendix K. Its first prompt asks for a Python dictionary, its
printed reply has labels ("Short Caption: ...") in the place of one; both are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.objects import objects_in, said
from lmms_eval_captions.lmms_eval_tasks.commands.building.replies.values import Object

NAMES: Final = ("short", "background", "main_object", "camera", "reference")
"""The captions, by the names that VDC's files have for them, and the one that a second prompt
makes the detailed caption of."""
_CAPTION: Final = "short|background|main[ _-]?object|camera|reference"
# Bounded, as several of these stand side by side: no reply may take long to read.
_LABEL: Final = re.compile(
    rf"(?:^[ \t*_#>\"'(-]{{0,8}}(?:[0-9][.)][ \t*_]{{0,4}})?(?P<line>{_CAPTION})(?:[ _]caption)?"
    # Within a line only with the whole name behind a sentence, as the paper prints it.
    rf"|(?<=[.!?]\s)(?P<within>{_CAPTION})[ ]caption)[ \t*_\"']{{0,4}}:[ \t*_]{{0,4}}",
    re.IGNORECASE | re.MULTILINE,
)
_AROUND: Final = " \t\r\n*_`"


def read_captions(reply: Reply) -> Mapping[str, str] | None:
    """The five captions of a video by their names, ``None`` where one is missing or there twice.

    >>> text = "{'short caption': 'A dog runs.', 'Background Caption': 'A beach.', "
    >>> text += "'main_object': 'A dog.', 'camera': 'It pans.', 'reference caption': 'A dog ...'}"
    >>> read_captions(Reply(text, "stop"))["main_object"]
    'A dog.'
    """
    text = said(reply.text)
    objects = [value for value in objects_in(text) if any(_name(key) for key, _ in value)]
    if objects:
        return _of_object(objects[0]) if len(objects) == 1 else None
    # The last one of a reply that was cut may be half a caption.
    return None if reply.finish_reason == "length" else _of_labels(text)


def _of_object(value: Object) -> Mapping[str, str] | None:
    captions: list[tuple[str, str]] = []
    for key, inner in value:
        name = _name(key)
        if name is not None:
            captions.append((name, inner.strip() if isinstance(inner, str) else ""))
    return _all_of(captions)


def _of_labels(text: str) -> Mapping[str, str] | None:
    labels = list(_LABEL.finditer(text))
    ends = [*(label.start() for label in labels[1:]), len(text)]
    return _all_of(
        [
            (_name(label["line"] or label["within"]) or "", text[label.end() : end].strip(_AROUND))
            for label, end in zip(labels, ends, strict=False)
        ]
    )


def _all_of(captions: list[tuple[str, str]]) -> Mapping[str, str] | None:
    """The captions in the order of their names, where each is there once and says something."""
    by_name = dict(captions)
    if len(captions) != len(NAMES) or not all(by_name.get(name) for name in NAMES):
        return None
    return {name: by_name[name] for name in NAMES}


def _name(key: str) -> str | None:
    """The name of a caption, ``None`` for another key.

    >>> _name("Main Object Caption"), _name("short"), _name("title")
    ('main_object', 'short', None)
    """
    words = re.split(r"[\s_-]+", key.strip().casefold())
    name = "_".join(words[:-1] if words[-1] == "caption" else words)
    return name if name in NAMES else None
