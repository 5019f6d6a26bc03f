"""``lmms-eval-captions doctor`` says what a run would use."""

from __future__ import annotations

import json
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from lmms_eval_captions.lmms_eval_tasks.verified_judges import (
    VerifiedBenchmark,
    VerifyState,
    kept_path,
    write_kept,
)

from conftest import ServerFactory
from judge_server import JudgeServer, Say
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.endpoint.roles import Api, Role
from lmms_eval_captions.judges.errors import JudgeUnavailableError
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.judges.variables import variables_of
from lmms_eval_captions.lmms_eval_tasks import dependencies
from lmms_eval_captions.lmms_eval_tasks.commands import doctor_judges
from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from lmms_eval_captions.lmms_eval_tasks.commands.doctor import examine
from lmms_eval_captions.lmms_eval_tasks.commands.doctor_judges import Finding
from lmms_eval_captions.lmms_eval_tasks.commands.settings_in_force import settings_in_force
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks


def _settings(tmp_path: Path, **variables: str) -> Settings:
    return read_settings({"LMMS_CAPTIONS_CACHE": str(tmp_path / "cache"), **variables})


def _about(topic: str, settings: Settings) -> Finding:
    return next(finding for finding in examine(settings) if finding.topic == topic)


def test_packages_are_compared_with_the_tested_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version is shown; one that is known to break a run is a problem."""
    tested = dict(dependencies.pinned_versions())
    other = {"filelock": "4.3.1", "aiohttp": "3.99"}
    monkeypatch.setattr(dependencies, "version", lambda name: other.get(name) or version(name))
    dependencies.direct_dependencies.cache_clear()
    found = [each for each in examine(_settings(tmp_path)) if each.topic == "software"]
    dependencies.direct_dependencies.cache_clear()
    texts = {each.text: each.ok for each in found}
    assert texts[f"aiohttp 3.99 is installed, {tested['aiohttp']} is tested"]
    assert [text for text, ok in texts.items() if not ok] == [
        f"filelock 4.3.1 is installed, {tested['filelock']} is known to work. "
        "Run: pip install 'filelock<4'"
    ]


def test_a_judge_that_answers_is_shown_with_its_words(tmp_path: Path, serve: ServerFactory) -> None:
    """The model, where it is, whether a key is set, and what it answered."""
    server = serve(key="sk-1")
    server.reply = lambda _: "ready"
    url = {"LMMS_CAPTIONS_JUDGE_URL": server.url, "LMMS_CAPTIONS_JUDGE": "mine"}
    found = _about("judge", _settings(tmp_path, OPENAI_API_KEY="sk-1", **url))
    assert found.ok
    assert f"mine at {server.url}, key set, answers: 'ready'" in found.text
    found = _about("judge", _settings(tmp_path, OPENAI_API_KEY="sk-2", **url))
    assert not found.ok
    assert "401" in found.text
    assert "sk-2" not in found.text


def _lists(server: JudgeServer, *names: object, status: int = 200) -> None:
    """Have a server list its models."""
    server.models = json.dumps({"object": "list", "data": [*names]}), status


def test_the_models_of_a_server_are_listed(tmp_path: Path, serve: ServerFactory) -> None:
    """The judge is among them by any of its names, or it is not, which is a problem here."""
    server = serve(key="sk-secret-0123")
    server.keep_bodies = True
    _lists(
        server,
        {"id": "org/Mine", "aliases": None},
        {"id": "x.gguf", "aliases": ["tiny"]},
        {"id": "sk-secret-0123"},
    )
    key = {"OPENAI_API_KEY": "sk-secret-0123", "LMMS_CAPTIONS_JUDGE_URL": server.url}
    for judge in ("mine", "Mine-0613", "tiny"):
        found = _about("models", _settings(tmp_path, LMMS_CAPTIONS_JUDGE=judge, **key))
        assert found.ok
        assert found.text == (
            f"{server.url} lists 'org/Mine', 'x.gguf', 'tiny', '[key]'; {judge} is among them"
        )
    settings = _settings(tmp_path, LMMS_CAPTIONS_JUDGE="other", **key)
    found = _about("models", settings)
    assert not found.ok
    assert "; other is not among them: set LMMS_CAPTIONS_JUDGE to the one that" in found.text
    assert server.bodies[-1]["max_tokens"] == 32, "a small model writes on and on"
    aliased = _settings(
        tmp_path, LMMS_CAPTIONS_JUDGE="other", LMMS_CAPTIONS_JUDGE_ALIAS="tiny", **key
    )
    assert _about("models", aliased).ok


def test_no_judge_is_assumed_on_this_machine(tmp_path: Path, serve: ServerFactory) -> None:
    """The setting is named beside what the server lists, and the judge is not asked."""
    server = serve()
    _lists(server, {"id": "tiny.gguf"})
    settings = _settings(tmp_path, LMMS_CAPTIONS_JUDGE_URL=server.url)
    found = _about("judge", settings)
    assert not found.ok
    assert "LMMS_CAPTIONS_JUDGE is not set" in found.text
    assert _about("models", settings).text == f"{server.url} lists 'tiny.gguf'"
    assert server.counts.n_requests == 0


def test_a_judge_that_answers_as_another_is_a_problem(tmp_path: Path, serve: ServerFactory) -> None:
    """Unless an alias says that it is right; a version of it is shown."""
    server = serve()
    server.script = lambda _: Say("ready", model="tiny.gguf")
    judge = {"LMMS_CAPTIONS_JUDGE_URL": server.url, "LMMS_CAPTIONS_JUDGE": "mine"}
    found = _about("judge", _settings(tmp_path, **judge))
    assert not found.ok
    assert "answered as 'tiny.gguf' where 'mine' was asked for" in found.text
    assert _about("judge", _settings(tmp_path, LMMS_CAPTIONS_JUDGE_ALIAS="tiny.gguf", **judge)).ok
    server.script = lambda _: Say("ready", model="mine-2024-08-06")
    found = _about("judge", _settings(tmp_path, **judge))
    assert found.ok
    assert found.text.endswith("answers as mine-2024-08-06: 'ready'")


@pytest.mark.parametrize(
    "listed",
    ["", "no JSON", "[]", '{"data": 5}', '{"data": [{"id": "a", "aliases": 5}]}', '{"data": ["a"]}',
     "[" * 100_000, f'{{"data": [{{"id": "{"x" * 2**24}"}}]}}'],
    ids=lambda listed: listed[:20],
)  # fmt: skip
def test_a_list_that_is_none_is_no_problem(
    tmp_path: Path, serve: ServerFactory, listed: str
) -> None:
    """Not every endpoint lists its models, and none is read without end."""
    server = serve()
    server.models = listed, 200
    settings = _settings(tmp_path, LMMS_CAPTIONS_JUDGE_URL=server.url, LMMS_CAPTIONS_JUDGE="mine")
    found = _about("models", settings)
    assert found.ok
    assert "does not list its models" in found.text
    assert len(found.text) < 500
    assert _about("judge", settings).ok


def test_a_long_list_is_cut_and_odd_names_are_written_out(
    tmp_path: Path, serve: ServerFactory
) -> None:
    """A server cannot fill the terminal, nor write into it."""
    server = serve()
    _lists(
        server,
        {"id": "\x1b[2J\n"},
        {"id": 5},
        {"id": ""},
        *({"id": f"{n}{'x' * 999}"} for n in range(99)),
    )
    found = _about(
        "models",
        _settings(tmp_path, LMMS_CAPTIONS_JUDGE_URL=server.url, LMMS_CAPTIONS_JUDGE="mine"),
    )
    assert r"lists '\x1b[2J\n', '0xxx" in found.text
    assert " and 80 more; mine is not among them" in found.text
    assert len(found.text) < 5000
    assert found.text.isprintable()


def test_a_judge_without_a_key_is_a_problem(tmp_path: Path) -> None:
    """Nothing is sent to a remote endpoint without a key."""
    found = _about("judge", _settings(tmp_path))
    assert not found.ok
    assert "OPENAI_API_KEY is not set" in found.text


def test_without_a_named_judge_every_benchmark_s_own_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, with the benchmarks that it judges; one that does not answer is the problem."""
    own: dict[str, list[str]] = {}
    for benchmark in {b.name: b for b in all_benchmarks().values()}.values():
        own.setdefault(str(benchmark.judge_defaults["model"]), []).append(benchmark.name)
    silent = next(iter(own))

    async def list_models(_url: str, _key: str | None, *, api: Api) -> list[str]:
        return [*own, "another"]

    async def say_hello(_endpoint: Endpoint, _url: str, model: str, _role: Role) -> str:
        if model == silent:
            raise JudgeUnavailableError("it is not there")
        return ": 'ready'"

    monkeypatch.setattr(doctor_judges, "listed_models", list_models)
    monkeypatch.setattr(doctor_judges, "_say_hello", say_hello)
    url = "https://judge.example/v1"
    settings = _settings(tmp_path, OPENAI_API_KEY="sk-1", LMMS_CAPTIONS_JUDGE_URL=url)
    findings = [finding for finding in examine(settings) if finding.topic in ("judge", "models")]
    assert len(own) > 1
    advice = "; start that server, or correct LMMS_CAPTIONS_JUDGE_URL"
    assert [(finding.text, finding.ok) for finding in findings] == [
        *(
            (
                f"{model} ({' and '.join(names)}'s own) at {url}, key set"
                + (f": it is not there{advice}" if model == silent else ", answers: 'ready'"),
                model != silent,
            )
            for model, names in own.items()
        ),
        (
            f"{url} lists {', '.join(map(repr, own))}, 'another'; {' and '.join(own)} are among "
            "them",
            True,
        ),
    ]


def test_every_benchmark_s_data_is_looked_for(tmp_path: Path) -> None:
    """Each of its files once, in the registry's order, whatever else reads it."""
    settings = _settings(tmp_path, LMMS_CAPTIONS_DATA="sample", LMMS_CAPTIONS_JUDGE="lexical")
    data = [finding.text for finding in examine(settings) if finding.topic == "data"]
    files = dict.fromkeys((each.name, each.probe_file) for each in all_benchmarks().values())
    assert [text.partition(":")[0] for text in data] == [name for name, _ in files]
    assert [name for name, _ in files].count("vdc") == 2


def test_data_is_found_or_its_absence_explained(tmp_path: Path) -> None:
    """Local data is looked for where a run would."""
    lexical = {"LMMS_CAPTIONS_JUDGE": "lexical"}
    assert _about("data", _settings(tmp_path, LMMS_CAPTIONS_DATA="sample", **lexical)).ok
    found = _about("data", _settings(tmp_path, LMMS_CAPTIONS_DATA=str(tmp_path), **lexical))
    assert not found.ok
    assert "VDCScore_qa" in found.text


def test_the_command_line_prints_all_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine that is ready exits with 0, and what is installed is shown."""
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path))
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", "sample")
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "lmms-eval 0.7" in printed
    assert "smoke test" in printed


def test_every_replica_is_asked(tmp_path: Path, serve: ServerFactory) -> None:
    """One that does not answer is named among those that do."""
    well, ill = serve(), serve(status=500)
    judge = {"LMMS_CAPTIONS_JUDGE_URL": f"{well.url},{ill.url}", "LMMS_CAPTIONS_JUDGE": "mine"}
    findings = [f for f in examine(_settings(tmp_path, **judge)) if f.topic == "judge"]
    assert [finding.ok for finding in findings] == [True, False]
    for finding, server in zip(findings, (well, ill), strict=True):
        assert f"mine at {server.url}, key not set" in finding.text
        assert server.counts.n_requests == 1


@pytest.fixture
def mine(serve: ServerFactory) -> dict[str, str]:
    """Settings of a judge that answers, of whose questions a sample is asked."""
    return {
        "LMMS_CAPTIONS_JUDGE_URL": serve().url,
        "LMMS_CAPTIONS_JUDGE": "mine",
        "LMMS_CAPTIONS_PRECISION": "0.5",
    }


def _all_about(topic: str, settings: Settings) -> list[Finding]:
    return [finding for finding in examine(settings) if finding.topic == topic]


def test_a_sample_says_what_is_asked_of_which_benchmarks(
    tmp_path: Path, mine: dict[str, str]
) -> None:
    """Those that can be sampled are named, with how close the headline gets; else nothing is."""
    [found] = _all_about("sample", _settings(tmp_path, **mine))
    assert found.ok
    assert found.text.startswith("as many questions as give the headline within 0.5 points, in vdc")
    sampled = found.text.partition(" in vdc")[2]
    assert "vcapsbench" in sampled
    assert "vdc_classic" not in sampled, "no judge is asked there"
    del mine["LMMS_CAPTIONS_PRECISION"]
    assert _all_about("sample", _settings(tmp_path, **mine)) == []


def test_a_cheap_judge_that_answers_is_shown_with_its_words(
    tmp_path: Path,
    mine: dict[str, str],
    serve: ServerFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked at its own address, with its own key, which is not shown, nor is a password."""
    cheap = serve(key="sk-cheap")
    cheap.reply = lambda _: "ready"
    _lists(cheap, {"id": "small"})
    monkeypatch.setenv("CHEAP_KEY", "sk-cheap")
    mine["LMMS_CAPTIONS_CHEAP_JUDGE"] = f"small@{cheap.url}#CHEAP_KEY"
    sample, answer = _all_about("sample", _settings(tmp_path, OPENAI_API_KEY="sk-mine", **mine))
    assert "points, all of them asked of small, in vdc" in sample.text
    assert answer.ok
    assert answer.text == f"the cheap judge small at {cheap.url}, key set, answers: 'ready'"
    listed = _all_about("models", _settings(tmp_path, **mine))[-1]
    assert listed.ok
    assert listed.text == f"{cheap.url} lists 'small'; small is among them"
    with_user = cheap.url.replace("http://", "http://me:word@")
    mine["LMMS_CAPTIONS_CHEAP_JUDGE"] = f"small@{with_user}"
    _, answer = _all_about("sample", _settings(tmp_path, **mine))
    assert not answer.ok, "a user is no key"
    assert "word" not in answer.text


def test_a_cheap_judge_that_is_not_there_is_a_problem(tmp_path: Path, mine: dict[str, str]) -> None:
    """Its own setting is the advice; the judge's line is as before."""
    mine["LMMS_CAPTIONS_CHEAP_JUDGE"] = "small@http://127.0.0.1:9/v1"
    settings = _settings(tmp_path, **mine)
    _, answer = _all_about("sample", settings)
    assert not answer.ok
    assert answer.text.startswith("the cheap judge small at http://127.0.0.1:9/v1, key not set: no")
    assert answer.text.endswith("or correct the address in LMMS_CAPTIONS_CHEAP_JUDGE")
    assert _about("judge", settings).ok


def test_a_cheap_judge_that_answers_as_another_is_a_problem(
    tmp_path: Path, mine: dict[str, str], serve: ServerFactory
) -> None:
    """Both names stand there, and its own setting; so they do where it is not listed."""
    cheap = serve()
    cheap.script = lambda _: Say("ready", model="tiny.gguf")
    _lists(cheap, {"id": "tiny.gguf"})
    mine["LMMS_CAPTIONS_CHEAP_JUDGE"] = f"small@{cheap.url}"
    settings = _settings(tmp_path, **mine)
    _, answer = _all_about("sample", settings)
    assert not answer.ok
    assert "answered as 'tiny.gguf' where 'small' was asked for" in answer.text
    assert "set the name in LMMS_CAPTIONS_CHEAP_JUDGE to that name" in answer.text
    assert "LMMS_CAPTIONS_JUDGE" not in answer.text
    listed = _all_about("models", settings)[-1]
    assert not listed.ok
    assert listed.text.endswith("set the name in LMMS_CAPTIONS_CHEAP_JUDGE to the one that judges")


@pytest.mark.parametrize(
    ("cheap", "words"),
    [
        pytest.param("small@https://cheap.example/v1", "as in small@URL#MY_KEY", id="no-key"),
        pytest.param("small@https://cheap.example/v1#EMPTY", "EMPTY is not set", id="empty-key"),
        pytest.param("mine", "expected another model than the judge", id="the-judge-itself"),
        pytest.param("a,b", "expected one model, got 2", id="two"),
        pytest.param("@http://127.0.0.1:9/v1", "expected names of models", id="no-name"),
        pytest.param("small@http://", "expected URLs such as", id="no-url"),
        pytest.param(
            "small@https://cheap.example/v1#sk-secret", "the name of a variable", id="key-itself"
        ),
    ],
)
def test_a_cheap_judge_that_cannot_be_asked_is_a_problem(
    cheap: str, words: str, tmp_path: Path, mine: dict[str, str]
) -> None:
    """What is wrong with the setting is said in words, and nothing of a key."""
    settings = _settings(tmp_path, LMMS_CAPTIONS_CHEAP_JUDGE=cheap, **mine)
    _, answer = _all_about("sample", settings)
    assert not answer.ok
    assert words in answer.text
    assert "LMMS_CAPTIONS_CHEAP_JUDGE" in answer.text
    assert "secret" not in answer.text
    assert "secret" not in "".join(
        setting.text for setting in settings_in_force({"LMMS_CAPTIONS_CHEAP_JUDGE": cheap})
    )


def test_a_cheap_judge_without_a_sample_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has nothing to do where every question is asked of the judge."""
    monkeypatch.setenv("LMMS_CAPTIONS_CHEAP_JUDGE", "small")
    assert main(["doctor"]) == 2
    assert "expected LMMS_CAPTIONS_PRECISION beside it" in capsys.readouterr().err


def _keep(settings: Settings, **benchmarks: VerifiedBenchmark) -> Path:
    """Write down what a verification of the settings' judge has found out."""
    assert settings.judge
    names = settings.endpoint.names
    path = kept_path(settings.cache, settings.judge, names)
    write_kept(path, model=settings.judge, endpoints=names, benchmarks=benchmarks, record=None)
    return path


def _entry(state: VerifyState, *, days: float, protocol: int = 1) -> VerifiedBenchmark:
    return VerifiedBenchmark(
        state=state,
        fingerprint="01234567",
        verified_s=time.time() - days * 86_400,
        protocol=protocol,
        differs="its prompts are cut",
    )


def test_a_judge_that_was_verified_is_said_to_be(tmp_path: Path, mine: dict[str, str]) -> None:
    """When, by which benchmarks, with which fingerprint, and by which not."""
    settings = _settings(tmp_path, **mine)
    [found] = _all_about("verified", settings)
    assert (found.ok, found.text) == (True, "mine: not verified: lmms-eval-captions judge verify")
    protocols = {
        each.name: each.judge_config(settings).protocol for each in all_benchmarks().values()
    }
    vdc = _entry("passed", days=2.1, protocol=protocols["vdc"])
    other = _entry("passed", days=2.1, protocol=protocols["capquiz"] + 1)
    _keep(settings, vdc=vdc, capquiz=other)
    [found] = _all_about("verified", settings)
    assert found.ok
    assert found.text.startswith("mine: by vdc (2 days ago, judge-fp:01234567); by ")
    rest = found.text.partition("; by ")[2]
    assert rest.endswith("not verified: lmms-eval-captions judge verify")
    assert "capquiz" in rest, "it was verified with another protocol"
    elsewhere = _settings(tmp_path, **{**mine, "LMMS_CAPTIONS_JUDGE": "another"})
    [found] = _all_about("verified", elsewhere)
    assert found.text == "another: not verified: lmms-eval-captions judge verify"


@pytest.mark.parametrize(
    ("state", "days", "ok", "words"),
    [
        pytest.param("failed", 1.5, False, "failed its verification 1 day ago", id="failed"),
        pytest.param("passed", 31.5, True, "was verified 31 days ago", id="long-ago"),
    ],
)
def test_a_judge_whose_verification_does_not_hold_is_said_to_be_one(
    state: VerifyState, days: float, ok: bool, words: str, tmp_path: Path, mine: dict[str, str]
) -> None:
    """One that failed is a problem; one that was verified long ago is not."""
    settings = _settings(tmp_path, **mine)
    protocol = all_benchmarks()["vdc"].judge_config(settings).protocol
    _keep(settings, vdc=_entry(state, days=days, protocol=protocol))
    others, found = _all_about("verified", settings)
    assert found.ok == ok
    assert words in found.text
    assert "vdc" not in others.text


def test_what_is_kept_of_a_judge_and_cannot_be_read_is_a_problem(
    tmp_path: Path, mine: dict[str, str]
) -> None:
    """With what to do about it."""
    settings = _settings(tmp_path, **mine)
    _keep(settings).write_text("{")
    [found] = _all_about("verified", settings)
    assert not found.ok
    assert "delete it, and verify the judge again" in found.text


def test_every_setting_in_force_is_shown() -> None:
    """With its value and where that is from; never a key or a password."""
    settings = settings_in_force(
        {
            "OPENAI_API_KEY": "sk-secret",
            "LMMS_CAPTIONS_JUDGE_URL": "http://me:pass@a:1/v1, http://b:2/v1?key=pass",
            "OPENAI_BASE_URL": "pass",
            "LMMS_CAPTIONS_MAX_COST": "$20",
            "LMMS_CAPTIONS_CHEAP_JUDGE": "small@http://me:pass@httpd:1/v1;http://b:2/v1#MY_KEY",
        }
    )
    shown = {setting.name: setting.text for setting in settings}
    names = {variable.name for variable in variables_of(Settings).values()}
    assert set(shown) == names - {"RANK", "WORLD_SIZE"}
    assert all(setting.ok for setting in settings)
    assert "pass" not in "".join(shown.values())
    assert "secret" not in "".join(shown.values())
    for text in (
        "OPENAI_API_KEY is set",
        "ANTHROPIC_API_KEY is not set",
        "LMMS_CAPTIONS_JUDGE_URL = http://a:1/v1, http://b:2/v1 (environment)",
        "OPENAI_BASE_URL = [no URL] (environment)",
        "LMMS_CAPTIONS_MAX_COST = $20 (environment)",
        "LMMS_CAPTIONS_CHEAP_JUDGE = small@http://httpd:1/v1;http://b:2/v1#MY_KEY (environment)",
        "LMMS_CAPTIONS_JUDGE_CONCURRENCY = 64 (default)",
        "LMMS_CAPTIONS_JUDGE_RATE = no limit (default)",
        "LMMS_CAPTIONS_JUDGE_TIMEOUT = the benchmark's own (default)",
        f"LMMS_CAPTIONS_PRICES = the packaged ones, of {load_prices().as_of} (default)",
    ):
        assert text in shown.values()


def test_settings_that_cannot_be_used_are_all_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bad and the misspelt ones, as problems; the first is the last line, and exits with 2."""
    monkeypatch.setenv("LMMS_CAPTIONS_MAX_COTS", "20")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "0")
    assert main(["doctor"]) == 2
    printed = capsys.readouterr()
    problems = [line for line in printed.out.splitlines() if line.startswith("problem")]
    assert [line.split()[2] for line in problems] == [
        "LMMS_CAPTIONS_MAX_COTS:",
        "LMMS_CAPTIONS_JUDGE_RUNS:",
    ]
    assert "was LMMS_CAPTIONS_MAX_COST meant?" in printed.err


def test_the_tasks_path_holds_the_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed can be given to ``--include_path``."""
    assert main(["tasks-path"]) == 0
    printed = Path(capsys.readouterr().out.strip())
    assert printed == tasks_path()
    assert (printed / "vdc" / "vdc_score.yaml").is_file()
