"""Of every benchmark: a judge that was verified has its fingerprint in the signature, no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from five_tasks import TASKS, Task
from honest_judge import EACH, VERIFIED, clips, start_honest_judge
from impostors import SALT, honest, quantised_twin
from judge_server import JudgeServer, Say, last_text
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.verdicts.likeness import differences_of
from lmms_eval_captions.lmms_eval_tasks.verified_judges import FRESH_DAYS, read_kept
from reading_judge import ReadingJudge, step_of
from stored_replies_edited import edit_store

OTHERS: Final = pytest.mark.parametrize(
    "task", [task for task in TASKS if task not in VERIFIED], ids=lambda task: task.name
)

STEPS: Final = [
    pytest.param(task, prompt, id=f"{task.name}-{prompt}")
    for task in VERIFIED
    for prompt in task.hooks.benchmark.tasks[task.name].judge_prompts
]
"""Each benchmark, with each of its judge's prompts."""
WARNING: Final = "stored replies were used that are not known to be of this endpoint"

Judged = Callable[[Task], Signature]


@pytest.fixture
def server(serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path) -> JudgeServer:
    """The honest judge, as the one of the settings, and data of every benchmark."""
    return start_honest_judge(serve, bench, clips(2), tmp_path / "data")


@pytest.fixture
def judged(server: JudgeServer, tmp_path: Path) -> Judged:
    """Judges two captions of a task, in a process of its own; the signature."""

    def run(task: Task) -> Signature:
        JUDGE_RUN.close()
        THIS_RUN.clear()
        samples = task.samples(["A man walks.", "A dog runs."], tmp_path / "results")
        return Signature.parse(samples[0]["signature of the task"])

    assert server.url
    return run


def _verify(task: Task, *arguments: str) -> int:
    return main(["judge", "verify", "--tasks", task.name, *arguments])


def _kept(cache: Path) -> Path:
    (path,) = (cache / "judge_verify").glob("*.json")
    return path


@EACH
def test_a_verified_judge_has_its_fingerprint_in_the_signature(
    task: Task, judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    """All else is as it was before it was verified, byte for byte."""
    before = judged(task)
    assert "judge-fp" not in before.fields
    assert _verify(task) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    after = judged(task)
    assert after.fields["judge-fp"] == last.rpartition("judge-fp:")[2]
    without = {name: value for name, value in after.fields.items() if name != "judge-fp"}
    assert str(Signature(after.task, without)) == str(before)
    assert THIS_RUN.warnings == []


@EACH
def test_a_judge_that_failed_has_none_and_a_warning_stands_beside_the_scores(
    task: Task, judged: Judged, server: JudgeServer, tmp_path: Path
) -> None:
    """It says since when, by what, and what to do."""
    assert _verify(task) == 0
    server.script = quantised_twin(1, differs=0.3)
    assert _verify(task, "--anew") == 1
    assert "judge-fp" not in judged(task).fields
    (warning,) = [each for each in THIS_RUN.warnings if "verification" in each]
    assert "the judge judge failed its verification today" in warning
    assert "anchors get another verdict" in warning
    assert "judge verify" in warning


@EACH
def test_an_old_verification_says_nothing(task: Task, judged: Judged, tmp_path: Path) -> None:
    """After 30 days there is no field, and a warning."""
    assert _verify(task) == 0
    path = _kept(tmp_path / "cache")
    document = json.loads(path.read_text())
    document["benchmarks"][task.hooks.benchmark.name]["verified_s"] -= (FRESH_DAYS + 1) * 86_400
    path.write_text(json.dumps(document))
    assert "judge-fp" not in judged(task).fields
    (warning,) = THIS_RUN.warnings
    assert "was verified 31 days ago" in warning


@EACH
def test_another_model_or_address_or_prompt_has_no_fingerprint(
    task: Task, judged: Judged, serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was verified is one model at one address with one set of prompts."""
    assert _verify(task) == 0
    assert "judge-fp" in judged(task).fields
    bench.setenv("LMMS_CAPTIONS_JUDGE", "another")
    assert "judge-fp" not in judged(task).fields
    bench.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    second = serve()
    second.script = ReadingJudge(salt=SALT)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", second.url)
    assert "judge-fp" not in judged(task).fields
    assert THIS_RUN.warnings == []


@EACH
def test_prompts_in_another_order_have_no_fingerprint(
    task: Task, judged: Judged, bench: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the order changes what is sent: verdicts move with it; and its record is refused."""
    assert _verify(task) == 0
    bench.setenv("LMMS_CAPTIONS_PROMPT_ORDER", "constant-first")
    fields = judged(task).fields
    assert ("judge-fp" in fields) == ("prompt-order" not in fields)
    capsys.readouterr()
    code = _verify(task)
    assert code == (2 if "prompt-order" in fields else 0)
    if code:
        assert "LMMS_CAPTIONS_PROMPT_ORDER" in capsys.readouterr().err
        assert _verify(task, "--first") == 0
        assert "judge-fp" in judged(task).fields


@EACH
def test_what_is_kept_of_judges_is_read_once_for_all_captions(
    task: Task, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a file that is damaged is a warning, not the end of a run."""
    assert _verify(task) == 0
    reads: list[Path] = []

    def reading(path: Path) -> Any:
        reads.append(path)
        return read_kept(path)

    module = "lmms_eval_captions.lmms_eval_tasks.verified_judges.read_kept"
    monkeypatch.setattr(module, reading)
    judged(task)
    assert len(reads) == 1
    reads[0].write_text("{")
    assert "judge-fp" not in judged(task).fields
    assert any("delete it, and verify the judge again" in each for each in THIS_RUN.warnings)


@OTHERS
def test_benchmarks_without_anchors_have_none(task: Task, judged: Judged) -> None:
    """Those of own clips, whatever is kept of the judge."""
    assert _verify(VERIFIED[0]) == 0
    assert "judge-fp" not in judged(task).fields


@pytest.mark.parametrize(
    ("prints", "expected"),
    [
        (("01234567", "89abcdef"), ["judge-fp"]),
        (("01234567", "01234567"), []),
        (("01234567", None), []),
        ((None, None), []),
    ],
)
def test_different_fingerprints_are_different_judges(
    prints: tuple[str | None, ...], expected: list[str]
) -> None:
    """A run from before the verification may have the same one."""
    fields = {"judge": "j", "runs": "1"}
    signatures = [
        Signature("vdc_camera", {**fields, **({} if each is None else {"judge-fp": each})})
        for each in prints
    ]
    assert list(differences_of(signatures)) == expected


@EACH
def test_replies_of_another_endpoint_do_not_get_the_fingerprint_of_the_verified_one(
    task: Task, judged: Judged, serve: ServerFactory, bench: pytest.MonkeyPatch, server: JudgeServer
) -> None:
    """They are used, as any reply that was paid for, and a warning says what that means."""
    other = serve()
    other.script = ReadingJudge(salt=SALT + 1)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", other.url)
    judged(task)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    assert _verify(task) == 0
    n_before = server.counts.n_requests
    assert "judge-fp" not in judged(task).fields
    assert server.counts.n_requests == n_before
    (warning,) = THIS_RUN.warnings
    assert WARNING in warning
    bench.setenv("LMMS_CAPTIONS_STORE_BY", "endpoint")
    assert "judge-fp" in judged(task).fields
    assert server.counts.n_requests > n_before
    assert THIS_RUN.warnings == []


@pytest.mark.parametrize("endpoint", ["http://elsewhere/v1", None], ids=["another", "not-known"])
@pytest.mark.parametrize(("task", "prompt"), STEPS)
@pytest.mark.parametrize("n_edited", [1, 99], ids=["one", "all"])
def test_replies_of_one_step_that_are_not_known_to_be_of_the_endpoint_suffice(
    task: Task,
    prompt: str,
    endpoint: str | None,
    n_edited: int,
    judged: Judged,
    bench: pytest.MonkeyPatch,
    server: JudgeServer,
    tmp_path: Path,
) -> None:
    """Of another endpoint, or stored by a version that did not write it down: no fingerprint."""
    script, steps = honest(), list[str | None]()

    def noted(payload: dict[str, Any]) -> Say:
        steps.append(step_of(last_text(payload)))
        return script(payload)

    server.script = noted
    # So that replies are stored in the order in which they were asked for.
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    judged(task)
    JUDGE_RUN.close()
    places = [n for n, step in enumerate(steps) if step and prompt.startswith(step)][:n_edited]
    assert places

    def attribute(number: int, reply: dict[str, Any]) -> None:
        assert reply.pop("endpoint") == server.url
        if number not in places:
            reply["endpoint"] = server.url
        elif endpoint is not None:
            reply["endpoint"] = endpoint

    edit_store(tmp_path, attribute)
    assert _verify(task) == 0
    n_before = server.counts.n_requests
    assert "judge-fp" not in judged(task).fields
    assert server.counts.n_requests == n_before
    (warning,) = THIS_RUN.warnings
    assert WARNING in warning
    bench.setenv("LMMS_CAPTIONS_STORE_BY", "endpoint")
    assert "judge-fp" in judged(task).fields
    assert server.counts.n_requests == n_before + len(places)
    assert THIS_RUN.warnings == []
