"""What a benchmark is: one frozen value, from which hooks, estimates, sample and reports come."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import yaml

from lmms_eval_captions.judges.endpoint.request import Ask, Chain
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE, JudgeConfig
from lmms_eval_captions.judges.settings import DataSettings, JudgeSettings
from lmms_eval_captions.judges.verdict import Judgement
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, find_video, list_videos
from lmms_eval_captions.lmms_eval_tasks.data.sources import QuestionFile, Source
from lmms_eval_captions.lmms_eval_tasks.grading import Grading
from lmms_eval_captions.lmms_eval_tasks.judge_check import JudgeCheck
from lmms_eval_captions.lmms_eval_tasks.paper_table import PaperTable
from lmms_eval_captions.lmms_eval_tasks.planted_facts import Verification
from lmms_eval_captions.lmms_eval_tasks.ratios import Ratios
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord

Q = TypeVar("Q")
"""A benchmark's question, as its protocol takes it."""
J = TypeVar("J", bound=Judgement)
Q_contra = TypeVar("Q_contra", contravariant=True)
J_co = TypeVar("J_co", bound=Judgement, covariant=True)

Doc = Mapping[str, Any]
"""A document of lmms-eval: one video, as the benchmark's ``read`` makes it."""
Videos = Sequence[Sequence[Any]]
"""What a metric reads in one judge run: for each video, the values of its questions."""
Score = Callable[[Videos, Sequence[CaptionRecord]], float]
"""From one judge run's values, and the records of all captions of the task, to a metric; ``nan``
where it has no value."""

ALL: Final = ("overall", "all")
"""Section and group of the breakdown in which every question counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of lmms-eval: a variant of its benchmark."""

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """What sets this task's stub row and documents apart from those of its benchmark's others."""
    caption_prompt: str
    """What captioners are asked with: a prompt file and a key in it, such as
    ``vdc_caption.camera``; ``{field}`` stands for a field of the document. Empty where the captions
    are not asked for."""
    judge_prompts: tuple[str, ...]
    """Names of the prompts that the judge is asked with."""
    aspect: str | None = None
    """Aspect of the captions where a benchmark asks for several of each video."""
    extras: Mapping[str, str] = field(default_factory=dict)
    """Further fields of the signature; ``{field}`` stands for a field of the document."""
    note: str = ""
    """What a reader of the task's numbers must know, a sentence or two."""
    note_level: Literal["INFO", "WARNING"] = "INFO"
    caption_chars: int
    """Length of a typical caption, by our judgement, for estimates."""

    def prompt(self, doc: Doc) -> tuple[str, str]:
        """File of the caption prompt and the key in it."""
        name, _, key = self.caption_prompt.format_map(doc).partition(".")
        return name, key

    def prompts(self, doc: Doc) -> tuple[str, ...]:
        """All that captioner and judge are asked with, as :meth:`Prompts.extras` takes it."""
        return tuple(filter(None, (*self.judge_prompts, self.caption_prompt.format_map(doc))))


def verdict_of(judgement: Any) -> Sequence[object]:  # noqa: ANN401 - whatever has a verdict
    """What most metrics read of a judgement: its verdict."""
    return (judgement.verdict,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One of the numbers that a benchmark prints."""

    score: Score
    """See :func:`over_questions` and :func:`over_videos`."""
    higher_is_better: bool = True
    scale: float = 100.0
    """What is printed for a share of 1, such as 100 for a percentage."""
    highest: float = 100.0
    """The highest value that it can have."""
    lowest: float = 0.0
    """The lowest value that it can have, as 1 of a rating from 1 to 5; above 0 for a metric that is
    one ratio alone."""
    ratios: Ratios | None = None
    """The metric as ``scale`` times a ratio of sums over captions, or times a product of such: see
    :mod:`ratios`. Its interval follows from it; without, from leaving out each caption in
    turn, which is slow for thousands."""
    values: Callable[[Any], Sequence[object]] = verdict_of
    """What it reads of a judgement, ``n_values`` values; ``None`` is unscored."""
    labels: Sequence[str] = ()
    """All that these values can be, in the order in which they are shown; empty for numbers."""
    n_values: int = 1
    field: str = "verdicts"
    """Name of these values in a caption's item."""
    reads_fields: bool = False
    """Whether it needs the record's ``fields``."""
    unavailable: Callable[[Sequence[CaptionRecord]], str | None] = lambda _records: None
    """Why the metric cannot be computed here whatever the judge says, else ``None``."""
    unavailable_here: Callable[[], str | None] = lambda: None
    """The same of captions that this process would score, before there are any."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest value that it can have."""
        return self.lowest, self.highest

    @property
    def span(self) -> float:
        """How far apart two values can be, above 0."""
        return self.highest - self.lowest


class AskQuestion(Protocol[Q_contra, J_co]):
    """Makes the chain of requests of one question in one judge run."""

    def __call__(
        self, question: Q_contra, caption: str, *, config: JudgeConfig, run: int
    ) -> Chain[Sequence[J_co]]:
        """The chain; it gives one judgement, or one for every fact that it extracts.

        Args:
            question: What is asked.
            caption: Candidate caption, unchanged.
            config: The benchmark's judge.
            run: Judge run, which is the seed, >= 0.
        """


class JudgeQuestion(Protocol[Q_contra, J_co]):
    """A protocol that gives one judgement of one question."""

    async def __call__(
        self, ask: Ask, question: Q_contra, caption: str, *, config: JudgeConfig, run: int
    ) -> J_co:
        """Ask the judge and read its replies."""


class Measure(Protocol[Q_contra, J_co]):
    """Measures a caption where no judge is asked."""

    def __call__(self, question: Q_contra, caption: str) -> Callable[[], J_co]:
        """Hand a caption in; never waits.

        Returns:
            What waits for its measurement, and may raise :class:`CaptionsError`; it is called once
            all captions of this process are handed in, so that they can be measured together.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Generic[Q, J]):
    """A benchmark of captions.

    Several may share a folder: a variant that differs in its protocol or metrics is a second
    record, made of the first by ``replace``.
    """

    name: str
    """Its folder below ``LMMS_CAPTIONS_DATA``."""
    folder: Path
    """Holds its YAML files."""
    template: str = "_default_template_yaml"
    """The YAML file in it whose ``metadata.judge`` is the paper's judge."""
    source: Source
    probe_file: str
    """A file whose presence tells that the benchmark's data is there; empty where videos do."""
    tasks: Mapping[str, Task]
    read: Callable[[DataSettings, Task], list[dict[str, object]]]
    """The documents of a task. Raises :class:`DataError` where the data is missing or broken."""
    name_fields: tuple[str, ...] = ("video_id",)
    """Fields of a document that name its video, in the order that captions are looked up by; the
    first is its id, the last its file."""
    file_name: Callable[[str], str] = str
    """From what the last of these fields holds to a name below the folder of videos."""
    question_file: QuestionFile | None = None
    """Its official files of questions, of which files in the same form can be made that hold some
    of the questions; ``None`` where it has none."""
    questions: Callable[[Doc], Sequence[Q]]
    question_text: Callable[[Q], str] = lambda question: getattr(question, "question", "")
    """What tells a question from the others about its video; empty where it is the only one."""
    ask: AskQuestion[Q, J]
    unseen: Callable[[Q], Q] = lambda question: question
    """The same question without a look at its video, for estimates."""
    counts_ahead: bool = True
    """Whether each question gives one judgement; ``False`` where it gives one for every fact that
    the judge extracts, so that only its replies tell how many there are."""
    measure: Measure[Q, J] | None = None
    """What takes the place of ``ask`` where no judge is asked; it is handed captions that say
    nothing, too. ``None`` where a judge is asked."""
    silent: Callable[[Q, int], Sequence[J]] | None = None
    """Judgements of a question, in one judge run, where the caption says nothing, by the paper's
    definition, as ``ask`` gives them; ``None`` where the benchmark has none."""
    judge_check: JudgeCheck[Q, J] | None = None
    """How it is told that the judge judges; ``None`` where that is not told."""
    verification: Verification[Q, J] | None = None
    """How ``judge verify`` asks the judge about planted facts; ``None`` where it does not."""
    grading: Grading | None = None
    """What a person is asked in the judge's place; ``None`` where people cannot take it."""
    metrics: Mapping[str, Metric]
    """In the order in which they are shown."""
    pooled_group: str | None = None
    """The group whose numbers are those of all its tasks' questions together."""
    headline: str
    """The metric that stands for the others; its items hold every judgement."""
    right: frozenset[object] = frozenset()
    """What the headline reads of a question that the caption answers rightly; empty where judges
    give grades."""
    missed: frozenset[object] = frozenset()
    """What the headline reads of a question whose answer the caption does not hold; of one that
    says otherwise too, where the judge does not tell these apart."""
    wrong: frozenset[object] = frozenset()
    """What the headline reads of a question that the caption answers wrongly."""
    headline_means: str = ""
    """What the headline counts, in a few words for who sees it for the first time."""
    groups: Callable[[Doc, Q, J | None], Mapping[str, str]] = lambda _doc, _question, _judgement: {}
    """Section of the breakdown to the group in which a question counts there; the judgement is
    ``None`` where the question was not judged."""
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Section of the breakdown to its groups, in the paper's order; others follow."""
    fields: Callable[[Doc, str | None], Mapping[str, object]] = lambda _doc, _caption: {}
    """What else is kept of a document and its caption, for metrics and breakdown; the caption is
    ``None`` where there is none."""
    extras: Callable[[Sequence[J], Mapping[str, object]], Mapping[str, str]] = (
        lambda _judgements, _fields: {}
    )
    """Further fields of the signature, from a caption's judgements and ``fields``."""
    summary: Callable[[Sequence[CaptionRecord]], Mapping[str, object]] = lambda _records: {}
    """What stands on top of a breakdown beside the numbers."""
    paper_table: PaperTable | None = None
    """The table of the paper that has the benchmark's numbers, for ``compare --paper``."""
    output_tokens: Mapping[str, int]
    """Protocol of a request to the tokens of a typical reply, by our judgement, for estimates."""

    @property
    def judge_defaults(self) -> Mapping[str, object]:
        """``metadata.judge`` of the template."""
        template = read_plain_yaml(self.folder / self.template)
        defaults: Mapping[str, object] = template["metadata"]["judge"]
        return defaults

    def judge_config(self, settings: JudgeSettings) -> JudgeConfig:
        """The judge of a run with these settings, :data:`NO_JUDGE` where none is asked.

        Raises:
            SettingsError: If the settings cannot be used.
        """
        if self.measure is not None:
            return NO_JUDGE
        return JudgeConfig.build(self.judge_defaults, settings)

    def chains(
        self, questions: Sequence[Q], caption: str, config: JudgeConfig
    ) -> list[Chain[Sequence[J]]]:
        """What asks the judge about a caption: each question in each judge run, run by run."""
        return [
            self.ask(question, caption, config=config, run=run)
            for run, question in product(range(config.runs), questions)
        ]

    def silences(self, questions: Sequence[Q], config: JudgeConfig) -> list[Sequence[J]] | None:
        """The judgements of a caption that says nothing, as those of :meth:`chains`.

        Returns:
            ``None`` where the benchmark has none.
        """
        silent = self.silent
        if silent is None:
            return None
        return [silent(question, run) for run, question in product(range(config.runs), questions)]

    @property
    def knows_silence(self) -> bool:
        """Whether a caption that says nothing has a verdict."""
        return self.silent is not None or self.measure is not None

    def task_of(self, row: Doc) -> Task:
        """The task of a stub's row or of a document.

        Raises:
            ValueError: If it is none of this benchmark's.
        """
        for task in self.tasks.values():
            if all(row.get(name) == value for name, value in task.fields.items()):
                return task
        raise ValueError(f"expected a document of {', '.join(self.tasks)}, got {row!r:.80}")

    def source_of_values(self, metric: str) -> str:
        """The first metric that reads the same values as this one: they are stored once."""
        reads = self.metrics[metric].values
        return next(name for name, other in self.metrics.items() if other.values is reads)

    def video_names(self, doc: Doc) -> tuple[str, ...]:
        """Names that a caption of the document's video is looked up by, the video's id first."""
        return tuple(dict.fromkeys(str(doc[name]) for name in self.name_fields))

    def video_id(self, doc: Doc) -> str:
        """The video of a document."""
        return str(doc[self.name_fields[0]])

    def video_path(self, settings: DataSettings, doc: Doc) -> Path:
        """File of a document's video.

        Raises:
            DataError: If it is not there; the text says where it was looked for.
        """
        return find_video(settings, self.source, self.file_name(str(doc[self.name_fields[-1]])))

    def find_data(self, settings: DataSettings) -> Path:
        """The file that tells that the data is there, the first video where videos do.

        Raises:
            DataError: If it is not there; the text says where it was looked for.
        """
        if not self.probe_file:
            return find_video(settings, self.source, list_videos(settings, self.source)[0])
        return find_file(settings, self.source, self.probe_file)


class _PlainLoader(yaml.SafeLoader):
    """Reads ``!function`` tags as their text."""


_PlainLoader.add_constructor("!function", lambda _, node: node.value)


@cache
def read_plain_yaml(path: Path) -> Mapping[str, Any]:
    """A packaged YAML file, read without importing what its tags name."""
    text = path.read_text(encoding="utf-8")
    config: Mapping[str, Any] = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a safe loader # nosec B506
    return config


def asking(judge_question: JudgeQuestion[Q, J]) -> AskQuestion[Q, J]:
    """``ask`` of a benchmark whose protocol gives one judgement of each question."""

    def ask_question(
        question: Q, caption: str, *, config: JudgeConfig, run: int
    ) -> Chain[Sequence[J]]:
        async def judge(ask: Ask) -> Sequence[J]:
            return (await judge_question(ask, question, caption, config=config, run=run),)

        return judge

    return ask_question


def asking_nobody(*_question: object, **_judge: object) -> Chain[Any]:
    """``ask`` of a benchmark whose captions are measured: one question, and no request."""

    async def judge(_ask: Ask) -> Sequence[None]:
        return (None,)

    return judge


def silence(silent_judgement: Callable[[Q, int], J]) -> Callable[[Q, int], Sequence[J]]:
    """``silent`` of a benchmark whose protocol gives one judgement of each question."""
    return lambda question, run: (silent_judgement(question, run),)


def over_questions(metric: Callable[[list[Any]], float]) -> Score:
    """A metric of the verdicts on all questions together, whatever video they are of."""
    return lambda videos, _records: metric(list(chain.from_iterable(videos)))


def over_videos(metric: Callable[[Videos], float]) -> Score:
    """A metric that is a mean over videos."""
    return lambda videos, _records: metric(videos)
