"""The command against scripted endpoints on loopback, from its arguments to its exit code."""

from __future__ import annotations

import _thread
import itertools
import json
import os
import random
import threading
import time
import zlib
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from conftest import ServerFactory
from impostors import IMPOSTORS, SALT, Script, honest, quantised_twin
from judge_server import JudgeServer, Refuse, Say, last_text
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.judge_verify.subjects import subjects_of
from reading_judge import ReadingJudge

BENCHMARKS: Final = ("vdc", "vidcapbench", "vcapsbench", "capquiz", "msvd_eval")
EACH: Final = pytest.mark.parametrize("benchmark", BENCHMARKS)
VERDICT_MARKS: Final = (
    "Predicted Answer", "Answer@@@Analysis", "F. Cannot be determined", "{{accuracy_score}}",
)  # fmt: skip
"""Words of the prompts whose replies are verdicts."""
CALLS: Final = {"vdc": 2, "vidcapbench": 2, "vcapsbench": 3, "capquiz": 1, "msvd_eval": 1}
N_PROBES: Final = 23
"""Requests beside those of anchors, two for the heads of completions among them."""
BY_PROBES: Final = {
    "another model": {"tokenizer"},
    "truncating proxy": {"truncation", "output cut"},
    "temperature 1": {"temperature"},
    "stale cache": {"cached replies"},
}
"""Impostor to the findings of which one at least must name it."""


@EACH
def test_the_identical_judge_passes_early(
    benchmark: str, verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """After 87 anchors, with the record's fingerprint, at another address."""
    told = verify(
        serve(), honest(7), "--tasks", benchmark, "--against", str(trusted), "--format", "json"
    )
    assert told.code == 0
    part = told.document["benchmarks"][benchmark]
    assert part["against"] | {"agreement_ci_low": 0} == {
        "state": "passed", "items": 87, "different": 0, "missing": 0, "examples": [],
        "agreement_ci_low": 0, "agreement_ci_high": 1.0,
    }  # fmt: skip
    assert part["right"] == part["anchors"] == 87
    assert part["fingerprint"] == json.loads(trusted.read_text())["fingerprints"][benchmark]
    assert told.n_asked <= 87 * CALLS[benchmark] + N_PROBES
    assert set(told.states().values()) <= {"ok"}


@EACH
@pytest.mark.parametrize("impostor", IMPOSTORS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_impostor_is_caught_by_every_benchmark(
    benchmark: str, impostor: str, seed: int, verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """And it is said by what: verdicts alone tell a twin."""
    make = IMPOSTORS[impostor]
    if impostor == "quantised twin":
        # Of one benchmark's 200 anchors: 5% would be missed in 4 of 100 orders.
        make = partial(quantised_twin, differs=0.2)
    told = verify(
        serve(), make(seed), "--tasks", benchmark, "--against", str(trusted), "--format", "json"
    )
    assert told.code == 1
    assert told.document["verdict"] == "failed"
    differing = {name for name, state in told.states().items() if state == "differs"}
    if impostor == "quantised twin":
        assert not differing
        assert told.document["benchmarks"][benchmark]["against"]["state"] == "flagged"
    else:
        assert differing & BY_PROBES[impostor]


@EACH
def test_without_a_record_anchors_are_held_against_how_they_are_built(
    benchmark: str, verify: Any, serve: ServerFactory
) -> None:
    """All 200 are asked once, and the last line has the fingerprint."""
    told = verify(serve(), honest(), "--tasks", benchmark)
    assert told.code == 0
    assert told.last.startswith(f"PASSED: {benchmark} judge-fp:")
    assert "200       0  100.0% [98.2%, 100.0%]" in told.out
    assert 200 * CALLS[benchmark] * 0.9 <= told.n_asked <= 200 * CALLS[benchmark] + N_PROBES


@EACH
def test_a_judge_that_guesses_is_said_to_be_below_any_competent_one(
    benchmark: str, verify: Any, serve: ServerFactory
) -> None:
    """Without a record: other verdicts on four of ten anchors."""
    script = ReadingJudge(salt=3, differs=0.4)
    told = verify(serve(), script, "--tasks", benchmark)
    assert told.code == 1
    assert told.last.startswith(f"FAILED: {benchmark}: only ")
    assert "of the anchors are judged right" in told.last


@EACH
def test_a_bad_judge_is_the_one_of_its_record(
    benchmark: str, verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """Whether it is the same is another question than whether it is good; both are answered."""
    script = ReadingJudge(salt=3, differs=0.4)
    record = str(tmp_path / "record.json")
    assert verify(serve(), script, "--tasks", benchmark, "-o", record).code == 1
    told = verify(serve(), script, "--tasks", benchmark, "--against", record)
    assert told.code == 0
    assert "less than any judge that can be used (85%)" in " ".join(told.out.split())


@EACH
def test_fresh_samples_after_unreadable_replies_are_no_difference(
    benchmark: str, verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """They are drawn by chance: that one anchor in five needs some is what is compared."""

    def rambling(seed: int) -> Script:
        judge = ReadingJudge(salt=SALT, chance=random.Random(seed))

        def script(payload: dict[str, Any]) -> Say:
            prompt = str(payload["messages"])
            is_hard = zlib.crc32(prompt.encode()) % 5 == 0
            if is_hard and any(mark in prompt for mark in VERDICT_MARKS):
                if payload["temperature"] == 0:
                    return Say("Well, that is hard to say.")
                return judge({**payload, "temperature": 0})
            return judge(payload)

        return script

    record = str(tmp_path / "record.json")
    verify(serve(), rambling(1), "--tasks", benchmark, "-o", record)
    told = verify(
        serve(), rambling(2), "--tasks", benchmark, "--against", record, "--format", "json"
    )
    part = told.document["benchmarks"][benchmark]["against"]
    assert (part["state"], part["different"]) == ("passed", 0), part
    verdicts = json.loads(Path(record).read_text())["benchmarks"][benchmark]["verdicts"]
    assert 10 < list(verdicts.values()).count("unreadable") < 100


def test_a_weak_judge_is_not_taken_for_a_proxy_that_cuts(
    verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """It sees the first code of a long description alone, and counts no further than 40."""

    def weak(payload: dict[str, Any]) -> Say:
        said = judge(payload)
        if "locker" in str(payload) and len(str(payload)) > 2_000:
            return replace(said, text=said.text.partition(",")[0])
        return replace(said, text=said.text.partition(" 41")[0])

    judge = ReadingJudge(salt=9, differs=0.5)
    record = str(tmp_path / "record.json")
    for arguments in (("-o", record), ("--against", record)):
        told = verify(serve(), weak, "--tasks", "vdc", *arguments, "--format", "json")
        states = told.states()
        assert states["truncation"] == states["output cut"] == "note"
    strong = replace(judge, differs=0.0)
    judge = strong
    told = verify(serve(), weak, "--tasks", "vdc", "--format", "json")
    assert told.states()["truncation"] == told.states()["output cut"] == "differs"


@EACH
def test_a_verification_that_is_decided_is_not_gone_on_with(
    benchmark: str, verify: Any, serve: ServerFactory
) -> None:
    """The endpoint is asked again, to the same fingerprint; another judge fails on the same day."""
    server = serve()
    first = verify(server, honest(), "--tasks", benchmark)
    again = verify(server, None, "--tasks", benchmark)
    assert again.code == 0
    assert again.last == first.last
    assert again.n_asked > N_PROBES + 80
    assert "goes on with the verification" not in again.err
    swapped = verify(server, quantised_twin(1, differs=0.3), "--tasks", benchmark)
    assert swapped.code == 1
    mended = verify(server, honest(), "--tasks", benchmark)
    assert mended.last == first.last


@EACH
def test_one_that_is_undecided_asks_nothing_twice_but_the_probes(
    benchmark: str, verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """Within a day, by the benchmark's replies that are there; --anew asks all of it."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
    arguments = ("--tasks", benchmark, "--format", "json")
    server = serve()
    first = verify(server, honest(), *arguments, "--max-cost", "$0.05")
    assert first.code == 3
    again = verify(server, None, *arguments)
    assert again.code == 0
    assert "goes on with the verification" in again.err
    assert again.document["from_store"] > 0
    assert first.n_asked + again.n_asked <= 200 * CALLS[benchmark] + 2 * N_PROBES
    third = verify(server, None, *arguments, "--max-cost", "$0.05")
    assert third.code == 3
    anew = verify(server, None, *arguments, "--anew")
    assert anew.document["from_store"] < 10
    assert anew.document["why"] == again.document["why"]


def test_replies_that_another_endpoint_gave_serve_no_verification(
    verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """With one cache folder, a second endpoint is asked itself."""
    arguments = ("--tasks", "capquiz", "--against", str(trusted))
    assert verify(serve(), honest(), *arguments).code == 0
    second = verify(serve(), quantised_twin(1, differs=0.3), *arguments)
    assert second.code == 1


def test_what_ctrl_c_leaves_is_gone_on_with(verify: Any, serve: ServerFactory) -> None:
    """Replies that came are kept: exit code 130, then the rest, in all no more than once each."""
    server = serve(latency_s=0.2)
    presser = threading.Thread(target=_press_ctrl_c, args=(server, 300))
    presser.start()
    first = verify(server, honest(), "--tasks", "vdc,capquiz")
    presser.join()
    assert first.code == 130
    assert "every reply that came is kept" in first.err
    server.behaviour.latency_s = 0.0
    again = verify(server, None, "--tasks", "vdc,capquiz")
    assert again.code == 0
    in_flight = 64
    assert first.n_asked >= 300
    assert first.n_asked + again.n_asked <= 600 + 2 * N_PROBES + in_flight


def _press_ctrl_c(server: JudgeServer, n_asked: int) -> None:
    """Interrupt the main thread once so many requests were sent."""
    while server.counts.n_requests < n_asked:
        time.sleep(0.01)
    _thread.interrupt_main()


def test_faults_of_an_endpoint_are_no_difference(
    verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """A tenth of 429, 500, dropped and garbled answers is asked again."""
    server = serve(faults=("429", "500", "drop", "garbage"), fault_rate=0.1)
    told = verify(server, honest(), "--tasks", "vdc", "--against", str(trusted))
    assert told.code == 0


def test_a_record_is_not_written_where_anchors_have_no_reply(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A part of them would be taken for all."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
    path = tmp_path / "record.json"
    told = verify(serve(), honest(), "--tasks", "vdc", "--max-cost", "0.05", "-o", str(path))
    assert told.code == 3
    assert not path.exists()
    assert "no record is written" in told.err


def test_an_endpoint_that_lets_nobody_in_is_told_with_its_words(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """Exit code 2, what to check, and no key."""
    bench.setenv("OPENAI_API_KEY", "sk-wrong-and-secret")
    told = verify(serve(key="sk-right"), honest(), "--tasks", "vdc")
    assert told.code == 2
    assert "OPENAI_API_KEY" in told.err
    assert "sk-wrong" not in told.err + told.out


def test_an_endpoint_that_is_not_there_is_told(bench: pytest.MonkeyPatch, capsys: Any) -> None:
    """Exit code 2, the address, and what to look at."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:9/v1")
    assert main(["judge", "verify", "--tasks", "vdc"]) == 2
    err = capsys.readouterr().err
    assert "http://127.0.0.1:9/v1" in err
    assert "doctor" in err


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (["--tasks", "vdc_rouge"], {}, "has no anchors"),
        (["--tasks", "vdcc"], {}, "was vdc"),
        (["--against", "nowhere.json"], {}, "expected a record"),
        (["--recorded", "nowhere"], {}, "there is no such folder"),
        (["-o", "/dev/null/record.json"], {}, "-o /dev/null/record.json: cannot be written"),
        (["--max-cost", "1"], {}, "the price of 'judge' is not known"),
        ([], {"LMMS_CAPTIONS_JUDGE": "lexical"}, "nothing to verify"),
        ([], {"LMMS_CAPTIONS_JUDGE": ""}, "LMMS_CAPTIONS_JUDGE is not set"),
        (
            ["--tasks", "vdc,capquiz"],
            {"LMMS_CAPTIONS_JUDGE": ""},
            "expected benchmarks of one judge",
        ),
    ],
)
def test_what_cannot_be_verified_is_said_and_nothing_asked(
    arguments: list[str],
    environment: dict[str, str],
    words: str,
    verify: Any,
    serve: ServerFactory,
    bench: pytest.MonkeyPatch,
) -> None:
    """Exit code 2."""
    for name, value in environment.items():
        bench.setenv(name, value)
    server = serve()
    told = verify(server, honest(), *arguments)
    assert told.code == 2
    assert words in told.err
    assert server.counts.n_requests == 0


def test_another_name_in_the_replies_fails_at_once(verify: Any, serve: ServerFactory) -> None:
    """Two requests, both names, and what to do."""

    def other(payload: dict[str, Any]) -> Say:
        return replace(ReadingJudge()(payload), model="another-model")

    told = verify(serve(), other, "--tasks", "vdc")
    assert (told.code, told.n_asked) == (1, 2)
    assert told.last == "FAILED: differs on model"
    assert "'judge' was asked for, 'another-model' answered" in told.out
    assert "LMMS_CAPTIONS_JUDGE_ALIAS" in told.out


def test_another_version_than_the_record_s_is_told(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are the model that was asked for, but not the same."""

    def version(name: str) -> Script:
        judge = ReadingJudge(salt=SALT)
        return lambda payload: replace(judge(payload), model=name)

    bench.setenv("LMMS_CAPTIONS_JUDGE", "judge")
    record = str(tmp_path / "record.json")
    assert (
        verify(serve(), version("judge-2024-08-06"), "--tasks", "capquiz", "-o", record).code == 0
    )
    told = verify(serve(), version("judge-2024-11-20"), "--tasks", "capquiz", "--against", record)
    assert told.code == 1
    assert told.last == "FAILED: differs on model"


@pytest.mark.parametrize(
    ("now", "code"), [("JUDGE-2024-08-06", 0), ("judge-2024-08-06 judge-2024-11-20", 0)]
)
def test_a_name_in_capitals_is_the_same_and_a_further_one_a_note(
    now: str,
    code: int,
    verify: Any,
    serve: ServerFactory,
    bench: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Half of the replies by another version is worth knowing."""

    def named(names: str) -> Script:
        judge, turn = ReadingJudge(salt=SALT), itertools.cycle(names.split())
        return lambda payload: replace(judge(payload), model=next(turn))

    record = str(tmp_path / "record.json")
    verify(serve(), named("judge-2024-08-06"), "--tasks", "capquiz", "-o", record)
    told = verify(
        serve(), named(now), "--tasks", "capquiz", "--against", record, "--format", "json"
    )
    assert told.code == code
    assert told.states()["model"] == ("note" if " " in now else "ok")
    assert ("judge-2024-11-20 answers, too" in told.out) == (" " in now)


def test_a_failure_after_an_interruption_says_that_old_replies_count(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """And what asks all of it; the last line is a sentence without findings, too."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
    server = serve()
    script = ReadingJudge(salt=3, differs=0.4)
    assert verify(server, script, "--tasks", "vdc", "--max-cost", "0.05").code == 3
    told = verify(server, script, "--tasks", "vdc")
    assert told.code == 1
    assert "--anew" in told.out
    assert told.last.startswith("FAILED: vdc: only ")
    assert "--anew" not in verify(server, script, "--tasks", "vdc").out


def test_a_limit_of_cost_leaves_it_undecided(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """It is never passed; exit code 3, and the price is named before."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
    told = verify(serve(), honest(), "--tasks", "vdc", "--max-cost", "$0.05", "--format", "json")
    assert told.code == 3
    assert told.document["why"].startswith("UNDECIDED: vdc: ")
    assert 0 < told.document["usd"] <= 0.05
    assert "$" in told.err


def test_requests_and_dollars_are_bounded_before_anything_is_asked(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """The number that is named is never passed, by all benchmarks and a first record."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
    told = verify(serve(), honest(), "--format", "json")
    bound = int(told.err.partition("at most ")[2].partition(" requests")[0].replace(",", ""))
    dollars = float(told.err.partition(": $")[2].partition(" by prices")[0])
    assert told.n_asked == told.document["calls"] <= bound
    assert bound <= 200 * sum(CALLS.values()) + N_PROBES
    assert 0 < told.document["usd"] <= 2 * dollars


def test_no_key_is_in_any_file(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Record, what is kept, session and stored replies; nor in what is printed."""
    secret = "sk-very-secret-key-of-mine"  # noqa: S105 - made up
    bench.setenv("OPENAI_API_KEY", secret)
    record = tmp_path / "record.json"
    told = verify(serve(key=secret), honest(), "--tasks", "vdc", "-o", str(record))
    assert told.code == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert record in files
    assert any("judge_verify" in str(path) for path in files)
    for path in files:
        assert secret.encode() not in path.read_bytes(), path
    assert secret not in told.out + told.err


def test_drift_of_the_same_endpoint_is_noticed(verify: Any, serve: ServerFactory) -> None:
    """The second time, without any record given; --first takes a new one."""
    server = serve()
    first = verify(server, honest(), "--tasks", "vdc")
    drifted = verify(server, quantised_twin(3, differs=0.3), "--tasks", "vdc", "--anew")
    assert (first.code, drifted.code) == (0, 1)
    assert "anchors get another verdict" in drifted.last
    new = verify(server, None, "--tasks", "vdc", "--first")
    assert new.code == 1  # three of ten anchors are judged otherwise than built
    back = verify(server, honest(), "--tasks", "vdc", "--anew")
    assert back.last == first.last


def test_replies_without_ids_usage_seed_or_logprobs_pass_all_the_same(
    verify: Any, serve: ServerFactory
) -> None:
    """A plain server gives few of them: they are notes, not failures."""

    def plain(payload: dict[str, Any]) -> Say:
        said = judge(payload)
        return Say(said.text, extra={"usage": {}})

    judge = ReadingJudge(salt=SALT, honours_seed=False)
    told = verify(serve(), plain, "--tasks", "vdc,msvd_eval", "--format", "json")
    assert told.code == 0
    states = told.states()
    assert states["logprobs"] == states["seed"] == "note"


def test_a_model_that_takes_no_temperature_and_seed_is_verified(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """What it refuses is left out, and what cannot be said is not said."""
    server = serve(refuses_parameters=True, refuses_seed=True)
    told = verify(server, honest(), "--tasks", "capquiz", "--format", "json")
    assert told.code == 0
    assert told.states()["temperature"] == told.states()["seed"] == "note"


def test_logprobs_that_are_gone_fail_msvd_eval_alone(
    verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """For the others they are a note."""
    without = ReadingJudge(salt=SALT, has_logprobs=False)
    for benchmark, code in (("msvd_eval", 1), ("vdc", 0)):
        told = verify(
            serve(), without, "--tasks", benchmark, "--against", str(trusted), "--format", "json"
        )
        assert told.code == code
        assert told.states()["logprobs"] == ("differs" if code else "note")


def test_the_row_of_the_benchmark_says_who_judged_the_published_numbers(
    verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """VDC's has both judges; those of other benchmarks are not shown."""
    told = verify(serve(), honest(), "--tasks", "vdc_camera", "--against", str(trusted))
    assert "gpt-4o-2024-08-06" in told.out
    assert "Llama-3.1-8B-Instruct" in told.out
    assert "Gemini" not in told.out


def test_a_record_of_other_prompts_is_refused(
    verify: Any, serve: ServerFactory, trusted: Path, tmp_path: Path
) -> None:
    """With what to do, and nothing is asked."""
    document = json.loads(trusted.read_text())
    document["benchmarks"]["vdc"]["prompts"] = "01234567"
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    told = verify(serve(), honest(), "--tasks", "vdc", "--against", str(changed))
    assert (told.code, told.n_asked) == (2, 0)
    assert "prompts 01234567" in told.err
    assert "LMMS_CAPTIONS_PROMPTS" in told.err


def test_a_record_without_the_benchmark_is_refused(
    verify: Any, serve: ServerFactory, trusted: Path, tmp_path: Path
) -> None:
    """Which ones the file has, and nothing is asked: else it would not be compared at all."""
    document = json.loads(trusted.read_text())
    del document["benchmarks"]["capquiz"], document["benchmarks"]["vdc"]
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(document))
    for arguments in (("--tasks", "vidcapbench,capquiz"), ()):
        told = verify(serve(), honest(), *arguments, "--against", str(changed))
        assert (told.code, told.n_asked) == (2, 0)
        assert "capquiz, the file has vidcapbench, vcapsbench, msvd_eval" in told.err


@EACH
def test_a_first_verification_with_an_anchor_that_is_refused_is_undecided(
    benchmark: str, verify: Any, serve: ServerFactory, trusted: Path
) -> None:
    """No fingerprint stands for a part of the anchors; beside a record one may be missing."""
    (subject,) = subjects_of(benchmark, read_judge_settings())
    caption = subject.verification.anchor(subject.facts[0]).caption
    judge = honest()

    def one_refused(payload: dict[str, Any]) -> Say | Refuse:
        is_it = caption in last_text(payload)
        return Refuse(400, "flagged by the content policy") if is_it else judge(payload)

    server = serve()
    told = verify(server, one_refused, "--tasks", benchmark, "--format", "json")
    assert told.code == 3
    part = told.document["benchmarks"][benchmark]
    assert part["missing"] > 0
    assert part["fingerprint"] == ""
    assert f"{part['missing']} of 200 anchors have no reply" in told.document["why"]
    again = verify(server, honest(), "--tasks", benchmark, "--format", "json")
    assert again.code == 0
    fingerprint = json.loads(trusted.read_text())["fingerprints"][benchmark]
    assert again.document["benchmarks"][benchmark]["fingerprint"] == fingerprint


def test_the_record_is_whole_where_it_is_written(
    verify: Any, serve: ServerFactory, trusted: Path, tmp_path: Path
) -> None:
    """-o asks all anchors, also beside another record, and hands its fingerprint on."""
    copy = tmp_path / "copy.json"
    told = verify(serve(), honest(), "--tasks", "vdc", "--against", str(trusted), "-o", str(copy))
    assert told.code == 0
    first, second = (json.loads(path.read_text()) for path in (trusted, copy))
    assert len(second["benchmarks"]["vdc"]["verdicts"]) == 200
    assert second["benchmarks"]["vdc"]["verdicts"] == first["benchmarks"]["vdc"]["verdicts"]
    assert second["fingerprints"]["vdc"] == first["fingerprints"]["vdc"]
    assert os.environ["LMMS_CAPTIONS_JUDGE_URL"].partition("//")[2] in second["endpoints"][0]


def test_heads_of_completions_are_within_the_limit_of_cost(
    verify: Any, serve: ServerFactory, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where they alone may pass it nothing is sent; else they are in what was billed."""
    prices = tmp_path / "prices.yaml"
    bench.setenv("LMMS_CAPTIONS_PRICES", str(prices))
    prices.write_text("models: {judge: {input: 1000000, output: 1000000}}")
    told = verify(serve(), honest(), "--tasks", "vdc", "--max-cost", "0.01")
    assert (told.code, told.n_asked) == (2, 0)
    assert "nothing was sent" in told.err

    def other(payload: dict[str, Any]) -> Say:
        return replace(ReadingJudge()(payload), model="another-model")

    told = verify(serve(), other, "--tasks", "vdc", "--format", "json")
    assert (told.code, told.document["calls"], told.n_asked) == (1, 2, 2)
    assert told.document["usd"] > 2


def test_the_report_is_printed_also_where_the_record_cannot_be_written(
    verify: Any, serve: ServerFactory, tmp_path: Path
) -> None:
    """What was asked was paid for."""
    path = tmp_path / "below" / "record.json"
    judge = honest()

    def in_the_way(payload: dict[str, Any]) -> Say:
        path.mkdir(parents=True, exist_ok=True)
        return judge(payload)

    told = verify(serve(), in_the_way, "--tasks", "vdc", "-o", str(path))
    assert told.code == 2
    assert told.last.startswith("PASSED: vdc judge-fp:")
    assert "cannot be written" in told.err
