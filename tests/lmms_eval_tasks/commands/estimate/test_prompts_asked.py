"""What the estimate takes for a task's prompts is what a run sends, in either order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from lmms_eval_captions.judges.endpoint.answers.tokens import CHARS_PER_TOKEN
from lmms_eval_captions.judges.settings import PROMPT_ORDERS, Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.counting import (
    TYPICAL_ANSWER,
    CaptionedDocument,
)
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.estimate import estimate
from lmms_eval_captions.lmms_eval_tasks.commands.estimate.prompts_asked import (
    prompts_asked,
    shares_by_order,
)
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.submission import submit
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks, benchmark_of_task
from prompt_orders import text_of

TASKS: Final = [
    next(iter(benchmark.tasks))
    for benchmark in all_benchmarks().values()
    if benchmark.measure is None
]
_FIRST_ANSWER: Final = re.compile(r"(Predicted Answer: ).*")
"""In the prompt of a second step: what the judge said to the first, which the estimate makes up."""
HELPED: Final = {"vdc", "vdc_rouge", "msvd_eval", "own_gveval", "own_rating"}
"""Benchmarks whose prompts have constant words behind what differs."""
N_VIDEOS: Final = 3


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


def _documents(task: str, settings: Settings) -> list[tuple[Any, str]]:
    benchmark = benchmark_of_task(task)
    docs = benchmark.read(settings, benchmark.tasks[task])[:N_VIDEOS]
    return [(doc, f"Number {n} of these things moves.") for n, doc in enumerate(docs)]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("order", PROMPT_ORDERS)
def test_prompts_are_those_that_a_run_sends(
    task: str, order: str, bench: pytest.MonkeyPatch, serve: ServerFactory, sample: Path
) -> None:
    """Word for word, but for what the judge answered to first steps."""
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_PROMPT_ORDER", order)
    benchmark, settings = benchmark_of_task(task), read_settings()
    documents = _documents(task, settings)
    for wait in [submit(benchmark, doc, caption) for doc, caption in documents]:
        wait()
    sent = {"\n".join(map(text_of, body["messages"])) for body in server.bodies}
    captioned = [
        CaptionedDocument(
            benchmark.video_id(doc),
            caption,
            list(map(benchmark.unseen, benchmark.questions(doc))),
            benchmark.ask,
        )
        for doc, caption in documents
    ]
    names = benchmark.tasks[task].judge_prompts
    asked = prompts_asked(captioned, benchmark.judge_config(settings), names)
    assert asked.keys() == set(names)
    assert all(len(captions) == len(documents) for captions in asked.values())
    texts = {text for captions in asked.values() for about in captions for text in about}
    assert texts == {_FIRST_ANSWER.sub(rf"\g<1>{TYPICAL_ANSWER}", text) for text in sent}


@pytest.mark.parametrize("task", TASKS)
def test_every_task_says_what_its_prompts_share(task: str, sample: Path, tmp_path: Path) -> None:
    """More with everything constant first where that is not so as printed, else the same."""
    environ = {"LMMS_CAPTIONS_DATA": str(sample), "LMMS_CAPTIONS_JUDGE": "judge"}
    settings = replace(read_settings(environ), cache=tmp_path)
    result = estimate(settings, [task])
    [row] = result.tasks
    paper, constant_first = (row.shared[order] for order in PROMPT_ORDERS)
    name = next(name for name, each in all_benchmarks().items() if task in each.tasks)
    assert 0 < paper.share < 1
    if name in HELPED:
        assert constant_first.share > paper.share + 0.04
    else:
        assert constant_first == paper


def test_anchors_and_made_up_captions_do_not_count_as_shared(sample: Path, tmp_path: Path) -> None:
    """What differs from caption to caption in a run is not one text here."""
    environ = {"LMMS_CAPTIONS_DATA": str(sample), "LMMS_CAPTIONS_JUDGE": "judge"}
    settings = replace(read_settings(environ), cache=tmp_path)
    benchmark = benchmark_of_task("vdc_rouge_short")
    config = benchmark.judge_config(settings)
    docs = benchmark.read(settings, benchmark.tasks["vdc_rouge_short"])
    documents = [
        CaptionedDocument(
            str(n), "word " * 100, benchmark.questions(doc)[:1], benchmark.ask, is_anchor=n > 1
        )
        for n, doc in enumerate(docs)
    ]
    share = shares_by_order(documents, config, ("vdc_answer",))["paper"]
    [[first], _] = prompts_asked(documents[:2], config, ("vdc_answer",))["vdc_answer"]
    assert share.n_prompts == 2
    # The second begins as the first does, up to the caption.
    assert share.n_shared == len(first.partition("word ")[0]) / CHARS_PER_TOKEN


def test_the_estimate_says_it_in_words(
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The order in force first; the other one of the tasks that it would change."""
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", str(sample))
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path))
    JUDGE_RUN.close()
    lines = {}
    for order, other in (PROMPT_ORDERS, PROMPT_ORDERS[::-1]):
        monkeypatch.setenv("LMMS_CAPTIONS_PROMPT_ORDER", order)
        assert main(["estimate", "--tasks", "vdc_short,capquiz", "--judge", "mine"]) == 0
        text = capsys.readouterr().out
        [line] = [line for line in text.splitlines() if line.startswith("Shared beginnings: ")]
        pattern = (
            r"question about it: vdc_short (\d+)%, capquiz (\d+)%; "
            rf"with LMMS_CAPTIONS_PROMPT_ORDER={other}: vdc_short (\d+)%\.$"
        )
        found = re.search(pattern, line)
        assert found is not None, line
        lines[order] = [int(number) for number in found.groups()]
    paper, constant_first = (lines[order] for order in PROMPT_ORDERS)
    assert paper[0] == constant_first[2] < paper[2] == constant_first[0]
    assert paper[1] == constant_first[1]
    assert main(["estimate", "--tasks", "vdc_short", "--judge", "lexical"]) == 0
    assert "Shared beginnings" not in capsys.readouterr().out
