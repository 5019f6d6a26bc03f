"""What is scored and how, as every engine is told it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.settings import JudgeSettings, data_settings
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.scorer.keywords import KEYS, ScorerSettings, read_keywords
from lmms_eval_captions.lmms_eval_tasks.scorer.protocols import protocol_of

COLUMNS: Final = ("clip_id", "caption", "questions", "reference", "video")
"""What is read, by our names."""
_ALWAYS: Final = ("clip_id", "caption")


@dataclass(frozen=True, kw_only=True)
class Captioning:
    """How captions are written that are not there."""

    captioner: str
    """One of our captioners, or a class of the user's as ``package.module:Class``."""
    arguments: str = ""
    """As lmms-eval's ``--model_args``."""
    prompt: str
    """What it is asked about each clip."""


@dataclass(frozen=True, kw_only=True)
class ScoreSpec:
    """A way of scoring the rows of tables. Can be pickled; holds no key."""

    protocol_name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the scorer, by keyword, without keys."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Our name of a column to that in the tables, where it differs."""
    videos: Path | None = None
    """Folder that the names of videos are below, by default where the command was called."""
    captioning: Captioning | None = None
    """Who writes the captions that are not there, ``None`` where these are unscored."""
    spent_usd: float = 0.0
    """US dollars of the limit of cost that are spent."""
    unavailable: tuple[str, ...] = ()
    """Metrics that could not be computed where the command was called, whatever the judge says."""

    @classmethod
    def of_settings(
        cls,
        protocol: str,
        settings: JudgeSettings,
        *,
        videos: Path | None = None,
        **more: Any,  # noqa: ANN401 - its other fields
    ) -> ScoreSpec:
        """The spec of a run with these settings.

        Raises:
            SettingsError: If there is no protocol of this name.
        """
        known = {each.name for each in fields(settings)} & set(ScorerSettings.__annotations__)
        keywords = {name: getattr(settings, name) for name in sorted(known - set(KEYS))}
        # Other processes, and other machines, work elsewhere.
        absolute = {
            name: value.absolute() if isinstance(value, Path) else value
            for name, value in keywords.items()
        }
        videos = (videos or Path()).expanduser().absolute()
        spec = cls(protocol_name=protocol, settings=absolute, videos=videos, **more)
        metrics = spec.protocol.benchmark.metrics.items()
        unavailable = [name for name, metric in metrics if metric.unavailable_here() is not None]
        return replace(spec, unavailable=tuple(unavailable))

    @cached_property
    def protocol(self) -> ClipProtocol:
        """The protocol.

        Raises:
            SettingsError: If there is none of this name.
        """
        return protocol_of(self.protocol_name)

    @property
    def columns(self) -> list[str]:
        """The columns that tables must have, as they are called there."""
        needed = {*_ALWAYS, *self.protocol.needs}
        if self.captioning is not None:
            needed = (needed - {"caption"}) | {"video"}
        return [self.name_of(name) for name in COLUMNS if name in needed]

    @property
    def read_columns(self) -> list[str]:
        """The columns that are read: captions that are to be written may be there, too."""
        return list(dict.fromkeys([*self.columns, self.name_of("caption")]))

    def video_path(self, name: str) -> Path:
        """The file of a video."""
        return (self.videos or Path()) / name

    @property
    def concurrency(self) -> int:
        """Requests that may be in flight."""
        return int(self.settings["concurrency"])

    def name_of(self, column: str) -> str:
        """A column's name in the tables."""
        return self.names.get(column, column)

    @property
    def digest(self) -> str:
        """What tells scores of this kind from others, 16 letters."""
        settings = read_keywords(self.settings)
        config = self.protocol.benchmark.judge_config(settings)
        prompts = config.prompts.extras(self.protocol.task.judge_prompts)
        moving = (config.model, config.protocol, config.temperature, config.max_tokens, config.runs)
        extras = {**config.signature_fields, **prompts}
        captioning = None if self.captioning is None else asdict(self.captioning)
        videos = self.videos if self.name_of("video") in self.columns else None
        # What counts tokens moves no verdict, but a metric.
        places = [str(place) for place in (videos, data_settings().t5)]
        made_of: list[object] = [
            self.protocol_name,
            moving,
            extras,
            dict(self.names),
            captioning,
            places,
        ]
        # Without these the digest is as it was before there were any: its scores stay valid.
        if settings.store_by == "endpoint":
            made_of.append({"endpoints": sorted(settings.endpoint.names)})
        if self.unavailable:
            made_of.append({"unavailable": self.unavailable})
        text = json.dumps(made_of)
        return hashlib.blake2b(text.encode("utf-8"), digest_size=8).hexdigest()

    def with_settings(self, **changes: object) -> ScoreSpec:
        """The same with other settings."""
        return replace(self, settings={**self.settings, **changes})

    def divided(self, n_scorers: int) -> ScoreSpec:
        """The spec of each of several scorers, whose limits together are those of this one.

        Requests in flight are rounded up to a whole number for each of them.

        Args:
            n_scorers: How many work at once, >= 1.
        """
        settings = dict(self.settings)
        for name in ("max_cost_usd", "rate"):
            if settings.get(name) is not None:
                settings[name] /= n_scorers
        settings["concurrency"] = math.ceil(self.concurrency / n_scorers)
        return replace(self, settings=settings, spent_usd=self.spent_usd / n_scorers)
