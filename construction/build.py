"""A benchmark's files from a folder of clips, and what they would cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from lmms_eval_captions.construction.categories import read_categories
from lmms_eval_captions.construction.media import Frames, check_is_no_link, find_videos, link_videos
from lmms_eval_captions.construction.models import ModelPool
from lmms_eval_captions.construction.people import read_answers
from lmms_eval_captions.construction.pipeline import (
    FOLDER,
    BuildContext,
    Done,
    Kind,
    Options,
    Planned,
    Row,
    kept,
    run_stages,
)
from lmms_eval_captions.judges.endpoint.cost import load_prices, price_of
from lmms_eval_captions.judges.endpoint.replies import CHARS_PER_TOKEN, PICTURE_TOKENS
from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.protocols.prompt import Prompts, file_and_key
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.locks import only_one
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.model_wrappers.paid_endings import finishing

KINDS: Final = ("capquiz", "vcapsbench", "vdc", "vidcapbench")
"""Names of the benchmarks that can be built."""
_REQUEST_CHARS: Final = 120
"""Characters of a request in addition to its texts."""


def kind_of(name: str) -> Kind:
    """Return a benchmark by its name, one of :data:`KINDS`."""
    module = import_module(f"lmms_eval_captions.construction.kinds.{name}")
    kind: Kind = getattr(module, name.upper())
    return kind


@dataclass(frozen=True, slots=True)
class Built:
    """Result of a build."""

    kind: Kind
    options: Options
    done: Sequence[Done]
    context: BuildContext
    files: Mapping[str, int]
    """Official file to its number of questions; empty if the build ended early, or none is left."""

    @property
    def n_questions(self) -> int:
        """Questions in all files."""
        return sum(self.files.values())

    @property
    def n_lost(self) -> int:
        """Requests without a reply, which the next run sends again."""
        return sum(done.n_lost for done in self.done)


def build(
    kind: Kind, options: Options, settings: JudgeSettings, pool: ModelPool | None = None
) -> Built:
    """Run the stages without a valid file, and write the benchmark's files.

    Raises :class:`CaptionsError` if anything cannot be used, read, asked or written; every reply is
    stored.
    """
    check_folders(options)
    _check_is_ours(options)
    check_is_no_link(options.folder / FOLDER)
    # Read now, so that a fault in them is reported before models are paid.
    read_answers(options.labels, kind.name)
    prompts = Prompts(settings.prompts)
    prompts.check()
    _check_prices(kind, options, settings)
    context = BuildContext(
        options=options,
        settings=settings,
        prompts=prompts,
        videos=find_videos(options.videos, options.limit),
        frames=Frames(n_frames=options.n_frames, frame_pixels=options.frame_pixels),
        pool=ModelPool(settings, options.max_cost_usd) if pool is None else pool,
        categories=read_categories(kind, options.categories),
    )
    try:
        # SIGTERM, too, writes down what was billed.
        with (
            only_one(options.folder / FOLDER, named=options.folder, doing="builds", option="-o"),
            finishing(context.pool.close),
        ):
            done = run_stages(kind.stages(options), context)
            rows = kept(context.rows[done[-1].stage.name])
            is_part = options.stage or options.until
            files = _write(kind, context, rows) if rows and not is_part else {}
    finally:
        context.pool.close()
        context.frames.close()
    return Built(kind, options, done, context, files)


def check_folders(options: Options) -> None:
    """Raise if clips would be built into their own folder, or taken from the benchmark's."""
    videos, data = options.videos.expanduser().resolve(), options.data.expanduser().resolve()
    if videos == data or videos in data.parents:
        raise SettingsError(
            f"-o: expected a folder outside --videos, got {str(options.data)!r} within it: the "
            "links to the clips there would be taken for clips"
        )
    if options.folder.expanduser().resolve() in (videos, *videos.parents):
        raise SettingsError(
            f"--videos: expected a folder outside {str(options.folder)!r}, in which the benchmark "
            f"is built, got {str(options.videos)!r}; build into another folder with -o"
        )


def _check_prices(kind: Kind, options: Options, settings: JudgeSettings) -> None:
    """Raise if a cost limit is set and a model that is asked later has no price."""
    if options.max_cost_usd is None:
        return
    prices = load_prices(settings.prices)
    roles = {role for stage in kind.stages(options) for role in stage.roles}
    for model in (model for role in sorted(roles) for model in options.models(role)):
        try:
            price_of(model.name, prices, "builder")
        except JudgeStoppedError as error:
            raise SettingsError(str(error)) from error


def _check_is_ours(options: Options) -> None:
    """Raise if the benchmark's folder holds files of something other than a build."""
    folder = options.folder
    others = sorted(
        path for path in folder.rglob("*.json*") if FOLDER not in path.relative_to(folder).parts
    )
    if others and not (folder / FOLDER).is_dir():
        raise SettingsError(
            f"-o: {str(folder)!r} holds {others[0].name!r}, which no build made, and would be "
            "overwritten; build into another folder"
        )


def _write(kind: Kind, context: BuildContext, rows: list[Row]) -> Mapping[str, int]:
    files = kind.write(context, rows)
    in_use = {row["video"] for row in rows}
    videos: Path = context.options.folder / kind.video_folder
    try:
        link_videos([video for video in context.videos if video.video_id in in_use], videos)
    except OSError as error:
        raise DataError(
            f"{videos}: the clips cannot be linked there: {error}; the questions are written, and "
            "the same command resumes"
        ) from error
    return files


def estimate_table(kind: Kind, options: Options, settings: JudgeSettings) -> Iterator[str]:
    """Yield the estimate as lines: requests, tokens and cost by prompt and model."""
    check_folders(options)
    n_clips = len(find_videos(options.videos, options.limit))
    n_categories = len(read_categories(kind, options.categories))
    prompts, prices = Prompts(settings.prompts), load_prices(settings.prices)
    prompts.check()
    rows: list[tuple[str, ...]] = [
        ("prompt", "model", "calls", "input tokens", "output tokens", "cost")
    ]
    totals, costs = [0.0, 0.0, 0.0], []
    side = round(options.frame_pixels**0.5)
    for planned in kind.plan(options, n_categories):
        n = n_clips * planned.n_requests / len(planned.models)
        for model in planned.models:
            price = prices.price(model.name)
            picture_tokens = price.picture_tokens(side, side) if price else PICTURE_TOKENS
            n_input = n * _input_tokens(planned, prompts, options.n_frames * picture_tokens)
            n_output = n * planned.output_chars / CHARS_PER_TOKEN
            usd = prices.cost_usd(model.name, input_tokens=n_input, output_tokens=n_output)
            rows.append((planned.prompts[0], model.name, *_cells((n, n_input, n_output), usd)))
            totals = [total + x for total, x in zip(totals, (n, n_input, n_output), strict=True)]
            costs.append(usd)
    known = [usd for usd in costs if usd is not None]
    rows.append(("all", "", *_cells(totals, sum(known) if len(known) == len(costs) else None)))
    yield from text_table(rows, n_left=2)
    yield ""
    yield (
        f"{kind.name} of {n_clips:,} clips, {options.n_frames} frames each, at most "
        f"{options.per_video} questions per clip{'' if kind.categories else ' and aspect'}; prices "
        f"of {prices.as_of}."
    )
    yield (
        "Assumes readable replies of typical length and that no question is dropped. "
        f"{CHARS_PER_TOKEN:g} characters per token. Stored replies of an earlier run cost nothing. "
        "--max-cost is a limit that is never exceeded."
    )


def _input_tokens(planned: Planned, prompts: Prompts, frame_tokens: float) -> float:
    n_chars = _REQUEST_CHARS + planned.input_chars
    for name in planned.prompts:
        file, key = file_and_key(name)
        content = prompts.read(file).get(key) or next(iter(prompts.read(file).values()))
        texts = [content] if isinstance(content, str) else [each["content"] for each in content]
        n_chars += sum(map(len, texts))
    return n_chars / CHARS_PER_TOKEN + planned.has_frames * frame_tokens


def _cells(counts: tuple[float, ...] | list[float], usd: float | None) -> tuple[str, ...]:
    return *(f"{n:,.0f}" for n in counts), "price unknown" if usd is None else f"${usd:,.2f}"
