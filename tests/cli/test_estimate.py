"""The estimate against runs: what it says would be sent is what is sent."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ServerFactory
from five_tasks import CAPTIONER_PAPERS
from judge_server import JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.endpoint.adapt import NEUTRAL
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.estimate import CaptionFile, estimate
from lmms_eval_captions.lmms_eval_tasks.judging.expected import TaskEstimate
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path
from lmms_eval_captions.lmms_eval_tasks.task_names import (
    all_benchmarks,
    task_groups,
    tasks_of,
)
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks
from lmms_eval_captions.lmms_eval_tasks.vdc.benchmark import read_questions

_ASPECTS = ("camera", "detailed")
_N_VIDEOS = 5


@pytest.fixture
def data(tmp_path: Path, shared_data: Path) -> Path:
    """A few videos of the real questions of two aspects, and a file of captions of them."""
    root = tmp_path / "data"
    folder = root / "vdc" / "VDCScore_qa"
    folder.mkdir(parents=True)
    videos: set[str] = set()
    for aspect in _ASPECTS:
        with gzip.open(shared_data / "vdc_qa" / f"{aspect}.jsonl.gz", "rt") as stream:
            lines = [next(stream) for _ in range(_N_VIDEOS)]
        (folder / f"{aspect}.jsonl").write_text("".join(lines))
        videos |= {name for line in lines for name in json.loads(line)}
    rows = [
        {"video_id": name, "caption": f"Video {name}. " + "A person walks along a road. " * 15}
        for name in sorted(videos)
    ]
    (root / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


@pytest.fixture
def settings(data: Path, tmp_path: Path, serve: ServerFactory) -> Iterator[Settings]:
    """Settings of runs that ask a scripted judge, also in the environment."""
    server = serve()
    server.keep_bodies = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
        patch.setenv("LMMS_CAPTIONS_DATA", str(data))
        patch.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
        patch.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        for name in ("LMMS_CAPTIONS_JUDGE_RUNS", "LMMS_CAPTIONS_PRICES"):
            patch.delenv(name, raising=False)
        SESSION.close()
        SERVERS[:] = [server]
        yield read_settings()
        SESSION.close()


SERVERS: list[JudgeServer] = []


@pytest.fixture(scope="module")
def sample_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder in which the sample is generated once."""
    return tmp_path_factory.mktemp("cache")


def _run(settings: Settings, captions: Path, aspects: tuple[str, ...] = _ASPECTS) -> None:
    assert _judge(settings, captions, aspects) == 0


def _judge(settings: Settings, captions: Path, aspects: tuple[str, ...]) -> int:
    of_video = {
        row["video_id"]: row["caption"]
        for row in map(json.loads, captions.read_text().splitlines())
    }
    items = []
    for aspect in aspects:
        for video, pairs in read_questions(settings, aspect).items():
            doc = {"video_id": video, "aspect": aspect, "questions": pairs}
            if video in of_video:
                caption = of_video[video].strip()
                items.append(hooks.process_results(doc, [caption])["unscored"])
    return int(hooks.aggregate_unscored(items))


def _usage(server: JudgeServer) -> tuple[int, int]:
    """Tokens by the server's own rule."""
    # Sampling parameters that are sent explicitly are no words of the prompt.
    asked = [{k: v for k, v in body.items() if k not in NEUTRAL} for body in server.bodies]
    n_input = sum(len(json.dumps(body, separators=(",", ":"))) // 4 for body in asked)
    texts = [server.reply(body["messages"][-1]["content"]) for body in server.bodies]
    return n_input, sum(len(text) // 4 + 1 for text in texts)


def _rows(settings: Settings, captions: Path | None, *tasks: str) -> dict[str, TaskEstimate]:
    given = None if captions is None else CaptionFile(str(captions))
    result = estimate(settings, tasks or ["vdc_camera", "vdc_detailed"], captions=given)
    assert result.problems == []
    return {counts.task: counts for counts in result.tasks}


def test_the_estimate_of_vdc_is_what_a_run_sends(settings: Settings, data: Path) -> None:
    """On real questions calls are exact, input tokens within 10% of the server's own count."""
    rows = _rows(settings, data / "captions.jsonl").values()
    _run(settings, data / "captions.jsonl")
    server = SERVERS[0]
    assert sum(row.n_calls for row in rows) == server.counts.n_requests > 300
    n_input, n_output = _usage(server)
    assert sum(row.input_tokens for row in rows) == pytest.approx(n_input, rel=0.10)
    # Ours are typical lengths, the server's replies are short: the order of magnitude must fit.
    assert 1.0 < sum(row.output_tokens for row in rows) / n_output < 3.0


def test_what_is_in_the_store_is_counted_as_such(settings: Settings, data: Path) -> None:
    """After a run nothing is left to send; after half of it, the other half is."""
    before = _rows(settings, data / "captions.jsonl")
    assert all(row.n_stored == 0 for row in before.values())
    _run(settings, data / "captions.jsonl", ("camera",))
    SESSION.close()
    after = _rows(settings, data / "captions.jsonl")
    assert (after["vdc_camera"].n_calls, after["vdc_camera"].input_tokens) == (0, 0.0)
    assert after["vdc_camera"].n_stored == before["vdc_camera"].n_calls
    assert after["vdc_detailed"].n_calls == before["vdc_detailed"].n_calls


def test_tasks_that_share_requests_count_them_once(settings: Settings) -> None:
    """The first steps of a task are not counted again for another that asks the same."""
    rows = _rows(settings, None, "vdc_camera", "vdc_rouge_camera")
    assert rows["vdc_rouge_camera"].n_questions == rows["vdc_camera"].n_questions
    assert rows["vdc_rouge_camera"].n_calls == 0


def test_videos_without_a_caption_are_counted_and_left_out(settings: Settings, data: Path) -> None:
    """A missing caption is said to be missing, and an empty one is not asked about."""
    lines = (data / "captions.jsonl").read_text().splitlines()
    names = [json.loads(line)["video_id"] for line in lines]
    camera = list(read_questions(settings, "camera"))
    kept = [line for line, name in zip(lines, names, strict=True) if name != camera[0]]
    kept = [line for line in kept if json.loads(line)["video_id"] != camera[1]]
    kept.append(json.dumps({"video_id": camera[1], "caption": " ... "}))
    partial = data / "partial.jsonl"
    partial.write_text("\n".join(kept) + "\n")
    row = _rows(settings, partial, "vdc_camera")["vdc_camera"]
    assert (row.n_missing, row.n_captions) == (1, _N_VIDEOS - 2)
    assert 0 < row.n_calls < _rows(settings, None, "vdc_camera")["vdc_camera"].n_calls


TASKS = [task for benchmark in all_benchmarks().values() for task in benchmark.tasks]


def test_every_task_and_group_has_an_estimate() -> None:
    """The records hold exactly the tasks of the YAML files, and a group is what is in it."""
    names: set[str] = set()
    for path in tasks_path().rglob("*.yaml"):
        fields = dict(line.split(": ", 1) for line in path.read_text().splitlines() if ": " in line)
        names.add(fields.get("group", fields["task"]))
    assert {*TASKS, *task_groups()} == names
    assert len(set(TASKS)) == len(TASKS)
    assert tasks_of("vidcapbench, vcapsbench,vidcapbench_he") == [
        *("vidcapbench_ae", "vidcapbench_he", "vcapsbench"),
    ]
    assert set(tasks_of("video_captions")) == set(TASKS) - {
        "capquiz_detailed",
        *(
            task
            for task in TASKS
            if task.startswith(("vdc_rouge", "vdc_classic", "vdc_vdd", "own", *CAPTIONER_PAPERS))
        ),
    }


def test_one_ask_of_vcapsbench_is_estimated_as_a_third(sample_cache: Path) -> None:
    """The count follows ``LMMS_CAPTIONS_VCAPSBENCH_ASKS``."""
    environ = {"LMMS_CAPTIONS_DATA": "sample", "LMMS_CAPTIONS_CACHE": str(sample_cache)}
    once = read_settings({**environ, "LMMS_CAPTIONS_VCAPSBENCH_ASKS": "1"})
    thrice = _rows(read_settings(environ), None, "vcapsbench")["vcapsbench"]
    row = _rows(once, None, "vcapsbench")["vcapsbench"]
    assert (3 * row.n_calls, row.n_questions) == (thrice.n_calls, thrice.n_questions)


def test_the_command_prints_a_table_and_what_it_rests_on(
    settings: Settings, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts, both costs, assumptions, and how far off they may be."""
    tasks = "vdc_camera,vdc_detailed"
    assert main(["estimate", "--tasks", tasks, "--captions", str(data / "captions.jsonl")]) == 0
    text = capsys.readouterr().out
    for words in (
        "calls",
        "in batches",
        "in the store",
        "all",
        "$",
        "4 characters per token",
        "20%",
    ):
        assert words in text
    assert main(["estimate", "--tasks", tasks, "--judge", "mine", "--judge-runs", "2"]) == 0
    text = capsys.readouterr().out
    assert "unknown" in text
    assert "No price is known of mine: give one in LMMS_CAPTIONS_PRICES." in text


@pytest.mark.parametrize("option", ["--captions", "--model_args"])
def test_arguments_of_the_model_are_taken(
    settings: Settings, data: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """A column of its own, and what is done about captions that are not there."""
    names = list(read_questions(settings, "camera"))
    rows = [{"video_id": name, "mine": "A dog. " * 9, "caption": "x"} for name in names[1:]]
    path = data / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def told(words: str) -> tuple[int, str, str]:
        status = main(["estimate", "--tasks", "vdc_camera", option, f"path={path},{words}"])
        return status, *capsys.readouterr()

    status, out, _ = told("column=mine,missing=drop")
    assert status == 0
    assert f"Captions: {len(rows)} of {path}, 62 characters on average" in out
    assert "missing, counted in each task: 1, left out of their tasks (missing=drop)" in out
    assert "Time: about " in out
    status, out, _ = told("column=mine,missing=skip")
    assert status == 0
    assert "vdc_camera: no score is possible and nothing is asked: 1 missing of 5 captions" in out
    assert "Time:" not in out
    status, _, err = told("column=mine")
    assert status == 1
    assert "vdc_camera: 1 captions are missing" in err
    assert "missing=drop" in err
    assert told("colum=mine")[0] == 2
    assert told("missing=perhaps")[0] == 2


def test_a_benchmark_that_is_missing_does_not_hide_the_others(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", "--tasks", "vdc_camera,capquiz"]) == 1
    printed = capsys.readouterr()
    assert "vdc_camera" in printed.out
    assert "problem: capquiz" in printed.err


def test_a_task_that_is_not_ours_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error is a usage error that lists the tasks."""
    assert main(["estimate", "--tasks", "vdc_scores"]) == 2
    assert "vdc_score" in capsys.readouterr().err


def test_the_command_starts_without_heavy_libraries(sample_cache: Path) -> None:
    """Neither lmms-eval nor torch is imported for an estimate."""
    script = (
        "import sys; from lmms_eval_captions.cli.main import main; "
        "status = main(['estimate', '--tasks', 'video_captions', '--judge', 'x']); "
        "print(status, {'lmms_eval', 'torch', 'datasets', 'transformers'} & set(sys.modules))"
    )
    env = {"LMMS_CAPTIONS_DATA": "sample", "LMMS_CAPTIONS_CACHE": str(sample_cache), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 set()"
