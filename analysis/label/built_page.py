"""The page on which people check questions that were built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.analysis.label.built_questions import BuiltQuestions
from lmms_eval_captions.analysis.label.page_data import (
    Page,
    PageOptions,
    grading_to_row,
    put_together,
)
from lmms_eval_captions.analysis.label.sampling import draw
from lmms_eval_captions.analysis.web_page.frames import frames_of_files
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.commands.building.answers import (
    NO,
    PAGE_KIND,
    YES,
    text_digest,
)
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CRITERIA, Criterion
from lmms_eval_captions.lmms_eval_tasks.commands.building.filters.blind import listed
from lmms_eval_captions.lmms_eval_tasks.grading import Choice, Grading

_CHOICES: Final = (
    Choice(key="y", name=YES, text="Yes"),
    Choice(key="n", name=NO, text="No"),
)


def built_page(questions: BuiltQuestions, options: PageOptions) -> Page:
    """The page: each question with frames of its clip, once for each criterion.

    Where fewer questions are asked about than there are, they are drawn at random, the same ones
    for everyone who is given the same seed. Those of a clip follow each other.

    Args:
        questions: What the stage before the check left.
        options: ``n`` is the number of questions; tasks and strata are not looked at.
    """
    criteria = CRITERIA[questions.kind]
    places = sorted(draw([""] * len(questions.rows), options.n, options.seed))
    rows = [questions.rows[place] for place in places]
    items = list(_items(questions.kind, rows))
    texts = sum(len(item["question"].encode()) + len(item["answer"].encode()) for item in items)
    left = options.bytes_left(texts)
    videos = [
        (str(row["video"]), partial(_file, questions.clips, str(row["video"]))) for row in rows
    ]
    framed = frames_of_files(videos, n_frames=options.n_frames, most_bytes=max(left, 0))
    gradings = {each.name: grading_to_row(_grading(each)) for each in criteria}
    return put_together(PAGE_KIND, items, [], gradings, framed, options, left)


def _items(kind: str, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(rows):
        for place, criterion in enumerate(CRITERIA[kind]):
            yield {
                "id": f"{number}-{place}",
                "task": kind,
                "grading": criterion.name,
                "video_id": row["video"],
                "frames": str(row["video"]),
                "question": _shown(row),
                "answer": row["answer"],
                "captions": [],
                "references": [],
                "choices": None,
                "judge": [],
                "row": {
                    "benchmark": kind,
                    "video_id": row["video"],
                    "question_id": row["id"],
                    "question": row["question"],
                    "answer": row["answer"],
                    "text_digest": text_digest(row),
                    "criterion": criterion.name,
                },
            }


def _shown(row: Mapping[str, Any]) -> str:
    """A question with its options, if it has any, each on a line."""
    return "\n".join(filter(None, (row["question"], listed(row.get("options") or ()))))


def _grading(criterion: Criterion) -> Grading:
    return Grading(
        asks=criterion.asks,
        choices=_CHOICES,
        of_judge=lambda _logged: None,
        judgement=lambda _logged, _label: {},
    )


def _file(clips: Mapping[str, Path], video: str) -> Path:
    path = clips.get(video)
    if path is None or not path.is_file():
        raise DataError(
            f"the clip {video} is not at {str(path)!r}; make the page in the folder that the build "
            "was run in"
        )
    return path
