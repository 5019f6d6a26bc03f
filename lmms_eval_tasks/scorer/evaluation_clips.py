"""Clips that captioners are evaluated with, none of which one may be trained on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import CaptionsError, DataError, SettingsError
from lmms_eval_captions.judges.files import json_lines, numbered_lines
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.task_names import known_names, our_benchmarks, tasks_of
from lmms_eval_captions.model_wrappers.caption_files.columns import plain_name, video_of
from lmms_eval_captions.model_wrappers.caption_files.tables import parquet_rows

OFFICIAL: Final = "official"
"""The tasks of the protocol's own benchmark."""
Evaluation = str | Path | Sequence[str | Path] | None
"""Tasks and groups of lmms-eval's, files of ids, :data:`OFFICIAL`, or nothing."""
_GO_WITHOUT: Final = "set evaluation=None to train without a look at the evaluation set"
_ENOUGH: Final = 3
"""Questions of one clip that are all among those of another, from which the two are one."""

Fact = tuple[str, str]
"""A question with its gold answer, or nothing with a reference caption; in one spelling."""


class EvaluationClips:
    """The clips of an evaluation set, by their names and by what is asked about them."""

    def __init__(self) -> None:
        self._where: dict[str, str] = {}
        """Name of a clip to what it is evaluated by."""
        self._clips: list[tuple[str, frozenset[Fact]]] = []
        """Where each stands that something is asked about, and what that is."""
        self._with: defaultdict[Fact, set[int]] = defaultdict(set)
        """Places of the clips in this list that have such a fact."""

    def __len__(self) -> int:
        return len(self._where)

    def add(self, where: str, names: Iterable[str], facts: Iterable[Fact] = ()) -> None:
        """One more clip.

        Args:
            where: What it is evaluated by.
            names: What it is called.
            facts: What is asked about it.
        """
        for name in names:
            self._where.setdefault(plain_name(name).casefold(), where)
        asked = frozenset(facts)
        if asked:
            for fact in asked:
                self._with[fact].add(len(self._clips))
            self._clips.append((where, asked))

    def require_other(self, names: Sequence[str], facts: Iterable[Fact]) -> None:
        """Make sure that a clip is none of these.

        Args:
            names: Its id, and the name of its file where it has one.
            facts: What is asked about it.

        Raises:
            DataError: If it is, by its name, whatever its case, or by what is asked about it: all
                that is asked of one of these, with more where that is at least three questions; or
                at least three questions that are all asked of one of these.
        """
        for name in names:
            where = self._where.get(plain_name(name).casefold())
            if where is not None:
                raise DataError(_refusal(names[0], where, f"a clip of the name {name!r}"))
        where = self._where_asked(frozenset(facts))
        if where is not None:
            raise DataError(_refusal(names[0], where, "a clip with the same questions"))

    def _where_asked(self, facts: frozenset[Fact]) -> str | None:
        if not facts:
            return None
        n_shared = Counter(clip for fact in facts for clip in self._with.get(fact, ()))
        are_questions = all(question for question, _ in facts)
        for clip, n in sorted(n_shared.items()):
            where, asked = self._clips[clip]
            is_enough = n >= _ENOUGH and are_questions and n in (len(facts), len(asked))
            if is_enough or n == len(facts) == len(asked):
                return where
        return None


def evaluation_clips(
    evaluation: Evaluation, protocol: ClipProtocol, settings: DataSettings
) -> EvaluationClips:
    """The clips of an evaluation set.

    Args:
        evaluation: What it is.
        protocol: The protocol of the reward, which has an evaluation set of its own where it is
            that of a published benchmark.
        settings: Say where benchmarks' files are.

    Raises:
        SettingsError: If something is neither a task or a group nor a file.
        DataError: If a benchmark's files, or a file of ids, cannot be read.
    """
    clips = EvaluationClips()
    given = [evaluation] if isinstance(evaluation, str | Path) else list(evaluation or ())
    if evaluation is not None and not given:
        raise SettingsError(f"evaluation: expected at least one name, got none; {_GO_WITHOUT}")
    for item in given:
        if item == OFFICIAL:
            for name in _official_tasks(protocol):
                _add_task(clips, name, settings)
        elif isinstance(item, str) and item in known_names():
            for name in tasks_of(item):
                _add_task(clips, name, settings)
        elif Path(item).is_file():
            _add_file(clips, Path(item))
        else:
            raise SettingsError(
                f"evaluation: expected tasks or groups of ours, or files of clip ids, got "
                f"{str(item)!r:.120}, which is neither; {_GO_WITHOUT}"
            )
    return clips


def facts_of(questions: Iterable[object]) -> Iterator[Fact]:
    """What is asked about a clip, from the questions of its document."""
    for question in questions:
        asked, answer = (getattr(question, name, "") for name in ("question", "answer"))
        if isinstance(asked, str) and asked:
            yield _plain(asked), _plain(str(answer))
        references = getattr(question, "references", ())
        for reference in references if isinstance(references, Sequence) else ():
            yield "", _plain(str(reference))


def _official_tasks(protocol: ClipProtocol) -> Sequence[str]:
    """Those of a published benchmark: of one's own clips there are none."""
    benchmark = protocol.benchmark
    return list(benchmark.tasks) if benchmark.source.page else []


def _add_task(clips: EvaluationClips, name: str, settings: DataSettings) -> None:
    benchmark: Benchmark[Any, Any] = our_benchmarks()[name]
    try:
        documents = benchmark.read(settings, benchmark.tasks[name])
    except CaptionsError as error:
        raise DataError(
            f"the clips of {name}, on which nothing may be trained, cannot be read: {error}. Set "
            "LMMS_CAPTIONS_DATA to a folder with the benchmark's files, name other clips with "
            f"evaluation=, or {_GO_WITHOUT}"
        ) from error
    for document in documents:
        facts = facts_of(benchmark.questions(document))
        clips.add(name, benchmark.video_names(document), facts)


def _add_file(clips: EvaluationClips, path: Path) -> None:
    try:
        names = list(_ids_in(path))
    except (OSError, ValueError) as error:
        raise DataError(
            f"evaluation: {path}: expected clip ids as lines of text (.txt), or under clip_id in "
            f".jsonl or .parquet ({error})"
        ) from error
    if not names:
        raise DataError(f"evaluation: {path}: expected at least one clip id, the file has none")
    for name in names:
        clips.add(path.name, [name])


def _ids_in(path: Path) -> Iterator[str]:
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    if ending == "parquet":
        for number, row in enumerate(parquet_rows(path), 1):
            yield _id_of(row, f"row {number}")
    elif ending in ("jsonl", "json"):
        for number, value in json_lines(path):
            yield value if isinstance(value, str) else _id_of(value, f"line {number}")
    elif ending != "txt":
        raise ValueError(f"its name ends in {ending!r}")
    else:
        for _, line in numbered_lines(path):
            yield line.decode("utf-8-sig").strip()


def _id_of(row: object, place: str) -> str:
    if isinstance(row, dict):
        clip_id = row.get("clip_id")
        named = video_of(row) if clip_id is None else str(clip_id)
        if named:
            return named
    raise ValueError(f"{place}: expected a clip_id, got {row!r:.80}")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _refusal(clip_id: str, where: str, why: str) -> str:
    return (
        f"clip {clip_id!r}: expected a clip to train on, got one of the evaluation set: {where} "
        f"has {why}. Nothing was asked; leave the clip out, or {_GO_WITHOUT}"
    )
