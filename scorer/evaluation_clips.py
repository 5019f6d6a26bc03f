"""Clips that captioners are evaluated with, which must not be trained on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.errors import CaptionsError, DataError, SettingsError
from lmms_eval_captions.judges.files import numbered_lines
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.task_names import known_names, our_benchmarks, tasks_of
from lmms_eval_captions.model_wrappers.caption_files.columns import plain_name, video_of
from lmms_eval_captions.model_wrappers.caption_files.tables import read_rows

OFFICIAL: Final = "official"
"""Stands for the tasks of the protocol's own benchmark."""
Evaluation = str | Path | Sequence[str | Path] | None
"""Tasks and groups of lmms-eval, files of ids, :data:`OFFICIAL`, or nothing."""
_GO_WITHOUT: Final = "set evaluation=None to train without a look at the evaluation set"
_FORMS: Final = "clip ids as lines of text (.txt), or under clip_id in .jsonl, .csv or .parquet"
_ENOUGH: Final = 3
"""Questions of one clip that are all asked about another, from which on the two are one."""

Fact = tuple[str, str]
"""A question with its gold answer, or nothing with a reference caption; spelt alike."""


class EvaluationClips:
    """The clips of an evaluation set, by their names and by what is asked about them."""

    def __init__(self, evaluation: Evaluation, benchmark: Benchmark[Any, Any]) -> None:
        self._sources: dict[str, str] = {}
        """Name of a clip to the task or file that it is in."""
        self._asked: list[tuple[str, frozenset[Fact]]] = []
        """Source of each clip that has facts, and these."""
        self._clips_with: defaultdict[Fact, set[int]] = defaultdict(set)
        given = [evaluation] if isinstance(evaluation, str | Path) else list(evaluation or ())
        if evaluation is not None and not given:
            raise SettingsError(f"evaluation: expected at least one name, got none; {_GO_WITHOUT}")
        for item in given:
            if item == OFFICIAL:
                # Only a published benchmark has an evaluation set.
                self._add_tasks(benchmark.tasks if benchmark.source.page else ())
            elif isinstance(item, str) and item in known_names():
                self._add_tasks(tasks_of(item))
            elif Path(item).is_file():
                self._add(Path(item).name, _ids(Path(item)))
            else:
                raise SettingsError(
                    f"evaluation: expected tasks or groups of ours, or files of clip ids, got "
                    f"{str(item)!r:.120}, which is neither; {_GO_WITHOUT}"
                )

    def require_other(self, names: Sequence[str], questions: Iterable[object]) -> None:
        """Raise :class:`DataError` if a clip is one of these by its names or questions.

        It is if it has a name of one, in whatever case; or if all questions of one are asked about
        it, with others if they are at least three, or at least three of one and no other.
        """
        if not self._sources:
            return
        sources = {name: self._sources.get(plain_name(name).casefold()) for name in names}
        known = next((name for name, source in sources.items() if source is not None), None)
        source = self._source_asking(_facts(questions)) if known is None else sources[known]
        if source is not None:
            why = "the same questions" if known is None else f"the name {known!r}"
            raise DataError(
                f"clip {names[0]!r}: expected a clip to train on, got one of the evaluation set: "
                f"{source} has a clip with {why}. Nothing was asked; leave the clip out, or "
                f"{_GO_WITHOUT}"
            )

    def _source_asking(self, facts: frozenset[Fact]) -> str | None:
        n_shared = Counter(clip for fact in facts for clip in self._clips_with.get(fact, ()))
        are_questions = all(question for question, _ in facts)
        for clip, n in sorted(n_shared.items()):
            source, asked = self._asked[clip]
            is_enough = n >= _ENOUGH and are_questions and n in (len(facts), len(asked))
            if is_enough or n == len(facts) == len(asked):
                return source
        return None

    def _add(self, source: str, names: Iterable[str], facts: frozenset[Fact] = frozenset()) -> None:
        for name in names:
            self._sources.setdefault(plain_name(name).casefold(), source)
        for fact in facts:
            self._clips_with[fact].add(len(self._asked))
        if facts:
            self._asked.append((source, facts))

    def _add_tasks(self, tasks: Iterable[str]) -> None:
        for name in tasks:
            benchmark: Benchmark[Any, Any] = our_benchmarks()[name]
            try:
                documents = benchmark.read(data_settings(), benchmark.tasks[name])
            except CaptionsError as error:
                raise DataError(
                    f"the clips of {name}, on which nothing may be trained, cannot be read: "
                    f"{error}. Set LMMS_CAPTIONS_DATA to a folder with the benchmark's files, name "
                    f"other clips with evaluation=, or {_GO_WITHOUT}"
                ) from error
            for document in documents:
                facts = _facts(benchmark.questions(document))
                self._add(name, benchmark.video_names(document), facts)


def _facts(questions: Iterable[object]) -> frozenset[Fact]:
    """Return what is asked about a clip, from the questions of its document."""

    def facts() -> Iterator[Fact]:
        for question in questions:
            asked, answer = (getattr(question, name, "") for name in ("question", "answer"))
            if isinstance(asked, str) and asked:
                yield _plain(asked), _plain(str(answer))
            references = getattr(question, "references", ())
            for reference in references if isinstance(references, Sequence) else ():
                yield "", _plain(str(reference))

    return frozenset(facts())


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _ids(path: Path) -> list[str]:
    try:
        if path.suffix.lower() == ".txt":
            names = [line.decode("utf-8-sig").strip() for _, line in numbered_lines(path)]
        else:
            rows = [row.fields for row in read_rows(path)]
            ids = [row.get("clip_id", video_of(row)) for row in rows]
            names = ["" if name is None else str(name) for name in ids]
    except (CaptionsError, OSError, ValueError) as error:
        raise DataError(f"evaluation: {path}: expected {_FORMS} ({error})") from error
    if not all(names) or not names:
        raise DataError(f"evaluation: {path}: expected {_FORMS}, got a row or a file without one")
    return names
