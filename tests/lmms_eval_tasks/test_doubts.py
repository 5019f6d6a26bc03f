"""Captions that cannot be captions are told next to the score and in the signature."""

from __future__ import annotations

import pytest

from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.judging.doubts import no_caption_at_all
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.results.results_writer import complete
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task

NO_CAPTIONS = (
    "Error: 429 Too Many Requests",
    "Error code: 400 - {'error': {'message': 'maximum context length is 8192 tokens'}}",
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "openai.RateLimitError: Error code: 429",
    "503 Service Unavailable",
    "HTTP 500",
    "Traceback (most recent call last):",
    "nan", "None", "null", "N/A", "[object Object]", "undefined",
    "I'm sorry, but I can't assist with that request.",
    "I\u2019m sorry, I cannot describe this video.",
    "Sorry, I can't help with identifying people.",
    "I am unable to view videos directly.",
    "As an AI language model, I cannot watch videos.",
    "I can't provide a description of this content.",
    "You exceeded your current quota, please check your plan.",
)  # fmt: skip
CAPTIONS = (
    "A dog runs.",
    "An error message appears on a blue screen, and a man sighs.",
    "The sign says 404. A woman laughs.",
    "A man says he is sorry, but the woman leaves the room.",
    "Nobody is in the room; none of the lamps are lit.",
    "Sorrow shows in her face as she looks at the letter.",
    "Nan Goldin stands in front of a wall of photographs.",
    "500 people run through a street.",
    "",
)


@pytest.mark.parametrize("text", NO_CAPTIONS)
def test_errors_and_refusals_are_no_captions(text: str) -> None:
    """The text itself is told."""
    assert no_caption_at_all(text) == " ".join(text[:60].split())


@pytest.mark.parametrize("text", CAPTIONS)
def test_captions_about_errors_are_captions(text: str) -> None:
    """Also those that speak of errors, numbers and people who are sorry."""
    assert no_caption_at_all(text) == ""


@pytest.mark.parametrize(
    ("captions", "share", "told"),
    [
        (
            ["Error: 429 Too Many Requests"] * 3 + [f"{n}." for n in range(7)],
            "3/10",
            "such as 'Error: 429",
        ),
        (["A man stands there."] * 6 + [f"Dog {n}." for n in range(4)], "6/10", "6 are the same"),
        ([f"Dog {n}." for n in range(10)], None, None),
        (["A dog."] * 4, None, None),
    ],
)
def test_they_are_told_beside_the_score(
    captions: list[str], share: str | None, told: str | None, bench: pytest.MonkeyPatch
) -> None:
    """In the signature, and as a warning of the run."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    THIS_RUN.clear()
    hooks = hooks_of(benchmark_of_task("vdc_camera"))
    question = {"question": "Who runs?", "answer": "A dog.", "category": "subject"}
    columns: dict[str, list[object]] = {}
    for number, caption in enumerate(captions):
        doc = {"video_id": f"v{number}", "aspect": "camera", "questions": [question]}
        for name, item in hooks.process_results(doc, [caption]).items():
            columns.setdefault(name, []).append(item)
    shown = {f"{name},none": hooks.aggregate(name)(columns[name]) for name in ("vdc_acc",)}
    results = {"results": {"vdc_camera": shown}, "configs": {}}
    run = complete(results, folder=None, stamp="")
    assert run is not None
    signature = run.document["tasks"]["vdc_camera"]["signature"]
    warnings = run.document["warnings"]
    THIS_RUN.clear()
    if share is None:
        assert "suspicious" not in signature
        assert warnings == []
    else:
        assert f"|suspicious:{share}" in signature
        assert f"{share.replace('/', ' of ')} captions cannot be captions" in warnings[0]
        assert str(told) in warnings[0]
