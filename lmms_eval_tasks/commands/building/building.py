"""A benchmark's files out of a folder of clips: the stages, the files, and the data card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_captions.judges.endpoint.cost import load_prices, price_of
from lmms_eval_captions.judges.errors import DataError, JudgeStoppedError, SettingsError
from lmms_eval_captions.judges.files import read_yaml_file
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import JudgeSettings
from lmms_eval_captions.lmms_eval_tasks.commands.alone import alone_in
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import read_answers
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Crew, Engines, Rehearsal
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.form import letters_of
from lmms_eval_captions.lmms_eval_tasks.commands.building.frames import Frames
from lmms_eval_captions.lmms_eval_tasks.commands.building.kinds.kind import Kind
from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import FOLDER, Done, run_stages
from lmms_eval_captions.lmms_eval_tasks.commands.building.videos import find_videos, link_videos
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work, kept
from lmms_eval_captions.model_wrappers.paid_endings import finishing


@dataclass(frozen=True, slots=True)
class Built:
    """What came of a build."""

    kind: Kind
    options: Options
    done: Sequence[Done]
    work: Work
    files: Mapping[str, int]
    """Official file to its number of questions; none where only a stage was run, or nothing is
    left."""

    @property
    def n_questions(self) -> int:
        """Of all files."""
        return sum(self.files.values())

    @property
    def n_lost(self) -> int:
        """Requests without a reply, which the next run asks again."""
        return sum(done.n_lost for done in self.done)


class NothingLeftError(DataError):
    """Every question was dropped on its way through the stages.

    Args:
        built: What came of the stages, which say why.
    """

    def __init__(self, built: Built) -> None:
        self.built = built
        super().__init__(
            f"build {built.kind.name}: no question is left. The stages' files in "
            f"{built.options.folder / FOLDER} say why each was dropped; take a larger model, more "
            "clips, or another --solver"
        )


def build(kind: Kind, options: Options, settings: JudgeSettings, crew: Crew | None = None) -> Built:
    """Run the stages that are not there yet, and write the benchmark's files.

    Args:
        kind: The benchmark.
        options: What is asked for.
        settings: Where replies are kept, prices and prompts.
        crew: Who is asked, by default the endpoints of the options' models.

    Raises:
        SettingsError: If the options cannot be used, or another process builds there.
        DataError: If there are no clips, none can be read, or people's answers cannot be read.
        NothingLeftError: If no question is left.
        JudgeError: If a model cannot be asked; everything that was answered is kept.
    """
    check_folders(options)
    _check_is_ours(options)
    # What is wrong with them is said before models are paid.
    read_answers(options.labels, kind.name)
    prompts = Prompts(settings.prompts)
    prompts.check()
    if not isinstance(crew, Rehearsal):
        _check_prices(kind, options, settings)
    work = Work(
        options=options,
        settings=settings,
        prompts=prompts,
        videos=find_videos(options.videos, options.limit),
        frames=Frames(n_frames=options.n_frames, frame_pixels=options.frame_pixels),
        crew=Engines(settings, options.max_cost_usd) if crew is None else crew,
        categories=categories_of(kind, options.categories),
        is_rehearsal=isinstance(crew, Rehearsal),
    )
    try:
        # What SIGTERM ends writes down what it was billed for, too.
        with (
            alone_in(options.folder / FOLDER, of=options.folder, doing="builds", option="-o"),
            finishing(work.crew.close),
        ):
            done = run_stages(kind.stages(options), work, options.stage)
            rows = kept(work.rows[done[-1].stage.name])
            is_part = bool(options.stage or options.until)
            if not (rows or is_part):
                raise NothingLeftError(Built(kind, options, done, work, {}))
            files = {} if is_part else _write(kind, work, rows)
    finally:
        work.crew.close()
        work.frames.close()
    return Built(kind, options, done, work, files)


def _check_prices(kind: Kind, options: Options, settings: JudgeSettings) -> None:
    """Raise where a limit of cost is set and a model that is asked later on has no price."""
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
    """Raise where the benchmark's folder holds files that no build made."""
    folder = options.folder
    others = sorted(
        path for path in folder.rglob("*.json*") if FOLDER not in path.relative_to(folder).parts
    )
    if others and not (folder / FOLDER).is_dir():
        raise SettingsError(
            f"-o: {str(folder)!r} holds {others[0].name!r}, which no build made, and would be "
            "written over; build into another folder"
        )


def categories_of(kind: Kind, path: Path | None) -> Mapping[str, str]:
    """Category of questions to its definition: the paper's, or those of a file.

    Args:
        kind: The benchmark.
        path: YAML or JSON: names of categories, each with its definition.

    Raises:
        SettingsError: If the file is none of categories, or the kind has fixed ones.
    """
    if path is None:
        return kind.categories
    if not kind.categories:
        raise SettingsError(
            f"--categories: {kind.name} has fixed aspects; leave it out, or build another kind"
        )
    try:
        loaded = read_yaml_file(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"--categories: {path}: cannot be read: {error}") from error
    is_whole = isinstance(loaded, dict) and all(
        isinstance(text, str) and text.strip() and "*" not in text
        for pair in loaded.items()
        for text in pair
    )
    if not isinstance(loaded, dict) or not loaded or not is_whole:
        raise SettingsError(
            f"--categories: {path}: expected names of categories, each with its definition, such "
            f"as 'safety: whether a rule of safety is broken' (no '*'), got {loaded!r:.120}"
        )
    _check_are_apart(path, list(loaded))
    return {" ".join(name.split()): definition for name, definition in loaded.items()}


def _check_are_apart(path: Path, names: Sequence[str]) -> None:
    """Raise where what a model writes could mean two categories."""
    by_letters: dict[str, list[str]] = {}
    for name in names:
        by_letters.setdefault(letters_of(name), []).append(name)
    alike = next((same for same in by_letters.values() if len(same) > 1), None)
    if alike or "" in by_letters:
        raise SettingsError(
            f"--categories: {path}: expected names that differ in letters or digits, as case, "
            f"spaces and signs are not looked at, got {', '.join(alike or by_letters[''])}; "
            "write a sign as a word, such as 'C plus plus'"
        )


def check_folders(options: Options) -> None:
    """Raise where clips would be built into their own folder, or taken from the benchmark's.

    Raises:
        SettingsError: If they would.
    """
    videos, data = options.videos.expanduser().resolve(), options.data.expanduser().resolve()
    if videos == data or videos in data.parents:
        raise SettingsError(
            f"-o: expected a folder outside --videos, got {str(options.data)!r} within it: the "
            "links to the clips there would be taken for clips"
        )
    if options.folder.expanduser().resolve() in (videos, *videos.parents):
        raise SettingsError(
            f"--videos: expected a folder outside {str(options.folder)!r}, which the benchmark is "
            f"built in, got {str(options.videos)!r}; build into another folder with -o"
        )


def _write(kind: Kind, work: Work, rows: list[Row]) -> Mapping[str, int]:
    files = kind.write(work, rows)
    in_use = {row["video"] for row in rows}
    videos = work.options.folder / kind.video_folder
    try:
        link_videos([video for video in work.videos if video.video_id in in_use], videos)
    except OSError as error:
        raise DataError(
            f"{videos}: the clips cannot be put there: {error}; the questions are written, and the "
            "same command goes on from there"
        ) from error
    return files
