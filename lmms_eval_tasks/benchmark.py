"""``Benchmark``: the class from which hooks, estimates, sample and reports of a benchmark come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from inspect import getfile
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import yaml

from lmms_eval_captions.judges.endpoint.request import Ask, Chain
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE, JudgeConfig
from lmms_eval_captions.judges.protocols.prompt import Prompts
from lmms_eval_captions.judges.settings import DataSettings, JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.data.files import (
    QuestionFile,
    find_file,
    find_video,
    list_videos,
)
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck, tell_answer
from lmms_eval_captions.lmms_eval_tasks.ratios import Ratios, of_verdicts
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

if TYPE_CHECKING:
    from typing_extensions import Self

Q = TypeVar("Q")
"""A benchmark's question, as its protocol takes it."""
J = TypeVar("J", bound=Judgement)

Doc = Mapping[str, Any]
"""A document of lmms-eval: one video, as :meth:`Benchmark.read` returns it."""
Videos = Sequence[Sequence[Any]]
"""Values of a metric in one judge run: for each video, those of its questions."""
Score = Callable[[Videos, Sequence[CaptionRecord]], float]
"""Computes a metric from one judge run's values and the records of all captions of the task;
``nan`` if it has no value."""

ALL: Final = ("overall", "all")
"""Section and group of the breakdown in which every question counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of lmms-eval: a variant of its benchmark."""

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Fields that distinguish this task's stub row and documents from other tasks' ones."""
    caption_prompt: str
    """Prompt for captioners: a file and a key in it, such as ``vdc_caption.camera``; ``{field}``
    stands for a field of the document. Empty if captions are not asked for."""
    judge_prompts: tuple[str, ...]
    """Names of the judge's prompts."""
    aspect: str | None = None
    """Aspect of the captions if a benchmark asks for several of each video."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the signature; ``{field}`` stands for a field of the document."""
    note: str = ""
    """Warning to readers of the task's numbers, a sentence or two."""
    note_level: Literal["INFO", "WARNING"] = "INFO"
    caption_chars: int
    """Length of a typical caption, by our estimate."""

    def prompt(self, doc: Doc) -> tuple[str, str]:
        """Return the file of the caption prompt and the key in it."""
        name, _, key = self.caption_prompt.format_map(doc).partition(".")
        return name, key

    def prompts(self, doc: Doc) -> tuple[str, ...]:
        """Return the prompts of captioner and judge, as :meth:`Prompts.extras` takes them."""
        return tuple(filter(None, (*self.judge_prompts, self.caption_prompt.format_map(doc))))


def verdict_of(judgement: Any) -> Sequence[object]:  # noqa: ANN401 - whatever has a verdict
    """Return the value that most metrics read of a judgement: its verdict."""
    return (judgement.verdict,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One of the numbers that a benchmark prints."""

    score: Score
    """See :func:`over_questions` and :func:`over_videos`."""
    higher_is_better: bool = True
    scale: float = 100.0
    """Printed value of a share of 1, such as 100 for a percentage."""
    highest: float = 100.0
    """Highest possible value."""
    lowest: float = 0.0
    """Lowest possible value, as 1 of a rating from 1 to 5; above 0 only for a metric that is one
    ratio."""
    ratios: Ratios | None = None
    """The metric as ``scale`` times a ratio of sums over captions, or a product of such ratios: see
    :mod:`ratios`. Its interval follows from it; without, it has none."""
    values: Callable[[Any], Sequence[object]] = verdict_of
    """Reads ``n_values`` values of a judgement; ``None`` is unscored."""
    labels: Sequence[str] = ()
    """All possible values in the order in which they are shown; empty for numbers."""
    n_values: int = 1
    field: str = "verdicts"
    """Name of the values in a caption's item."""
    reads_fields: bool = False
    """True if it needs the record's ``fields``."""
    unavailable: Callable[[Sequence[CaptionRecord]], str | None] = lambda _records: None
    """Reason why the metric cannot be computed, whatever the judge says, else ``None``."""
    unavailable_here: Callable[[], str | None] = lambda: None
    """The same for captions that this process would score, before there are any."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest possible value."""
        return self.lowest, self.highest

    @property
    def span(self) -> float:
        """Largest difference of two values, above 0."""
        return self.highest - self.lowest


class Benchmark(Generic[Q, J]):
    """A benchmark of captions: a subclass sets its attributes and overrides its methods.

    Required are ``source``, ``tasks``, ``metrics``, ``headline``, :meth:`read`,
    :meth:`questions`, and one of :meth:`judge`, :meth:`ask` and ``measure``.
    """

    name: str
    """Name, and the folder below ``LMMS_CAPTIONS_DATA``: that of its source."""
    folder: Path
    """Folder of its YAML files: that of its module."""
    template: str = "_default_template_yaml"
    """YAML file in the folder whose ``metadata.judge`` is the paper's judge."""
    source: Source
    probe_file: str = ""
    """File whose presence shows that the benchmark's data is there; empty if videos show it."""
    question_file: QuestionFile | None = None
    """Official files of questions, ``None`` if there are none."""
    name_fields: tuple[str, ...] = ("video_id",)
    """Fields of a document that name its video, in the order in which captions are looked up; the
    first is the video's id, the last its file."""
    tasks: Mapping[str, Task]
    metrics: Mapping[str, Metric]
    """In the order in which they are shown."""
    headline: str
    """The metric that stands for the others; its items hold every judgement."""
    headline_means: str = ""
    """One-line description of the headline metric."""
    right: frozenset[object] = frozenset()
    """Verdicts of the headline on a question that the caption answers rightly; empty if judges give
    grades."""
    missed: frozenset[object] = frozenset()
    """Verdicts on a question whose answer is not in the caption, and on wrong answers if the judge
    does not distinguish them."""
    wrong: frozenset[object] = frozenset()
    """Verdicts on a question that the caption answers wrongly."""
    sections: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Section of the breakdown to its groups, in the paper's order; other groups follow."""
    pooled_group: str | None = None
    """Group whose numbers are those of all questions of its tasks together."""
    counts_ahead: bool = True
    """True if each question gives one judgement, ``False`` if it gives one for every fact that the
    judge extracts, so that only its replies tell how many there are."""
    output_tokens: Mapping[str, int] = MappingProxyType({})
    """Protocol of a request to the tokens of a typical reply, by our estimate."""
    measure: Callable[[Q, str], Callable[[], J]] | None = None
    """Starts to measure a caption without a judge, also one that says nothing, and returns what
    waits for it and may raise :class:`CaptionsError`; ``None`` if a judge is asked."""
    silent: Callable[[Q, int], Sequence[J]] | None = None
    """Judgements of a question in one judge run for a caption that says nothing, by the paper's
    definition and in the form of :meth:`ask`; ``None`` if the paper has none."""
    judge_check: JudgeCheck[Q, J] | None = None
    """Test of the judge with anchors, ``None`` if there is none."""

    def __init_subclass__(cls) -> None:
        if "folder" not in vars(cls):
            cls.folder = Path(getfile(cls)).parent
        if "source" in vars(cls):
            cls.name = cls.source.benchmark

    def read(self, settings: DataSettings, task: Task, /) -> list[dict[str, object]]:
        """Return the documents of a task.

        Raises:
            DataError: If the data is missing or broken.
        """
        raise NotImplementedError

    def questions(self, doc: Doc, /) -> Sequence[Q]:
        """Return the questions about a document's video."""
        raise NotImplementedError

    async def judge(
        self, ask: Ask, question: Q, caption: str, *, config: JudgeConfig, run: int
    ) -> J:
        """Ask the judge one question about a caption, and read its replies.

        ``ask`` sends one request; ``run`` is the judge run, from 0, and its seed.
        """
        raise NotImplementedError

    def ask(
        self, question: Q, caption: str, *, config: JudgeConfig, run: int
    ) -> Chain[Sequence[J]]:
        """Return the chain of requests of one question: one judgement, that of :meth:`judge`.

        To be overridden if a question has several judgements, one for every extracted fact.
        """

        async def chain(ask: Ask) -> Sequence[J]:
            return (await self.judge(ask, question, caption, config=config, run=run),)

        return chain

    def instruction(self, doc: Doc, prompts: Prompts) -> str:
        """Return the text that a captioner is asked with about a document's video."""
        return prompts.text(*self.task_of(doc).prompt(doc))

    def question_text(self, question: Q, /) -> str:
        """Return what distinguishes a question from the others about its video; may be empty."""
        return getattr(question, "question", "")

    def unseen(self, question: Q, /) -> Q:
        """Return the same question without its video, for estimates."""
        return question

    def file_name(self, name: str, /) -> str:
        """Return the name below the folder of videos, from the last of ``name_fields``."""
        return name

    def groups(self, doc: Doc, question: Q, judgement: J | None, /) -> Mapping[str, str]:  # noqa: ARG002
        """Return the group that a question counts in, by section of the breakdown.

        ``judgement`` is ``None`` if the question was not judged.
        """
        return {}

    def fields(self, doc: Doc, caption: str | None, /) -> Mapping[str, object]:  # noqa: ARG002
        """Return further facts of a document and its caption, for metrics and breakdown."""
        return {}

    def extras(self, judgements: Sequence[J], fields: Mapping[str, object], /) -> Mapping[str, str]:  # noqa: ARG002
        """Return further fields of the signature, from a caption's judgements and its fields."""
        return {}

    def summary(self, records: Sequence[CaptionRecord], /) -> Mapping[str, object]:  # noqa: ARG002
        """Return what a breakdown shows on top, next to the numbers."""
        return {}

    def variant(self, **attributes: object) -> Self:
        """Return this benchmark with some attributes or methods replaced."""
        made = copy(self)
        vars(made).update(attributes)
        return made

    @property
    def judge_defaults(self) -> Mapping[str, object]:
        """``metadata.judge`` of the template."""
        template = read_plain_yaml(self.folder / self.template)
        defaults: Mapping[str, object] = template["metadata"]["judge"]
        return defaults

    def judge_config(self, settings: JudgeSettings) -> JudgeConfig:
        """Return the judge of a run with these settings, :data:`NO_JUDGE` if none is asked.

        Raises:
            SettingsError: If the settings cannot be used.
        """
        if self.measure is not None:
            return NO_JUDGE
        return JudgeConfig.build(self.judge_defaults, settings)

    def chains(
        self, questions: Sequence[Q], caption: str, config: JudgeConfig
    ) -> list[Chain[Sequence[J]]]:
        """Return the chains of each question in each judge run, run by run."""
        return [
            self.ask(question, caption, config=config, run=run)
            for run, question in product(range(config.runs), questions)
        ]

    def task_of(self, row: Doc) -> Task:
        """Return the task of a stub's row or of a document.

        Raises:
            ValueError: If it belongs to another benchmark.
        """
        for task in self.tasks.values():
            if all(row.get(name) == value for name, value in task.fields.items()):
                return task
        raise ValueError(f"expected a document of {', '.join(self.tasks)}, got {row!r:.80}")

    def source_of_values(self, metric: str) -> str:
        """Return the first metric that reads the same values: they are stored once."""
        reads = self.metrics[metric].values
        return next(name for name, other in self.metrics.items() if other.values is reads)

    def video_names(self, doc: Doc) -> tuple[str, ...]:
        """Return the names by which a caption is looked up, the video's id first."""
        return tuple(dict.fromkeys(str(doc[name]) for name in self.name_fields))

    def video_id(self, doc: Doc) -> str:
        """Return the id of a document's video."""
        return str(doc[self.name_fields[0]])

    def video_path(self, settings: DataSettings, doc: Doc) -> Path:
        """Return the file of a document's video.

        Raises:
            DataError: If it is missing; the message says where it was looked for.
        """
        return find_video(settings, self.source, self.file_name(str(doc[self.name_fields[-1]])))

    def find_data(self, settings: DataSettings) -> Path:
        """Return the probe file, or the first video without one.

        Raises:
            DataError: If it is missing; the message says where it was looked for.
        """
        if not self.probe_file:
            return find_video(settings, self.source, list_videos(settings, self.source)[0])
        return find_file(settings, self.source, self.probe_file)


class _PlainLoader(yaml.SafeLoader):
    """Loader that reads ``!function`` tags as their text."""


_PlainLoader.add_constructor("!function", lambda _, node: node.value)


@cache
def read_plain_yaml(path: Path) -> Mapping[str, Any]:
    """Read a packaged YAML file without importing what its tags name."""
    text = path.read_text(encoding="utf-8")
    config: Mapping[str, Any] = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a safe loader # nosec B506
    return config


def pooled(
    metric: Callable[[list[Any]], float],
    counts: Mapping[Any, tuple[float, float]],
    *,
    labels: Sequence[str] = (),
    higher_is_better: bool = True,
) -> Metric:
    """Return a metric in percent over all questions together; see :func:`of_verdicts`."""
    return Metric(
        score=over_questions(metric),
        ratios=of_verdicts(counts),
        labels=labels,
        higher_is_better=higher_is_better,
    )


def check_of_answers(
    credits_: Mapping[Any, float],
    *,
    silent: Sequence[str],
    said: Callable[[Any, Any], str | None] = lambda _question, judgement: judgement.verdict,
) -> JudgeCheck[Any, Any]:
    """Return the check of a judge of questions with gold answers.

    ``credits_`` are the verdicts' credits in [0, 1]; others have none.
    """
    return JudgeCheck(
        tell=lambda question: tell_answer(question.question, question.answer),
        credit=lambda judgement: (
            None if judgement.verdict is None else credits_.get(judgement.verdict, 0.0)
        ),
        said=said,
        silent=frozenset(silent),
    )


def over_questions(metric: Callable[[list[Any]], float]) -> Score:
    """Return the score of a metric over all questions together, whatever their video."""
    return lambda videos, _records: metric(list(chain.from_iterable(videos)))


def over_videos(metric: Callable[[Videos], float]) -> Score:
    """Return the score of a metric that is a mean over videos."""
    return lambda videos, _records: metric(videos)
