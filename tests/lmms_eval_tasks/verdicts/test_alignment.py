"""What several captioners are compared on is what all of them have a verdict on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.verdicts.alignment import Counts, align
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import TaskVerdicts, Verdicts
from planted_runs import VERDICTS, PlantedCaption, Question, record_of

TASKS = [next(iter(benchmark.tasks)) for benchmark in all_benchmarks().values()]


def _verdicts(task: str, captions: Sequence[CaptionRecord]) -> Verdicts:
    of_task = TaskVerdicts(task, benchmark_of_task(task), None, list(captions))
    return Verdicts(task, (of_task,), False)


def _verdicts_of_judge(task: str) -> Sequence[object]:
    benchmark = benchmark_of_task(task)
    records = {id(one): name for name, one in all_benchmarks().items()}
    # Any labels will do but where they are added up.
    return VERDICTS.get(benchmark.name, VERDICTS[records[id(benchmark)]])


def _caption(
    task: str, video: str, texts: Sequence[str], runs: Sequence[Sequence[object]]
) -> CaptionRecord:
    questions = [Question(text, {"kind": text[:1]}) for text in texts]
    return record_of(task, PlantedCaption(video, questions, runs))


@pytest.mark.parametrize("task", [task for task in TASKS if not task.startswith(("msvd", "own"))])
def test_questions_are_aligned_by_text_and_occurrence(task: str) -> None:
    """In the order of the first; what is not in both, or never scored in one, is in neither."""
    verdicts_of_judge = _verdicts_of_judge(task)
    best, worst = verdicts_of_judge[0], verdicts_of_judge[-1]
    a = _caption(task, "v1", ["x", "y", "x", "z", "u"], [[best, best, worst, best, best]] * 2)
    b = _caption(task, "v1", ["x", "x", "y", "u", "w"], [
        [worst, best, worst, None, best], [worst, best, None, None, best],
    ])  # fmt: skip
    aligned = align([_verdicts(task, [a]), _verdicts(task, [b])])
    (first,), (second,) = (verdicts.tasks[0].captions for verdicts in aligned.verdicts)
    headline = benchmark_of_task(task).headline
    assert list(first.asked) == list(second.asked) == ["x", "y", "x"]
    for caption, expected in ((first, [best, best, worst]), (second, [worst, worst, best])):
        for value, verdict in zip(caption.values[headline][0], expected, strict=True):
            assert value == verdict
        assert caption.groups["kind"][0] == ["x", "y", "x"]
    assert second.values[headline][1][1] is None
    assert aligned.counts == Counts(1, 1, 3, 0, 2, 1)


@pytest.mark.parametrize("task", TASKS)
def test_captions_are_aligned_by_video(task: str) -> None:
    """A video that one has not, or whose caption was dropped, is left out and counted."""
    best = _verdicts_of_judge(task)[0]
    captions = [_caption(task, video, ["x"], [[best]]) for video in ("v1", "v2", "v3")]
    nothing: dict[str, list[list[object]]] = {name: [] for name in captions[0].values}
    dropped = replace(captions[1], n_dropped=1, values=nothing, groups={}, asked=())
    others = [captions[2], dropped, captions[0]]
    aligned = align([_verdicts(task, captions), _verdicts(task, others)])
    for verdicts in aligned.verdicts:
        assert [caption.video_id for caption in verdicts.tasks[0].captions] == ["v1", "v3"]
    assert (aligned.counts.n_captions, aligned.counts.n_other_captions) == (2, 1)
    assert aligned.counts.words() == "1 caption that not all have"


def test_a_dimension_without_a_value_in_one_is_without_in_both() -> None:
    """Of four grades the others stay."""
    task = "msvd_eval_ref_only"
    a, b = (_caption(task, "v1", ["x"], [[80.0]]) for _ in "ab")
    grades = [[80.0, None, 80.0, 80.0]]
    b = replace(b, values={**b.values, "avg": grades, "completeness": [[None]]})
    aligned = align([_verdicts(task, [a]), _verdicts(task, [b])])
    for verdicts in aligned.verdicts:
        values = verdicts.tasks[0].captions[0].values
        assert values["avg"] == grades
        assert values["completeness"] == [[None]]
        assert values["accuracy"] == [[80.0]]


def test_another_gold_answer_to_the_same_question_is_counted() -> None:
    """It is another measurement, though the words that were asked are the same."""
    caption = _caption("vcapsbench", "v1", ["x"], [["positive"]])
    other = replace(caption, questions="0" * 16)
    aligned = align([_verdicts("vcapsbench", [caption]), _verdicts("vcapsbench", [other])])
    assert aligned.counts.n_other_answers == 1


def test_groups_of_other_tasks_are_an_error() -> None:
    """The mean of four aspects is not beside that of five."""
    of = {
        task: TaskVerdicts(task, benchmark_of_task(task), None, [])
        for task in ("vdc_camera", "vdc_short")
    }
    with pytest.raises(DataError, match="same tasks"):
        align(
            [
                Verdicts("vdc_score", tuple(of.values()), False),
                Verdicts("vdc_score", (of["vdc_camera"],), False),
            ]
        )
