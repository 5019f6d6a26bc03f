"""Items of a recorded run of every benchmark are asked anew, and compared verdict by verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from five_tasks import Task, Texts, write_data
from honest_judge import EACH, VERIFIED, clips, start_honest_judge
from impostors import quantised_twin
from judge_server import JudgeServer
from lmms_eval_captions.judges.settings import data_settings, read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.recorded import settled_in, words_of
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import subjects_of
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdict_file import verdict_path, write_verdicts

N_VIDEOS: Final = 120
VIDEOS: Final = clips(N_VIDEOS)
STAMP: Final = "20260101_000000"

Record = Callable[[Task], Path]


@pytest.fixture
def server(serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path) -> JudgeServer:
    """The honest judge, and data of every benchmark."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "0")
    return start_honest_judge(serve, bench, VIDEOS, tmp_path / "data")


@pytest.fixture
def record(server: JudgeServer, tmp_path: Path) -> Record:
    """A recorded run of a task, as lmms-eval and this package write it."""

    def run(task: Task) -> Path:
        JUDGE_RUN.close()
        THIS_RUN.clear()
        captions = [f"A caption of clip {n}: something moves." for n in range(N_VIDEOS)]
        samples = task.samples(captions, tmp_path / "results")
        folder = tmp_path / "results" / "model"
        folder.mkdir(parents=True)
        signature = samples[0]["signature of the task"]
        metrics = {"alias": task.name, "signature,none": signature}
        document = {"results": {task.name: metrics}, "configs": {task.name: {"task": task.name}}}
        (folder / f"{STAMP}_results.json").write_text(json.dumps(document))
        items = [sample["breakdown"] for sample in samples]
        write_verdicts(verdict_path(folder, STAMP, task.name), {"task": task.name}, items)
        for sample in samples:
            del sample["doc"]  # lmms-eval's logs have none
        lines = [
            json.dumps({"doc_id": n, "filtered_resps": [captions[n]], **sample}, default=str)
            for n, sample in enumerate(samples)
        ]
        (folder / f"{STAMP}_samples_{task.name}.jsonl").write_text("\n".join(lines))
        JUDGE_RUN.close()
        return tmp_path / "results"

    assert server.url
    return run


@EACH
def test_the_same_judge_passes_by_its_recorded_run(
    task: Task, record: Record, verify: Any, server: JudgeServer
) -> None:
    """87 items that were drawn from it suffice."""
    folder = record(task)
    name = task.hooks.benchmark.name
    told = verify(server, None, "--tasks", name, "--recorded", str(folder), "--format", "json")
    part = told.document["benchmarks"][name]
    assert part["recorded"]["state"] == "passed", part
    assert (part["recorded"]["items"], part["recorded"]["different"]) == (87, 0)
    assert part["recorded_judge"] == "judge"
    assert told.code == 0


@EACH
def test_another_judge_is_flagged_by_it(
    task: Task, record: Record, verify: Any, server: JudgeServer
) -> None:
    """Items of the run that it judges otherwise are named."""
    folder = record(task)
    name = task.hooks.benchmark.name
    server.script = quantised_twin(2, differs=0.3)
    told = verify(server, None, "--tasks", name, "--recorded", str(folder), "--format", "json")
    assert told.code == 1
    recorded = told.document["benchmarks"][name]["recorded"]
    assert recorded["state"] == "flagged"
    assert recorded["examples"][0].startswith(task.name)


@EACH
def test_few_recorded_items_decide_nothing(
    task: Task, record: Record, verify: Any, server: JudgeServer
) -> None:
    """Exit code 3, and how many there were."""
    folder = record(task)
    (log,) = folder.rglob("*_samples_*.jsonl")
    log.write_text("\n".join(log.read_text().splitlines()[:30]))
    name = task.hooks.benchmark.name
    told = verify(server, None, "--tasks", name, "--recorded", str(folder))
    assert told.code == 3
    assert (
        told.last == f"UNDECIDED: {name}: 0 of 30 recorded items differ, which is too few to tell"
    )


@pytest.mark.parametrize(
    ("name", "runs", "asks", "settled"),
    [
        ("vdc", [["yes", "no"], ["yes", "yes"]], None, [(0, "yes"), (1, None)]),
        ("vdc", [["yes", None], ["yes", "no"]], None, [(0, "yes")]),
        ("vcapsbench", [["positive", "negative"]],
         [["yes", "yes", "yes"], ["no", "no", "yes"]], [(0, "positive"), (1, None)]),
        ("msvd_eval", [[80.0, 70.0, 60.0, 50.0], [90.0, 80.0, 70.0, 60.0]], None, [(0, 70.0)]),
        ("msvd_eval", [[80.0, 70.0, 60.0, 50.0], [40.0, 30.0, 20.0, 10.0]], None, [(0, None)]),
    ],
)  # fmt: skip
def test_questions_on_which_its_own_judge_runs_disagree_are_left_out(
    name: str,
    runs: list[list[object]],
    asks: list[list[str]] | None,
    settled: list[tuple[int, object]],
    server: JudgeServer,
) -> None:
    """And those without a verdict in one, and where VCapsBench's asks were not of one mind."""
    assert server.url
    (subject,) = subjects_of(name, read_judge_settings())
    headline = subject.benchmark.headline
    record = CaptionRecord.__new__(CaptionRecord)
    for field, value in {"values": {headline: runs}, "n_dropped": 0, "n_empty": 0}.items():
        object.__setattr__(record, field, value)
    judgements = [{"asks": each} for each in asks] if asks else []
    sample: dict[str, object] = {headline: {"judgements": judgements}}
    n_questions = 1 if name == "msvd_eval" else 2
    assert list(settled_in(subject, record, sample, n_questions)) == settled


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [(70.0, 89.0, True), (70.0, 91.0, False), (70.0, None, False)],
)
def test_numbers_are_the_same_within_a_fifth_of_their_scale(
    before: float, now: float | None, same: bool, server: JudgeServer
) -> None:
    """A rating of 100 may move by 20."""
    assert server.url
    (subject,) = subjects_of("msvd_eval", read_judge_settings())
    first, second = words_of(subject, before, now)
    assert (first == second) == same


def test_a_run_without_sample_logs_is_said_to_be_one(
    record: Record, verify: Any, server: JudgeServer
) -> None:
    """Their captions stand there alone."""
    folder = record(VERIFIED[0])
    (log,) = folder.rglob("*_samples_*.jsonl")
    log.unlink()
    told = verify(server, None, "--tasks", "vdc", "--recorded", str(folder))
    assert told.code == 2
    assert "--log_samples" in told.err


@EACH
def test_other_data_than_the_run_s_is_told(
    task: Task,
    record: Record,
    verify: Any,
    server: JudgeServer,
    bench: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Its questions cannot be asked anew: nothing is."""
    folder = record(task)
    others = [Texts(video.video_id, f"Another: {video.question}") for video in VIDEOS]
    bench.setenv("LMMS_CAPTIONS_DATA", str(write_data(tmp_path / "others", others)))
    data_settings.cache_clear()
    name = task.hooks.benchmark.name
    told = verify(server, None, "--tasks", name, "--recorded", str(folder))
    assert (told.code, told.n_asked) == (2, 0)
    assert "set LMMS_CAPTIONS_DATA as it was" in told.err


@EACH
@pytest.mark.parametrize("runs", ["1", "3"])
def test_verdicts_that_were_drawn_once_are_refused(
    task: Task, runs: str, record: Record, verify: Any, server: JudgeServer,
    bench: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """At temperature 1: several judge runs, or VCapsBench's three asks, tell what is chance."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "1")
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", runs)
    folder = record(task)
    name = task.hooks.benchmark.name
    told = verify(server, None, "--tasks", name, "--recorded", str(folder))
    if runs == "1" and name != "vcapsbench":
        assert (told.code, told.n_asked) == (2, 0)
        assert "LMMS_CAPTIONS_JUDGE_TEMPERATURE=0" in told.err
        assert "LMMS_CAPTIONS_JUDGE_RUNS=3" in told.err
    else:
        assert told.code == 0, told.last


def test_a_run_of_other_benchmarks_is_said_to_be_one(
    record: Record, verify: Any, server: JudgeServer
) -> None:
    """With what to choose."""
    folder = record(VERIFIED[0])
    told = verify(server, None, "--tasks", "capquiz", "--recorded", str(folder))
    assert told.code == 2
    assert "expected a run of any of capquiz" in told.err


@EACH
def test_a_run_with_prompts_in_another_order_is_refused(
    task: Task, record: Record, verify: Any, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """Where the order changes what is sent; nothing is asked."""
    folder = record(task)
    bench.setenv("LMMS_CAPTIONS_PROMPT_ORDER", "constant-first")
    name = task.hooks.benchmark.name
    (subject,) = subjects_of(name, read_judge_settings())
    told = verify(server, None, "--tasks", name, "--recorded", str(folder))
    if subject.prompt_fields:
        assert (told.code, told.n_asked) == (2, 0)
        assert "LMMS_CAPTIONS_PROMPT_ORDER" in told.err
    else:
        assert told.code == 0
