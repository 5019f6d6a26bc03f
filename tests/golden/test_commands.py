"""Golden outputs of the commands over finished runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from golden import check, numbers, numbers_of_text
from lmms_eval_captions.cli.main import main
from planted_world import World

GATES = {
    "vdc_score": "vdc_acc",
    "vidcapbench": "acc",
    "vcapsbench": "ar",
    "capquiz": "capf1",
    "msvd_eval": "avg",
    "own_gveval_ref_free": "avg",
    "own_vllm_judge": "overall",
}


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    code = main(arguments)
    return f"{capsys.readouterr().out}\nexit code {code}"


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    capsys.readouterr()
    code = main([*arguments, "--format", "json"])
    return {"exit code": code, **numbers(json.loads(capsys.readouterr().out))}


@pytest.mark.parametrize("n_captioners", [2, 3])
@pytest.mark.parametrize("form", ["json", "text", "latex", "csv", "markdown"])
def test_compare(
    n_captioners: int, form: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Scores, differences, intervals and p-values of all tasks."""
    line = ("compare", *list(folders.values())[:n_captioners])
    name = f"compare-{n_captioners}-{form}"
    if form == "json":
        check(name, _json(capsys, *line))
    else:
        check(name, numbers_of_text(_printed(capsys, *line, "--format", form)))


@pytest.mark.parametrize("task", ["vdc_camera", "vidcapbench_ae", "vcapsbench,capquiz"])
def test_compare_some_tasks(
    task: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The same numbers, of fewer tasks."""
    line = ("compare", folders["alpha"], folders["beta"], "--tasks", task)
    check(f"compare-tasks-{task}", _json(capsys, *line))


@pytest.mark.parametrize("task", GATES)
@pytest.mark.parametrize("bound", [-50, 0, 50])
def test_gates(
    task: str, bound: int, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """GO, NO-GO or INCONCLUSIVE, and the videos that would settle it."""
    gate = f"{task}:{GATES[task]}>={bound}"
    line = ("compare", folders["alpha"], folders["beta"], "--tasks", task, "--gate", gate)
    printed = _printed(capsys, *line)
    check(f"gate-{task}-{bound}", numbers_of_text(printed[printed.rfind("gate") :]))


@pytest.mark.parametrize("form", ["text", "latex"])
def test_paper_tables(
    form: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each captioner."""
    printed = _printed(capsys, "compare", *folders.values(), "--paper", "--format", form)
    check(f"paper-{form}", numbers_of_text(printed))


@pytest.mark.parametrize("captioner", ["alpha", "beta"])
def test_agree(
    captioner: str, world: World, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two judges of one captioner: agreement, leniency, ranking, cost."""
    line = ("agree", folders[captioner], str(world.run(captioner, "judge-b")))
    check(f"agree-{captioner}", _json(capsys, *line))


def test_agree_of_two_judges_and_two_captioners(
    world: World, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Agreement over both captioners, and the ranking by each judge."""
    others = [str(world.run(captioner, "judge-b")) for captioner in ("alpha", "beta")]
    line = ("agree", folders["alpha"], folders["beta"], *others)
    check("agree-both", _json(capsys, *line))
    check("agree-both-text", numbers_of_text(_printed(capsys, *line)))


@pytest.mark.parametrize("form", ["json", "text", "latex"])
def test_stability(form: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Share of questions with the same verdict in both judge runs."""
    line = ("stability", *folders.values())
    if form == "json":
        check("stability-json", _json(capsys, *line))
    else:
        check(f"stability-{form}", numbers_of_text(_printed(capsys, *line, "--format", form)))


def test_stability_split(tmp_path: Path, folders: dict[str, str]) -> None:
    """Official files of the questions that are answered alike in both runs, and of the others."""
    tasks = ("--tasks", "vdc_score,vidcapbench,vcapsbench,capquiz")
    split = str(tmp_path / "split")
    assert main(["stability", *folders.values(), *tasks, "--split", split]) == 0
    files = sorted(path for path in Path(split).rglob("*.json*") if path.name != "split.json")
    assert len(files) > 10
    check(
        "stability-split",
        {path.relative_to(tmp_path).as_posix(): path.read_text() for path in files},
    )


@pytest.mark.parametrize("captioner", ["alpha", "beta", "gamma"])
def test_check(captioner: str, folders: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Every score that cannot be trusted, and the exit code."""
    printed = _printed(capsys, "check", folders[captioner])
    lines = re.findall(r"^  (ok|problem) +(\w+): (.*)$", printed, re.MULTILINE)
    metrics = re.compile(r"(\w+) (\S+ \[\S+, \S+\])")
    scores = {
        task: {"state": state, **dict(sorted(metrics.findall(rest)))}
        for state, task, rest in sorted(lines)
    }
    check(f"check-{captioner}", {"exit code": printed.split()[-1], **scores})


@pytest.mark.parametrize(
    "tasks", ["vdc_score", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval"]
)
def test_estimate(
    tasks: str, world: World, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Calls, tokens and dollars before the first request."""
    captions = f"path={world.root / 'alpha.jsonl'}"
    printed = _printed(capsys, "estimate", "--tasks", tasks, "--model_args", captions)
    printed = re.sub(r"Prices of [^;]*;", "", printed.replace(str(world.root), ""))
    check(f"estimate-{tasks}", numbers_of_text(printed))


def test_meta_eval(
    tmp_path: Path, folders: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Kendall's tau of a metric of the user's with people."""
    scores = {f"v{number:02}": number * 7 % 10 for number in range(10)}
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(scores))
    line = ("meta-eval", "msvd", "--no-classic", "--scores", str(path))
    check("meta-eval", numbers_of_text(_printed(capsys, *line)))
