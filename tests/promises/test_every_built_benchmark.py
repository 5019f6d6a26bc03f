"""Every kind of benchmark that can be built is scored by its own tasks, own categories too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from breakdowns import kept_breakdown
from builder_replies import Told
from builder_server import Builder, BuilderServer
from building_runs import command, in_this_process
from ended_builds import hasten, name_clips
from ended_runs import judge
from lmms_eval_captions.construction.build import KINDS as NAMES
from lmms_eval_captions.construction.build import Built
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from numbered_clips import write_clips
from runs import environment as environment_of_runs
from runs import run_lmms_eval
from warm_lmms_eval import run_warm

OWN: Final = {
    "capquiz": ("protective gear", "vehicles"),
    "vcapsbench": ("protective gear", "vehicles"),
    "vidcapbench": ("safety/protective gear", "safety/vehicles"),
}
"""Categories of one's own; VDC's aspects are fixed."""
SECTIONS: Final = {"capquiz": "types", "vcapsbench": "categories", "vidcapbench": "sub_categories"}
"""Section of the breakdown that has a row for each category."""
TASKS: Final = {
    "capquiz": ("capquiz",),
    "vcapsbench": ("vcapsbench",),
    "vdc": ("vdc_camera", "vdc_short", "vdc_background", "vdc_main_object", "vdc_detailed"),
    "vidcapbench": ("vidcapbench_ae", "vidcapbench_he"),
}
"""The tasks that score a kind, whose questions are all that were built."""


@pytest.fixture
def server() -> Iterator[BuilderServer]:
    """Writes, solves, views, and judges."""
    with BuilderServer(Builder(Told(n_questions=10))) as server:
        yield server


@pytest.fixture
def build(bench: pytest.MonkeyPatch, tmp_path: Path, server: BuilderServer) -> Callable[..., Built]:
    """Builds a kind, and makes its data those of this process."""
    hasten(bench)

    def made(kind: str, **further: Any) -> Built:
        clips = name_clips(tmp_path / "clips", 3)
        given = {"cache": tmp_path / "build-cache", "per_video": 6, **further}
        built = in_this_process(kind, clips, tmp_path / "data", server.url, **given)
        bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "data"))
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        return built

    return made


def _documents(task: str) -> list[dict[str, Any]]:
    benchmark = benchmark_of_task(task)
    return list(hooks_of(benchmark).process_docs([benchmark.tasks[task].fields]))


def _scored(task: str) -> dict[str, Any]:
    """The numbers of a task, with a caption of every document."""
    documents = _documents(task)
    return judge(task, [f"Caption {number}." for number in range(len(documents))], documents)


def _tasks(built: Built) -> list[str]:
    """The tasks that there are questions for, each question once."""
    names = built.kind.tasks_of(built.files)
    return [task for task in TASKS[built.kind.name] if set(names) & {task, *built.kind.tasks}]


@pytest.mark.parametrize("kind", NAMES)
def test_a_built_benchmark_is_scored_by_its_tasks(kind: str, build: Callable[..., Built]) -> None:
    built = build(kind)
    n_questions = 0
    for task in _tasks(built):
        values = _scored(task)
        benchmark = benchmark_of_task(task)
        headline = values[f"{benchmark.headline},none"]
        assert headline == headline
        assert values["unscored,none"] == 0.0
        n_questions += kept_breakdown(task)["overall"]["all"]["n_questions"]
        for document in _documents(task):
            (path,) = hooks_of(benchmark).doc_to_visual(document)
            assert Path(path).read_bytes() == b"no clip"
    assert n_questions == built.n_questions


@pytest.mark.parametrize("kind", sorted(OWN))
def test_categories_of_ones_own_have_rows_of_their_own(
    kind: str, build: Callable[..., Built], tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("".join(f"{name}: what it is about\n" for name in OWN[kind]))
    built = build(kind, categories=file)
    counted: Counter[str] = Counter()
    for task in _tasks(built):
        _scored(task)
        rows = kept_breakdown(task)[SECTIONS[kind]]
        counted.update({name: row["n_questions"] for name, row in rows.items()})
    assert set(counted) == {name.split("/")[-1] for name in OWN[kind]}
    assert counted.total() == built.n_questions


def test_one_command_builds_and_one_scores(tmp_path: Path, server: BuilderServer) -> None:
    """Real clips become a benchmark, whose captions lmms-eval scores from a file."""
    clips = write_clips(tmp_path / "clips", 2)
    line = command("capquiz", clips, tmp_path / "data", "--frames", "2", "--per-video", "6")
    env = environment_of_runs(tmp_path / "cache", LMMS_CAPTIONS_JUDGE_URL=server.url)
    program = line.index("build")
    done = run_warm(line[program:], env=env, cwd=tmp_path, program="lmms-eval-captions")
    assert done.returncode == 0, done.log
    assert "12 questions in" in done.log
    captions = tmp_path / "captions.jsonl"
    captions.write_text(
        "".join(
            f"{json.dumps({'video': clip.name, 'caption': f'All of {clip.stem}.'})}\n"
            for clip in sorted(clips.iterdir())
        )
    )
    env |= {"LMMS_CAPTIONS_DATA": str(tmp_path / "data"), "LMMS_CAPTIONS_JUDGE": "judge"}
    arguments = ("--model", "caption_file", "--model_args", f"path={captions}")
    run = run_lmms_eval(tmp_path / "out", *arguments, "--tasks", "capquiz", env=env)
    assert run.returncode == 0, run.log
    assert run.breakdown("capquiz")["overall"]["all"]["n_questions"] == 12
    assert (tmp_path / "data/capquiz/DATA_CARD.md").is_file()
