"""Built questions that people check: their page, and a report on the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lmms_eval_captions.analysis.gradings import Choice, Grading
from lmms_eval_captions.analysis.label.page import Page, PageOptions, draw, item_of, page_of
from lmms_eval_captions.analysis.label.report import Report
from lmms_eval_captions.analysis.tables import Part, plural, table, with_interval
from lmms_eval_captions.construction import people, pipeline
from lmms_eval_captions.construction.filters import listed
from lmms_eval_captions.construction.pipeline import Row, kept
from lmms_eval_captions.construction.writing import CLIPS
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks

_CHOICES: Final = (
    Choice(key="y", name=people.YES, text="Yes"),
    Choice(key="n", name=people.NO, text="No"),
)


class BuiltQuestions(NamedTuple):
    """Questions of the stage before people check them."""

    kind: str
    """The benchmark's name."""
    stage: str
    """Name of that stage."""
    rows: Sequence[Row]
    clips: Mapping[str, Path]
    """File of each clip, by its name, within the folder of the clips."""


def questions_to_check(folder: Path, videos: Path | None = None) -> BuiltQuestions:
    """Return the questions in a benchmark's folder that people are asked about.

    ``videos`` is the clips' folder, by default the one into which a complete build links them.
    Files elsewhere are not shown, whatever the stage's file names.
    """
    folder = folder.expanduser()
    kind = folder.resolve().name
    if kind not in people.CRITERIA:
        raise SettingsError(
            f"--build: expected the folder of a benchmark that was built, such as DATA/capquiz, or "
            f"one of {', '.join(people.CRITERIA)}, got {str(folder)!r}"
        )
    files = pipeline.stage_files(folder)
    names = [path.stem.partition("-")[2] for path in files]
    end = next((place for place, name in enumerate(names) if name in people.CHECKS), len(files))
    rows = kept(pipeline.read_stage(files[end - 1])[1]) if CLIPS.name in names[:end] else []
    if not rows or not all(row.keys() >= {"id", "video", "question", "answer"} for row in rows):
        raise DataError(
            f"--build: expected files of stages up to questions in {folder / pipeline.FOLDER}, got "
            f"{', '.join(path.name for path in files) or 'none'}; run lmms-eval-captions build "
            f"{kind} to its end"
        )
    clips = {}
    linked = folder / Path(all_benchmarks()[kind].source.video_folder).name
    for row in kept(pipeline.read_stage(files[names.index(CLIPS.name)])[1]):
        path = linked / Path(str(row.get("file"))).name
        if videos is not None:
            path = Path(str(row["path"])).resolve()
        if videos is None or videos.expanduser().resolve() in path.parents:
            clips[str(row["video"])] = path
    return BuiltQuestions(kind, names[end - 1], rows, clips)


def built_page(questions: BuiltQuestions, options: PageOptions) -> Page:
    """Return the page: each question with frames of its clip, once for each criterion.

    If fewer questions are asked than there are, they are drawn at random, the same for everyone
    with the same seed. Those of a clip follow each other.
    """

    def find(_kind: str, video: str) -> Path:
        path = questions.clips.get(video)
        if path is None or not path.is_file():
            raise DataError(f"the clip {video} is not at hand; name the clips' folder by --videos")
        return path

    kind, items = questions.kind, []
    criteria = people.CRITERIA[kind]
    for index in sorted(draw(len(questions.rows), options.n, options.seed)):
        row = questions.rows[index]
        # With its options, if it has any, each on a line.
        question = "\n".join(filter(None, (row["question"], listed(row.get("options") or ()))))
        for criterion in criteria:
            exported = {
                "question_id": row["id"], "question": row["question"], "answer": row["answer"],
                "text_digest": people.text_digest(row), "criterion": criterion.name,
            }  # fmt: skip
            item = item_of(
                kind, kind, str(row["video"]), exported, grading=criterion.name, question=question,
                answer=row["answer"],
            )  # fmt: skip
            items.append(item)
    gradings = {of.name: Grading(asks=of.asks, choices=_CHOICES) for of in criteria}
    return page_of(people.PAGE_KIND, items, gradings, options, find)


def built_report(paths: Sequence[Path], questions: BuiltQuestions, *, fewest: int) -> Report:
    """Report the agreement by criterion, and which questions ``fewest`` annotators would keep."""
    given = people.read_answers(paths, questions.kind)
    checked = people.check_by_people(questions.rows, given, questions.kind, fewest=fewest)
    votes, rows = checked.matched.votes, kept(checked.rows)
    dropped = Counter(str(row["dropped"]) for row in checked.rows if "dropped" in row)
    criteria, agreements = {}, []
    for criterion in people.CRITERIA[questions.kind]:
        counts = [of.counts(criterion) for of in votes]
        n_answered = sum(n > 0 for _, n in counts)
        n_yes = sum(2 * n_yes > n for n_yes, n in counts)
        ac1 = checked.ac1[criterion.name]
        criteria[criterion.name] = {"n_answered": n_answered, "n_yes": n_yes, "ac1": ac1}
        shown = [f"{n_answered:,}", f"{n_yes:,}", with_interval(ac1, 3)]
        agreements.append([criterion.name, *shown])
    sentences = [
        f"{len(questions.rows):,} questions of the stage {questions.stage!r}; "
        f"{checked.n_shared:,} were answered by at least 2 of {len(checked.people)} people. "
        f"Kept: {len(rows):,}.",
        *(f"Dropped: {n:,}, {reason}." for reason, n in dropped.most_common()),
    ]
    title = "Gwet's AC1 (1 is complete agreement, 0 is chance) with 95% intervals over clips"
    header = ["criterion", "questions answered", "most say yes", "AC1"]
    tables = [(title, table(header, agreements))]
    unused = (
        (checked.matched.n_other_text, "question, options or answer have changed since"),
        (checked.matched.n_other_question, "their question is missing"),
    )
    notes = [f"{plural(n, 'answer')} not used: {why}" for n, why in unused if n]
    if few := people.n_few(rows):
        paper = people.PAPER_ANNOTATORS
        notes.append(
            f"{few:,} of the kept questions were answered by fewer than {paper} people; in the "
            f"paper at least {paper} look at each"
        )
    part = Part(f"Built questions of {questions.kind}", sentences, tables, notes)
    document = {
        "kind": questions.kind,
        "stage": questions.stage,
        "n_questions": len(questions.rows),
        "n_kept": len(rows),
        "n_kept_by_few": few,
        "n_shared": checked.n_shared,
        "annotators": list(checked.people),
        "dropped": dict(dropped),
        "criteria": criteria,
        "n_other_text": checked.matched.n_other_text,
        "n_other_question": checked.matched.n_other_question,
    }
    return part, {"built": document}
