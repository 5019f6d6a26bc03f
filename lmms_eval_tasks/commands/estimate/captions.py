"""The captions that an estimate is about, by the arguments of the model ``caption_file``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions
from lmms_eval_captions.model_wrappers.model_args import refuse_unknown
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption

_KNOWN: Final = ("path", "column", "video_column", "missing")
_MISSING: Final = ("error", "skip", "drop")
_NONE: Final = "the caption file has none"


@dataclass(frozen=True, slots=True)
class CaptionArguments:
    """What ``--model_args`` says to ``caption_file``."""

    path: str
    column: str | None = None
    video_column: str | None = None
    missing: str = "error"
    is_plain: bool = True
    """Whether it is a path by itself, which says nothing of what a run does about missing ones."""

    @classmethod
    def parse(cls, text: str) -> CaptionArguments:
        """The arguments in a text, or the path that it is.

        Raises:
            SettingsError: If an argument is unknown, twice there, or cannot be used.

        >>> CaptionArguments.parse("captions/a=b.jsonl").path
        'captions/a=b.jsonl'
        >>> given = CaptionArguments.parse("path=a.csv,column=text,missing=drop")
        >>> given.path, given.column, given.missing
        ('a.csv', 'text', 'drop')
        """
        if text.partition("=")[0].strip() not in _KNOWN or Path(text).expanduser().exists():
            return cls(text)
        pairs = [part.partition("=") for part in text.split(",") if part.strip()]
        given = {name.strip(): value.strip() for name, _, value in pairs}
        refuse_unknown("caption_file", known=_KNOWN, unknown=set(given) - set(_KNOWN))
        if len(given) < len(pairs) or not given.get("path"):
            raise SettingsError(
                "--captions: expected path=FILE[,column=NAME][,video_column=NAME][,missing=...], "
                f"each once, got {text!r}"
            )
        missing = given.get("missing", "error")
        if missing not in _MISSING:
            raise SettingsError(f"missing={missing!r} is not one of {', '.join(_MISSING)}")
        return cls(
            given["path"], given.get("column"), given.get("video_column"), missing, is_plain=False
        )


class GivenCaptions:
    """The captions of a file as tasks are handed them, each counted once.

    Args:
        arguments: Where they are.

    Raises:
        CaptionError: If they cannot be read.
    """

    def __init__(self, arguments: CaptionArguments) -> None:
        self.arguments = arguments
        self.distinct: set[bytes] = set()
        """What stands for each caption that tasks were handed: of one video, and one text."""
        self._table_of = open_captions(arguments.path, arguments.column, arguments.video_column)

    def of_task(self, benchmark: Benchmark[Any, Any], task: Task, docs: Sequence[Doc]) -> list[str]:
        """The caption of each document, or what stands for one that is not there.

        Raises:
            CaptionError: If they cannot be read.
        """
        table = self._table_of(task.name)
        none = (DroppedCaption if self.arguments.missing == "drop" else NoCaption)(_NONE)
        captions: list[str] = []
        for doc in docs:
            names = benchmark.video_names(doc)
            texts = (table.find(name, task.aspect) for name in names)
            # lmms-eval strips what it hands to a task.
            caption = next((text.strip() for text in texts if text is not None), none)
            captions.append(caption)
            if not isinstance(caption, NoCaption):
                words = f"{names[0]}\0{caption}".encode("utf-8", "surrogatepass")
                self.distinct.add(blake2b(words, digest_size=16).digest())
        return captions
