"""VDC from the command line to the results folder, as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

import pytest

from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from runs import Run, command, environment, run_lmms_eval

KEY = "sk-test-0123456789abcdef"
FROM_FILE = ("--model", "caption_file", "--tasks", "vdc_score")


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Model arguments that take the sample's captions from their file."""
    root = sample_root(tmp_path_factory.mktemp("sample"))
    return f"path={root / 'vdc' / 'captions.jsonl'}"


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    """A judge that answers at once and wants a key."""
    with JudgeServer(Behaviour(key=KEY)) as server:
        yield server


def _judged_by(server: JudgeServer, cache: Path, **variables: str) -> dict[str, str]:
    settings = {
        "LMMS_CAPTIONS_JUDGE": "a-judge",
        "LMMS_CAPTIONS_JUDGE_URL": server.url,
        "OPENAI_API_KEY": KEY,
        **variables,
    }
    return environment(cache, **settings)


def _recomputed(run: Run) -> dict[str, float]:
    """Every number again, from the verdicts in the samples alone."""
    numbers = {}
    for aspect in ASPECTS:
        videos = [sample["vdc_acc"]["judgements"] for sample in run.samples(f"vdc_{aspect}")]
        accuracy = [fmean(j["verdict"] == "yes" for j in video) for video in videos]
        quality = [fmean(j["score"] for j in video) for video in videos]
        numbers[f"vdc_{aspect} vdc_acc"] = 100 * fmean(accuracy)
        numbers[f"vdc_{aspect} vdc_score"] = fmean(quality)
    for metric in ("vdc_acc", "vdc_score"):
        numbers[f"vdc_score {metric}"] = fmean(numbers[f"vdc_{a} {metric}"] for a in ASPECTS)
    return numbers


def _secrets(*folders: Path) -> list[Path]:
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if KEY.encode() in path.read_bytes()]


def test_the_demo_goes_from_pixels_to_labelled_scores(tmp_path: Path) -> None:
    """Without key and network the baseline's captions are scored, and every task says by what."""
    run = run_lmms_eval(
        tmp_path / "out",
        *("--model", "caption_baseline", "--tasks", "vdc_score"),
        env=environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical"),
        fresh=True,
    )
    assert run.scores() == pytest.approx(_recomputed(run))
    assert len(run.scores()) == 12
    assert run.scores()["vdc_score vdc_acc"] > 30, "the baseline sees most of what is in the clips"
    for task in run.results:
        assert "judge:lexical (smoke test, not a score)" in run.signatures[task], task
    assert main(["check", str(tmp_path / "out")]) == 0


def test_real_questions_at_full_size(
    tmp_path: Path, shared_data: Path, judge: JudgeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every verdict in the samples, numbers equal, nothing sent twice; all 96,825 on request.

    ``make test-full`` takes all questions, ``make test`` those of the first videos.
    """
    full = bool(os.environ.get("FULL_SIZE"))
    size = () if full else ("--limit", "120")
    folder = tmp_path / "data" / "vdc" / "VDCScore_qa"
    folder.mkdir(parents=True)
    rng = random.Random(0)
    captions: dict[str, dict[str, str]] = {}
    for aspect in ASPECTS:
        packed = shared_data / "vdc_qa" / f"{aspect}.jsonl.gz"
        (folder / packed.name).symlink_to(packed)
        for entry in gzip.decompress(packed.read_bytes()).splitlines():
            for video, pairs in json.loads(entry).items():
                words = [pair["answer"] for pair in pairs if rng.random() < 0.6]
                captions.setdefault(video, {})[f"{aspect}_caption"] = ", ".join(words) or "Nothing."
    file = tmp_path / "captions.jsonl"
    rows = ({"video_id": video, **row} for video, row in captions.items())
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    env = _judged_by(
        judge,
        tmp_path / "cache",
        LMMS_CAPTIONS_DATA=str(tmp_path / "data"),
        LMMS_CAPTIONS_JUDGE_CONCURRENCY="256",
    )

    line = (*FROM_FILE, *size, "--model_args", f"path={file}")
    first = run_lmms_eval(tmp_path / "out", *line, env=env)
    n_questions = sum(
        len(sample["vdc_acc"]["judgements"])
        for aspect in ASPECTS
        for sample in first.samples(f"vdc_{aspect}")
    )
    assert n_questions == 96_825 if full else 10_000 < n_questions < 12_000
    assert first.scores() == pytest.approx(_recomputed(first))
    assert len(first.scores()) == 12
    n_sent = judge.counts.n_requests
    # 16 questions of each aspect are also asked with two captions of our own.
    n_anchors = 2 * 16 * len(ASPECTS)
    assert len(judge.counts.answered) == n_sent <= 2 * (n_questions + n_anchors)
    usage = first.document["usage"]["by_source"]["judge"]
    assert usage["output_tokens"] > 0
    assert judge.counts.most_in_flight <= 256

    again = run_lmms_eval(tmp_path / "again", *line, env=env)
    assert judge.counts.n_requests == n_sent, "a finished run started again sends nothing"
    assert again.scores() == first.scores()
    assert main(["check", str(tmp_path / "again")]) == 1
    told = capsys.readouterr().out
    assert f"unscored:0/{19112 if full else ''}" in told
    problems = [line for line in told.splitlines() if line.strip().startswith("problem ")]
    assert problems, told
    # It says yes and no by chance, and nothing else is wrong.
    doubts = ("answers hardly depend on the caption", "there is doubt about the judge (blind)")
    assert all(any(doubt in problem for doubt in doubts) for problem in problems), told
    assert not _secrets(tmp_path / "out", tmp_path / "again", tmp_path / "cache")
    assert KEY not in first.log + again.log


def test_processes_and_kinds_of_models_make_no_difference(
    tmp_path: Path, captions: str, judge: JudgeServer
) -> None:
    """The same numbers from one and two processes and either kind, beside somebody else's task."""
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    rows = [{"video": f"sample_{i:02}", "gold": "something else"} for i in range(1, 7)]
    (tasks / "rows.json").write_text("\n".join(map(json.dumps, rows)))
    (tasks / "other.yaml").write_text(
        "task: somebody_elses\ndataset_path: json\ntest_split: test\n"
        "dataset_kwargs: {data_files: {test: rows.json}}\noutput_type: generate_until\n"
        "doc_to_text: Describe.\ndoc_to_target: '{{gold}}'\n"
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    common = ("--model_args", captions, "--include_path", str(tasks))
    line = ("--model", "caption_file", "--tasks", "vdc_score,somebody_elses", *common)
    runs = {
        name: run_lmms_eval(
            tmp_path / name,
            *line,
            *extra,
            env=_judged_by(judge, tmp_path / f"cache-{name}"),
            n_processes=n_processes,
        )
        for name, extra, n_processes in (
            ("chat", (), 1),
            ("simple", ("--force_simple",), 1),
            ("two", (), 2),
        )
    }
    scores = {name: run.scores() for name, run in runs.items()}
    assert len(scores["chat"]) == 12
    assert scores["chat"] == pytest.approx(_recomputed(runs["chat"]))
    assert scores["simple"] == scores["chat"]
    assert scores["two"] == pytest.approx(scores["chat"], rel=1e-12)
    for name, run in runs.items():
        assert run.results["somebody_elses"]["exact_match,none"] == 0.0, name
        assert run.results["vdc_camera"]["unscored,none"] == 0, name
        assert len(run.samples("vdc_camera")) == 12, name
        verdicts = [
            j["verdict"] for s in run.samples("vdc_camera") for j in s["vdc_acc"]["judgements"]
        ]
        assert set(verdicts) == {"yes", "no"}, name
    replies = {name: _n_replies(run) for name, run in runs.items()}
    assert replies["two"] == replies["simple"] == replies["chat"] > 0, "of both processes"


def _n_replies(run: Run) -> int:
    """Replies that a run read, of all its processes: asked for, stored or shared."""
    [path] = run.output.rglob("*_judging.json")
    totals = json.loads(path.read_text(encoding="utf-8"))["judging"]
    return int(totals["calls"] + sum(totals["from_store"].values()) + totals["shared"])


def test_a_run_that_was_killed_goes_on_where_it_stopped(tmp_path: Path, captions: str) -> None:
    """SIGKILL while judging: the second start sends what was missing, the third one nothing."""
    with JudgeServer(Behaviour(latency_s=0.2)) as server:
        env = _judged_by(server, tmp_path / "cache", LMMS_CAPTIONS_JUDGE_CONCURRENCY="8")
        line = [*FROM_FILE, "--model_args", captions, "--output_path", str(tmp_path / "dead")]
        victim = subprocess.Popen(
            command(line), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline_s = time.monotonic() + 120
        while server.counts.n_answered < 150 and time.monotonic() < deadline_s:
            time.sleep(0.02)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        n_before = server.counts.n_answered
        assert n_before >= 150
        server.behaviour.latency_s = 0.0
        second = run_lmms_eval(tmp_path / "2", *FROM_FILE, "--model_args", captions, env=env)
        n_after = server.counts.n_requests
        third = run_lmms_eval(tmp_path / "3", *FROM_FILE, "--model_args", captions, env=env)
        assert server.counts.n_repeated <= 8, "no more than was in flight"
        assert server.counts.n_requests == n_after > n_before
    assert second.scores() == third.scores() == pytest.approx(_recomputed(second))


def test_captions_can_be_written_now_and_judged_later(tmp_path: Path, judge: JudgeServer) -> None:
    """``--predict_only`` asks no judge; the folder of its logs serves a later run as captions."""
    env = _judged_by(judge, tmp_path / "cache")
    part = ("--limit", "5", "--offset", "3")
    model = ("--model", "caption_baseline", "--tasks", "vdc_score")
    written = run_lmms_eval(tmp_path / "written", *model, *part, "--predict_only", env=env)
    assert judge.counts.n_requests == 0
    captions = (*FROM_FILE, *part, "--model_args", f"path={written.output}")
    judged = run_lmms_eval(tmp_path / "judged", *captions, env=env)
    assert judged.scores() == pytest.approx(_recomputed(judged))
    assert len(judged.scores()) == 12
    for aspect in ASPECTS:
        before, after = (run.samples(f"vdc_{aspect}") for run in (written, judged))
        assert [s["target"] for s in after] == [f"sample_{i:02}" for i in range(4, 9)]
        assert [s["filtered_resps"] for s in after] == [s["filtered_resps"] for s in before]
        signature = judged.document["lmms_eval_captions"]["tasks"][f"vdc_{aspect}"]["signature"]
        assert "|captions:aspect|questions:" in signature
        assert "|limit:5|offset:3|" in signature


def test_a_missing_caption_or_file_is_one_clear_error(tmp_path: Path, captions: str) -> None:
    """Before anything is judged, the log names what is missing and where it was looked for."""
    few = tmp_path / "few.jsonl"
    few.write_text(json.dumps({"video_id": "sample_01", "caption": "x"}) + "\n")
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical")
    run = run_lmms_eval(tmp_path / "few", *FROM_FILE, "--model_args", f"path={few}", env=env)
    assert "55 of 60 captions are missing" in run.log
    assert "sample_02 (vdc_" in run.log
    nowhere = {**env, "LMMS_CAPTIONS_DATA": str(tmp_path / "few")}
    os.makedirs(tmp_path / "few", exist_ok=True)  # noqa: PTH103
    started_s = time.monotonic()
    lost = run_lmms_eval(tmp_path / "lost", *FROM_FILE, "--model_args", captions, env=nowhere)
    assert "no file" in lost.log
    assert "VDCScore_qa" in lost.log
    assert "hf download wchai/Video-Detailed-Caption" in lost.log
    assert "RetryError" not in lost.log
    assert time.monotonic() - started_s < 90
