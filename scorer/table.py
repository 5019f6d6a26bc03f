"""Tables of captions, and the tables of their scores: a row for each row, in the same order."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lmms_eval_captions.judges.endpoint.cost import Purse
from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import data_settings, read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.common.clip_protocol import Clip, ClipProtocol, shown
from lmms_eval_captions.lmms_eval_tasks.judging.judged_caption import caption_score
from lmms_eval_captions.lmms_eval_tasks.records import NO_CAPTION
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.model_wrappers.caption_clips import ClipCaptioner, captioner_class
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.scorer.columns import (
    caption_of,
    clip_name,
    is_missing,
    questions_of,
    references_of,
    video_in,
)
from lmms_eval_captions.scorer.scorer import NO_CAPTION_GIVEN, CaptionScore, Scorer, in_order
from lmms_eval_captions.scorer.settings import KEYS, ScorerSettings, protocol_of, read_keywords

if TYPE_CHECKING:
    import pyarrow as pa

    from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
    from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

    Rows = tuple[int, "pa.Table | DataError | None"]
    """Number of a file with its next rows, why there are no more, or ``None`` at its end."""

Row = dict[str, Any]
COLUMNS: Final = ("clip_id", "caption", "questions", "reference", "video")
"""Columns that are read, by our names."""
HALVES: Final = ("first_half", "second_half")
"""Columns of the headline by every other question, or judge run."""
_AHEAD: Final = 8
"""Rows that are submitted and not answered, as a multiple of the requests in flight."""


@dataclass(frozen=True, kw_only=True)
class ScoreSpec:
    """Settings of scoring tables. Can be pickled; holds no key."""

    protocol_name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the scorer by keyword, without keys."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Our name of a column to that in the tables, if it differs."""
    videos: Path = Path()
    """Folder in which the videos lie."""
    captioner: tuple[str, str, str] | None = None
    """Name, arguments and prompt of who writes missing captions; ``None`` leaves them unscored."""
    unavailable: tuple[str, ...] = ()
    """Metrics that cannot be computed on the machine of the command, whatever the judge says."""

    @classmethod
    def of_environment(
        cls,
        protocol: str,
        *,
        videos: Path | None,
        names: Mapping[str, str],
        captioner: tuple[str, str, str | None] | None = None,
    ) -> ScoreSpec:
        """Return the spec with the settings of the environment; see the attributes.

        The captioner is one of ours, or a custom class as ``package.module:Class``; its prompt is
        by default the protocol's.
        """
        settings = read_judge_settings()
        known = {each.name for each in fields(settings)} & set(ScorerSettings.__annotations__)
        # Other processes, and other machines, work in other folders.
        keywords = {
            name: value.absolute() if isinstance(value := getattr(settings, name), Path) else value
            for name in sorted(known - set(KEYS))
        }
        asked = protocol_of(protocol)
        metrics = asked.benchmark.metrics.items()
        written_by = None
        if captioner is not None:
            name, arguments, prompt = captioner
            if ":" not in name:
                captioner_class(name)
            if prompt is None:
                file, _, key = asked.task.caption_prompt.partition(".")
                prompt = Prompts(settings.prompts).text(file, key)
            written_by = name, arguments, prompt
        return cls(
            protocol_name=protocol,
            settings=keywords,
            videos=(videos or Path()).expanduser().absolute(),
            unavailable=tuple(n for n, metric in metrics if metric.unavailable_here() is not None),
            names=names,
            captioner=written_by,
        )

    @cached_property
    def protocol(self) -> ClipProtocol:
        """The protocol."""
        return protocol_of(self.protocol_name)

    @property
    def needed(self) -> list[str]:
        """Columns that tables must have, by our names."""
        needed = {"clip_id", *self.protocol.needs, "video" if self.captioner else "caption"}
        return [name for name in COLUMNS if name in needed]

    @property
    def read_columns(self) -> list[str]:
        """Columns that are read, by their own names: if captions are written, there may be some."""
        return [self.name_of(name) for name in dict.fromkeys([*self.needed, "caption"])]

    def name_of(self, column: str) -> str:
        """Return a column's name in the tables."""
        return self.names.get(column, column)

    @property
    def digest(self) -> str:
        """Digest of everything that affects scores, 16 letters."""
        settings = read_keywords(self.settings)
        config = self.protocol.benchmark.judge_config(settings)
        made_of = [
            self.protocol_name,
            (config.model, config.protocol, config.temperature, config.max_tokens, config.runs),
            {**config.signature_fields, **config.prompts.extras(self.protocol.task.judge_prompts)},
            dict(self.names),
            self.captioner,
            str(self.videos) if "video" in self.needed else None,
            str(data_settings().t5),  # counts tokens, of which metrics are made
            sorted(settings.endpoint.names) if settings.store_by == "endpoint" else None,
            self.unavailable,
        ]
        return hashlib.blake2b(json.dumps(made_of).encode(), digest_size=8).hexdigest()

    def divided(self, n_scorers: int) -> ScoreSpec:
        """Return the spec of each of several scorers, for concurrency and rate of all together."""
        rate = self.settings.get("rate")
        shares = {
            "rate": None if rate is None else rate / n_scorers,
            "concurrency": math.ceil(self.settings["concurrency"] / n_scorers),
        }
        return replace(self, settings={**self.settings, **shares})


def schema_of(spec: ScoreSpec) -> pa.Schema:
    """Return the columns of scored rows.

    ``clip_id``; ``caption``, if some are written; a score for each metric, null if there is none;
    ``n_questions`` (times judge runs) and ``n_unscored``; ``why_unscored``, null if all are scored;
    ``is_empty``; ``is_open``, true if a later run may have more verdicts; the ``verdicts`` that the
    headline reads, shape (runs, values); :data:`HALVES`; ``parts``, see :func:`_parts`, from which
    scores of any set of clips follow; ``judged_by``, the signature without its counts.
    """
    import pyarrow as pa

    benchmark = spec.protocol.benchmark
    is_label = bool(benchmark.metrics[benchmark.headline].labels)
    number = pa.float64()
    return pa.schema(
        [
            ("clip_id", pa.string()),
            *([] if spec.captioner is None else [("caption", pa.string())]),
            *((name, number) for name in benchmark.metrics),
            ("n_questions", pa.int32()),
            ("n_unscored", pa.int32()),
            ("why_unscored", pa.string()),
            ("is_empty", pa.bool_()),
            ("is_open", pa.bool_()),
            ("verdicts", pa.list_(pa.list_(pa.string() if is_label else number))),
            *((name, number) for name in HALVES),
            ("parts", pa.list_(pa.list_(number))),
            ("judged_by", pa.string()),
        ]
    )


class TableScorer:
    """Scores the rows of tables, as a context manager; a purse shares the cost limit."""

    def __init__(
        self, spec: ScoreSpec, *, progress: bool = False, purse: Purse | None = None
    ) -> None:
        self.spec = spec
        with ExitStack() as stack:
            self._scorer = stack.enter_context(
                Scorer(spec.protocol_name, progress=progress, purse=purse, **spec.settings)
            )
            self._captioner = None
            if spec.captioner is not None:
                name, arguments, prompt = spec.captioner
                captioner = ClipCaptioner(name, arguments, prompt=prompt)
                self._captioner = stack.enter_context(captioner)
            self._opened = stack.pop_all()

    def __enter__(self) -> TableScorer:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def scored(self, tables: Iterable[Rows]) -> Iterator[Rows]:
        """Yield the scores of tables, in their order; the judge is never idle between tables.

        Raises if the judge is asked nothing more: rows without scores are not a result then.
        """

        def submitted() -> Iterator[tuple[int, Callable[[], Rows]]]:
            for number, table in tables:
                if table is None or isinstance(table, DataError):
                    yield 0, lambda rows=(number, table): rows  # type: ignore[misc] # as it is
                else:
                    rows = _rows(table, self.spec)
                    self._write_captions(rows)
                    waits = list(map(self._submit_row, rows))
                    yield table.num_rows, partial(self._scored, number, waits)

        yield from in_order(submitted(), _AHEAD * self.spec.settings["concurrency"])

    def _scored(self, number: int, waits: Sequence[Callable[[], Row]]) -> Rows:
        import pyarrow as pa

        rows = [wait() for wait in waits]
        if self._scorer.stopped is not None:
            raise JudgeStoppedError(self._scorer.stopped)
        return number, pa.Table.from_pylist(rows, schema=schema_of(self.spec))

    def _write_captions(self, rows: Iterable[Row]) -> None:
        """Have the captioner, if there is one, write missing captions, or say why there is none."""
        if self._captioner is None:
            return
        due: list[tuple[Row, Path]] = []
        for row in rows:
            if is_missing(row["caption"]) and isinstance(row["video"], str):
                try:
                    due.append((row, video_in(self.spec.videos, row["video"])))
                except DataError as error:
                    row["caption"] = NoCaption(str(error))
        captions = self._captioner.captions([video for _, video in due])
        for (row, _), caption in zip(due, captions, strict=True):
            row["caption"] = caption

    def _submit_row(self, row: Row) -> Callable[[], Row]:
        clip_id, caption = row["clip_id"], row["caption"]
        try:
            clip = self._clip(row)
            pending = self._scorer.submit(self._scorer.document(clip), caption_of(caption))
        except DataError as error:
            # The clip's name stands next to it.
            problem = str(error).removeprefix(f"clip {str(clip_id)!r}: ")
        else:
            return lambda: self._scored_row(pending(), caption)
        return lambda: {
            "clip_id": None if clip_id is None or isinstance(clip_id, _NotText) else str(clip_id),
            "caption": _text_of(caption),
            "why_unscored": problem,
            "is_empty": False,
            # A row stays as it is, but the benchmark's own data may be there the next time.
            "is_open": not self.spec.protocol.needs,
        }

    def _clip(self, row: Row) -> Clip:
        for name, value in row.items():
            if isinstance(value, _NotText):
                raise DataError(f"{name}: expected text in UTF-8, got {value}")
        if row["clip_id"] is None:
            raise DataError("the row has no clip_id")
        needs, cache = self.spec.protocol.needs, self.spec.settings.get("cache")
        video = row["video"] if "video" in needs else None
        if video is not None and not isinstance(video, str):
            raise DataError(f"video: expected the name of a file, got {shown(video)}")
        return Clip(
            clip_id=clip_name(row["clip_id"]),
            questions=questions_of(row["questions"]) if "questions" in needs else None,
            references=references_of(row.get("reference")),
            frames=None if video is None else video_in(self.spec.videos, video),
            cache=None if cache is None else Path(cache),
        )

    def _scored_row(self, score: CaptionScore, caption: str | None) -> Row:
        benchmark, record = self._scorer.benchmark, score.record
        lacks_a_metric = any(
            name not in self.spec.unavailable and metric.unavailable([record]) is not None
            for name, metric in benchmark.metrics.items()
        )
        extras = {"runs": str(record.runs), "protocol": str(record.protocol), **record.extras}
        return {
            "clip_id": score.clip_id,
            "caption": _text_of(caption),
            **{name: _number(value) for name, value in score.scores.items()},
            "n_questions": score.n_questions,
            "n_unscored": score.n_unscored,
            "why_unscored": max(score.reasons, key=score.reasons.__getitem__, default=None),
            "is_empty": bool(record.n_empty),
            "is_open": lacks_a_metric or _may_pass(record),
            "verdicts": record.values[benchmark.headline],
            **dict(zip(HALVES, map(_number, _halves(benchmark, record)), strict=True)),
            "parts": _parts(benchmark, record),
            "judged_by": str(Signature(record.task, {"judge": record.judge, **extras})),
        }


class _NotText(str):
    """Stands for a text that is not UTF-8, or for a value with one; says why."""

    __slots__ = ()


def _rows(table: pa.Table, spec: ScoreSpec) -> list[Row]:
    """Return the rows of a table by our names; texts that are not UTF-8 as :class:`_NotText`."""
    columns: dict[str, list[Any]] = {"caption": [None] * table.num_rows}
    for name in (*spec.needed, "caption"):
        if spec.name_of(name) in table.column_names:
            columns[name] = _values(table[spec.name_of(name)])
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:  # noqa: ANN401 - of pyarrow
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return _NotText(error)


def _text_of(caption: object) -> str | None:
    """Return a caption as text, ``None`` if it is missing or none."""
    is_text = isinstance(caption, str) and not isinstance(caption, NoCaption | _NotText)
    return str(caption) if is_text else None


def _may_pass(record: CaptionRecord) -> bool:
    """Return whether a later run may have a verdict on a question that has none."""
    is_given = record.no_caption != f"{NO_CAPTION}{NO_CAPTION_GIVEN}"
    return is_given and bool(record.kinds.keys() - {"unreadable", "empty"})


def _halves(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> tuple[float, float]:
    """Return the headline by every other question; of one question, by every other judge run."""
    metric, runs = benchmark.metrics[benchmark.headline], record.values[benchmark.headline]
    n = metric.n_values
    if all(len(run) <= n for run in runs):
        return caption_score(metric, record, runs[::2]), caption_score(metric, record, runs[1::2])
    first, second = (
        [
            [value if index // n % 2 == half else None for index, value in enumerate(run)]
            for run in runs
        ]
        for half in (0, 1)
    )
    return caption_score(metric, record, first), caption_score(metric, record, second)


def _parts(benchmark: Benchmark[Any, Any], record: CaptionRecord) -> list[list[float]]:
    """Return what a caption adds to each metric's ratios, numerator and denominator in turn.

    Shape (n_runs * n_metrics, 2 * n_ratios of the metric), run by run.
    """
    n_runs = max(map(len, record.values.values()), default=0)
    return [
        [
            float(number)
            for pair in metric.ratios([record.values[name][run]], [record])[0]
            for number in pair
        ]
        for run in range(n_runs)
        for name, metric in benchmark.metrics.items()
        if metric.ratios is not None
    ]


def _number(value: float) -> float | None:
    return None if isnan(value) else value
