"""``lmms-eval-captions doctor`` says what a run would use."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from conftest import ServerFactory
from judge_server import JudgeServer, Say
from lmms_eval_captions.cli import doctor
from lmms_eval_captions.cli.doctor import Finding, examine, settings_in_force
from lmms_eval_captions.cli.main import main
from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.failures import Role
from lmms_eval_captions.judges.errors import JudgeUnavailableError
from lmms_eval_captions.judges.settings import Settings, read_settings, variables_of
from lmms_eval_captions.lmms_eval_tasks import dependencies
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
    texts = {each.text: each.status for each in found}
    assert texts[f"aiohttp 3.99 is installed, {tested['aiohttp']} is tested"] == "ok"
    assert [text for text, status in texts.items() if status == "problem"] == [
        f"filelock 4.3.1 is installed, {tested['filelock']} is known to work. "
        "Run: pip install 'filelock<4'"
    ]


def test_a_judge_that_answers_is_shown_with_its_words(tmp_path: Path, serve: ServerFactory) -> None:
    """The model, where it is, whether a key is set, and what it answered."""
    server = serve(key="sk-1")
    server.reply = lambda _: "ready"
    url = {"LMMS_CAPTIONS_JUDGE_URL": server.url, "LMMS_CAPTIONS_JUDGE": "mine"}
    found = _about("judge", _settings(tmp_path, OPENAI_API_KEY="sk-1", **url))
    assert found.status == "ok"
    assert f"mine at {server.url}, key set, answers: 'ready'" in found.text
    found = _about("judge", _settings(tmp_path, OPENAI_API_KEY="sk-2", **url))
    assert found.status == "problem"
    assert "401" in found.text
    assert "sk-2" not in found.text


def _lists(server: JudgeServer, *names: object, status: int = 200) -> None:
    """Have a server list its models."""
    server.models = json.dumps({"object": "list", "data": [*names]}), status


def test_no_judge_is_assumed_on_this_machine(tmp_path: Path, serve: ServerFactory) -> None:
    """The setting is named beside what the server lists, and the judge is not asked."""
    server = serve()
    _lists(server, {"id": "tiny.gguf"})
    settings = _settings(tmp_path, LMMS_CAPTIONS_JUDGE_URL=server.url)
    found = _about("judge", settings)
    assert found.status == "problem"
    assert "LMMS_CAPTIONS_JUDGE is not set" in found.text
    assert _about("models", settings).text == f"{server.url} lists 'tiny.gguf'"
    assert server.counts.n_requests == 0


def test_a_judge_that_answers_as_another_is_a_problem(tmp_path: Path, serve: ServerFactory) -> None:
    """Unless an alias says that it is right; a version of it is shown."""
    server = serve()
    server.script = lambda _: Say("ready", model="tiny.gguf")
    judge = {"LMMS_CAPTIONS_JUDGE_URL": server.url, "LMMS_CAPTIONS_JUDGE": "mine"}
    found = _about("judge", _settings(tmp_path, **judge))
    assert found.status == "problem"
    assert "answered as 'tiny.gguf', but 'mine' was asked for" in found.text
    renamed = _settings(tmp_path, LMMS_CAPTIONS_JUDGE_ALIAS="tiny.gguf", **judge)
    assert _about("judge", renamed).status == "ok"
    server.script = lambda _: Say("ready", model="mine-2024-08-06")
    found = _about("judge", _settings(tmp_path, **judge))
    assert found.status == "ok"
    assert found.text.endswith("answers as mine-2024-08-06: 'ready'")


def test_without_a_named_judge_every_benchmark_s_own_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, with the benchmarks that it judges; one that does not answer is the problem."""
    own: dict[str, list[str]] = {}
    for benchmark in {b.name: b for b in all_benchmarks().values()}.values():
        own.setdefault(str(benchmark.judge_defaults["model"]), []).append(benchmark.name)
    silent = next(iter(own))

    async def list_models(_url: str, _key: str | None, *, api: str) -> list[str]:
        return [*own, "another"]

    async def say_hello(_endpoint: Endpoint, _url: str, model: str, _role: Role) -> str:
        if model == silent:
            raise JudgeUnavailableError("it is not there")
        return ": 'ready'"

    monkeypatch.setattr(doctor, "listed_models", list_models)
    monkeypatch.setattr(doctor, "_say_hello", say_hello)
    url = "https://judge.example/v1"
    settings = _settings(tmp_path, OPENAI_API_KEY="sk-1", LMMS_CAPTIONS_JUDGE_URL=url)
    findings = [finding for finding in examine(settings) if finding.topic in ("judge", "models")]
    assert len(own) > 1
    advice = "; start that server, or correct LMMS_CAPTIONS_JUDGE_URL"
    assert [(finding.text, finding.status) for finding in findings] == [
        *(
            (
                f"{model} ({' and '.join(names)}'s own) at {url}, key set"
                + (f": it is not there{advice}" if model == silent else ", answers: 'ready'"),
                "problem" if model == silent else "ok",
            )
            for model, names in own.items()
        ),
        (
            f"{url} lists {', '.join(map(repr, own))}, 'another'; {' and '.join(own)} are among "
            "them",
            "ok",
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
    assert (
        _about("data", _settings(tmp_path, LMMS_CAPTIONS_DATA="sample", **lexical)).status == "ok"
    )
    found = _about("data", _settings(tmp_path, LMMS_CAPTIONS_DATA=str(tmp_path), **lexical))
    assert found.status == "problem"
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
    assert answer.status == "ok"
    assert answer.text == f"the cheap judge small at {cheap.url}, key set, answers: 'ready'"
    listed = _all_about("models", _settings(tmp_path, **mine))[-1]
    assert listed.status == "ok"
    assert listed.text == f"{cheap.url} lists 'small'; small is among them"
    with_user = cheap.url.replace("http://", "http://me:word@")
    mine["LMMS_CAPTIONS_CHEAP_JUDGE"] = f"small@{with_user}"
    _, answer = _all_about("sample", _settings(tmp_path, **mine))
    assert answer.status == "problem", "a user is no key"
    assert "word" not in answer.text


def test_every_setting_in_force_is_shown() -> None:
    """With its value, and by default only if it is set; never a key or a password."""
    environ = {
        "OPENAI_API_KEY": "sk-secret",
        "LMMS_CAPTIONS_JUDGE_URL": "http://me:pass@a:1/v1, http://b:2/v1?key=pass",
        "OPENAI_BASE_URL": "pass",
        "LMMS_CAPTIONS_MAX_COST": "$20",
        "LMMS_CAPTIONS_CHEAP_JUDGE": "small@http://me:pass@httpd:1/v1;http://b:2/v1#MY_KEY",
    }
    findings = settings_in_force(environ)
    shown = [finding.text for finding in findings]
    names = {variable.name for variable in variables_of(Settings).values()}
    assert {text.split()[0] for text in shown} == names - {"RANK", "WORLD_SIZE"}
    assert all(finding.status == "ok" for finding in findings)
    assert "pass" not in "".join(shown)
    assert "secret" not in "".join(shown)
    set_ones = {
        "OPENAI_API_KEY is set",
        "LMMS_CAPTIONS_JUDGE_URL = http://a:1/v1, http://b:2/v1",
        "OPENAI_BASE_URL = [no URL]",
        "LMMS_CAPTIONS_MAX_COST = $20",
        "LMMS_CAPTIONS_CHEAP_JUDGE = small",
    }
    assert {finding.text for finding in settings_in_force(environ, with_unset=False)} == set_ones
    for cheap in ("small@htps://me:pass@host/v1", "small#pass", "small,big#pass"):
        [finding] = settings_in_force({"LMMS_CAPTIONS_CHEAP_JUDGE": cheap}, with_unset=False)
        assert "pass" not in finding.text
    for text in (
        *set_ones,
        "ANTHROPIC_API_KEY is not set",
        "LMMS_CAPTIONS_JUDGE_CONCURRENCY = 64 (default)",
        "LMMS_CAPTIONS_JUDGE_RATE = no limit (default)",
        "LMMS_CAPTIONS_JUDGE_TIMEOUT = the benchmark's own (default)",
        f"LMMS_CAPTIONS_PRICES = {load_prices().as_of} (default)",
    ):
        assert text in shown


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
    assert main(["tasks-path"]) == 0
    printed = Path(capsys.readouterr().out.strip())
    assert printed == tasks_path()
    assert (printed / "vdc" / "vdc_score.yaml").is_file()
