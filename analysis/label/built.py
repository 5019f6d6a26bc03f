"""Built questions that people check: their page, and a report on the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lmms_eval_captions.analysis.label.page import Item, Page, PageOptions, item_of, page_of
from lmms_eval_captions.analysis.label.report import Report
from lmms_eval_captions.analysis.label.sampling import draw
from lmms_eval_captions.analysis.tables import Part, plural, table, with_interval
from lmms_eval_captions.analysis.web_page import frames_of_files
from lmms_eval_captions.construction import people, pipeline
from lmms_eval_captions.construction.filters import listed
from lmms_eval_captions.construction.pipeline import Row, kept
from lmms_eval_captions.construction.writing import CLIPS
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading

_OF_QUESTION: Final = frozenset({"id", "video", "question", "answer"})
_CHOICES: Final = (
    Choice(key="y", name=people.YES, text="Yes"),
    Choice(key="n", name=people.NO, text="No"),
)


@dataclass(frozen=True, slots=True)
class BuiltQuestions:
    """Questions of the stage before people check them."""

    kind: str
    """The benchmark's name."""
    stage: str
    """Name of that stage."""
    rows: Sequence[Row]
    clips: Mapping[str, Path]
    """File of each clip, by its name."""


def questions_to_check(folder: Path) -> BuiltQuestions:
    """Return the questions that people are asked about.

    Args:
        folder: The benchmark's folder, such as ``DATA/capquiz``.

    Raises:
        SettingsError: If it is not the folder of a benchmark that can be built.
        DataError: If a stage's file is missing or cannot be read, or no question is left.
    """
    kind = folder.expanduser().resolve().name
    if kind not in people.CRITERIA:
        raise SettingsError(
            f"--build: expected the folder of a benchmark that was built, such as DATA/capquiz, or "
            f"one of {', '.join(people.CRITERIA)}, got {str(folder)!r}"
        )
    files = pipeline.stage_files(folder.expanduser())
    names = [path.stem.partition("-")[2] for path in files]
    end = next((place for place, name in enumerate(names) if name in people.CHECKS), len(files))
    if not end or CLIPS.name not in names:
        raise DataError(
            f"--build: expected files of stages in {folder / pipeline.FOLDER}, got "
            f"{', '.join(path.name for path in files) or 'none'}; run lmms-eval-captions build "
            f"{kind} first"
        )
    rows = kept(pipeline.read_stage(files[end - 1])[1])
    if not rows or not all(row.keys() >= _OF_QUESTION for row in rows):
        raise DataError(
            f"{files[end - 1]}: expected questions, got {len(rows):,} other rows; run "
            f"lmms-eval-captions build {kind} to its end"
        )
    clips = kept(pipeline.read_stage(files[names.index(CLIPS.name)])[1])
    paths = {str(row["video"]): Path(str(row["path"])) for row in clips}
    return BuiltQuestions(kind, names[end - 1], rows, paths)


def built_page(questions: BuiltQuestions, options: PageOptions) -> Page:
    """Return the page: each question with frames of its clip, once for each criterion.

    If fewer questions are asked than there are, they are drawn at random, the same for everyone
    with the same seed. Those of a clip follow each other.

    Args:
        questions: See :func:`questions_to_check`.
        options: ``n`` is the number of questions; tasks and strata are ignored.
    """
    drawn = sorted(draw([""] * len(questions.rows), options.n, options.seed))
    rows = [questions.rows[index] for index in drawn]
    videos = [
        (str(row["video"]), partial(_file, questions.clips, str(row["video"]))) for row in rows
    ]
    frames = lambda n: frames_of_files(videos, n_frames=options.n_frames, most_bytes=n)  # noqa: E731
    gradings = {
        criterion.name: Grading(
            asks=criterion.asks,
            choices=_CHOICES,
            of_judge=lambda _logged: None,
            judgement=lambda _logged, _label: {},
        )
        for criterion in people.CRITERIA[questions.kind]
    }
    items = list(_items(questions.kind, rows))
    return page_of(people.PAGE_KIND, items, [], gradings, options, frames)


def _items(kind: str, rows: Sequence[Row]) -> Iterator[Item]:
    for number, row in enumerate(rows):
        # With its options, if it has any, each on a line.
        question = "\n".join(filter(None, (row["question"], listed(row.get("options") or ()))))
        for place, criterion in enumerate(people.CRITERIA[kind]):
            exported = {
                "benchmark": kind, "video_id": row["video"], "question_id": row["id"],
                "question": row["question"], "answer": row["answer"],
                "text_digest": people.text_digest(row), "criterion": criterion.name,
            }  # fmt: skip
            yield item_of(
                kind, row["video"], exported, id=f"{number}-{place}", grading=criterion.name,
                frames=str(row["video"]), question=question, answer=row["answer"],
            )  # fmt: skip


def _file(clips: Mapping[str, Path], video: str) -> Path:
    path = clips.get(video)
    if path is None or not path.is_file():
        raise DataError(
            f"the clip {video} is not at {str(path)!r}; make the page in the folder that the build "
            "was run in"
        )
    return path


def built_report(paths: Sequence[Path], questions: BuiltQuestions, *, fewest: int) -> Report:
    """Report the agreement by criterion, and which questions would be kept.

    Args:
        paths: Files that pages exported.
        questions: See :func:`questions_to_check`.
        fewest: Annotators that a question needs, >= 1.

    Raises:
        DataError: If a file cannot be read, or has no answer about these questions.
    """
    given = people.read_answers(paths, questions.kind)
    checked = people.check_by_people(questions.rows, given, questions.kind, fewest=fewest)
    matched, rows = checked.matched, kept(checked.rows)
    dropped = Counter(str(row["dropped"]) for row in checked.rows if "dropped" in row)
    by_criterion = {
        criterion.name: {**_counts(checked, criterion), "ac1": checked.ac1[criterion.name]}
        for criterion in people.CRITERIA[questions.kind]
    }
    agreements = [
        [name, f"{of['n_answered']:,}", f"{of['n_yes']:,}", with_interval(of["ac1"], 3)]
        for name, of in by_criterion.items()
    ]
    part = Part(
        f"Built questions of {questions.kind}",
        [
            f"{len(questions.rows):,} questions of the stage {questions.stage!r}; "
            f"{checked.n_shared:,} were answered by at least 2 of {len(checked.people)} people. "
            f"Kept: {len(rows):,}.",
            *(f"Dropped: {n:,}, {reason}." for reason, n in dropped.most_common()),
        ],
        [
            (
                "Gwet's AC1 (1 is complete agreement, 0 is chance) with 95% intervals over clips",
                table(["criterion", "questions answered", "most say yes", "AC1"], agreements),
            ),
            ("Yes by annotator", table(["annotator", *by_criterion], list(_people(checked)))),
        ],
        list(_notes(checked)),
    )
    document = {
        "kind": questions.kind,
        "stage": questions.stage,
        "n_questions": len(questions.rows),
        "n_kept": len(rows),
        "n_kept_by_few": people.n_few(rows),
        "n_shared": checked.n_shared,
        "annotators": list(checked.people),
        "dropped": dict(dropped),
        "criteria": by_criterion,
        "n_other_text": matched.n_other_text,
        "n_other_question": matched.n_other_question,
    }
    return Report(part, {"built": document})


def _counts(checked: people.Checked, criterion: people.Criterion) -> dict[str, int]:
    counts = [votes.counts(criterion) for votes in checked.matched.votes]
    return {
        "n_answered": sum(n > 0 for _, n in counts),
        "n_yes": sum(2 * n_yes > n for n_yes, n in counts),
    }


def _people(checked: people.Checked) -> Iterator[list[str]]:
    """Yield how often each person says yes: one who says so always, or never, stands out."""
    for person in checked.people:
        said = {
            name: [votes.said[name].get(person) for votes in checked.matched.votes]
            for name in checked.ac1
        }
        yield [
            person,
            *(f"{of.count(people.YES):,} of {len(of) - of.count(None):,}" for of in said.values()),
        ]


def _notes(checked: people.Checked) -> Iterator[str]:
    matched, few = checked.matched, people.n_few(kept(checked.rows))
    for n, why in (
        (matched.n_other_text, "question, options or answer have changed since"),
        (matched.n_other_question, "their question is missing"),
    ):
        if n:
            yield f"{plural(n, 'answer')} not used: {why}"
    if few:
        fewest = people.PAPER_ANNOTATORS
        yield (
            f"{few:,} of the kept questions were answered by fewer than {fewest} people; in the "
            f"paper at least {fewest} look at each"
        )
