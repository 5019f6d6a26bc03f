"""Settings are read in one place and validated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.settings import (
    DataSettings,
    JudgeSettings,
    Settings,
    read_data_settings,
    read_judge_settings,
    variables_of,
)


def test_defaults_are_those_of_the_page_of_settings() -> None:
    """An empty environment gives the documented defaults."""
    settings, data = read_judge_settings({}), read_data_settings({})
    endpoint = settings.endpoint
    assert (endpoint.urls, endpoint.api) == (("https://api.openai.com/v1",), "openai")
    assert (settings.concurrency, settings.max_unscored, settings.rank) == (64, 0.01, 0)
    assert (settings.mode, settings.world_size, data.vidcapbench_format) == ("now", 1, "free")
    assert settings.ask_again is False
    assert [settings.judge, settings.runs, data.data, endpoint.api_key] == [None] * 4
    assert settings.cache == data.cache == Path.home() / ".cache" / "lmms-eval-captions"


@pytest.mark.parametrize(
    ("value", "rate"), [("", None), ("100", 100.0), ("0.5", 0.5), ("2e3", 2e3)]
)
def test_a_rate_is_a_number_of_requests_a_second(value: str, rate: float | None) -> None:
    """Less than one, too; without, there is no limit."""
    assert read_judge_settings({"LMMS_CAPTIONS_JUDGE_RATE": value}).rate == rate


@pytest.mark.parametrize(
    ("environment", "urls"),
    [
        pytest.param(
            {"LMMS_CAPTIONS_JUDGE_URL": "http://a:1/v1/, http://b/v1"},
            ("http://a:1/v1", "http://b/v1"),
            id="replicas",
        ),
        pytest.param({"OPENAI_BASE_URL": "http://a/v1"}, ("http://a/v1",), id="base-url"),
        pytest.param(
            {"OPENAI_API_URL": "https://a/v1/chat/completions"}, ("https://a/v1",), id="full-path"
        ),
        pytest.param(
            {"LMMS_CAPTIONS_JUDGE_URL": "http://ours/v1", "OPENAI_BASE_URL": "http://theirs/v1"},
            ("http://ours/v1",),
            id="ours-wins",
        ),
    ],
)
def test_urls_come_from_the_first_variable_that_is_set(
    environment: dict[str, str], urls: tuple[str, ...]
) -> None:
    """Our own variable comes before the common ones."""
    assert read_judge_settings(environment).endpoint.urls == urls


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "0"),
        ("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "many"),
        ("LMMS_CAPTIONS_JUDGE_RATE", "0"),
        ("LMMS_CAPTIONS_JUDGE_RATE", "-1"),
        ("LMMS_CAPTIONS_JUDGE_RATE", "inf"),
        ("LMMS_CAPTIONS_JUDGE_RATE", "nan"),
        ("LMMS_CAPTIONS_JUDGE_RATE", "100/s"),
        ("LMMS_CAPTIONS_JUDGE_RUNS", "-1"),
        ("LMMS_CAPTIONS_JUDGE_RUNS", "1.5"),
        ("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "-0.1"),
        ("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "warm"),
        ("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "nan"),
        ("LMMS_CAPTIONS_JUDGE_TIMEOUT", "0"),
        ("LMMS_CAPTIONS_JUDGE_TIMEOUT", "inf"),
        ("LMMS_CAPTIONS_JUDGE_TIMEOUT", "5 min"),
        ("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "2"),
        ("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "three"),
        ("LMMS_CAPTIONS_ASK_AGAIN", "yes"),
        ("LMMS_CAPTIONS_ASK_AGAIN", "2"),
        ("LMMS_CAPTIONS_STORE_BY", "url"),
        ("LMMS_CAPTIONS_MAX_UNSCORED", "1.1"),
        ("LMMS_CAPTIONS_MAX_UNSCORED", "nan"),
        ("LMMS_CAPTIONS_MAX_COST", "0"),
        ("LMMS_CAPTIONS_MAX_COST", "inf"),
        ("LMMS_CAPTIONS_MAX_COST", "ten"),
        ("LMMS_CAPTIONS_JUDGE_MODE", "later"),
        ("LMMS_CAPTIONS_JUDGE_API", "gemini"),
        ("LMMS_CAPTIONS_JUDGE_URL", "127.0.0.1:8000"),
        ("LMMS_CAPTIONS_JUDGE_URL", ","),
        ("OPENAI_BASE_URL", "127.0.0.1:8000"),
        ("RANK", "x"),
        ("RANK", "-1"),
        ("WORLD_SIZE", "0"),
        ("WORLD_SIZE", "9" * 5000),
        ("LMMS_CAPTIONS_JUDGE_URL", "ftp://host/v1"),
        ("LMMS_CAPTIONS_JUDGE_URL", "http://host:31x/v1"),
        ("LMMS_CAPTIONS_JUDGE_URL", "http://[::1"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    """The error names the variable and shows what came."""
    with pytest.raises(SettingsError, match=name) as error:
        read_judge_settings({name: value})
    assert value in str(error.value)


def test_a_remote_judge_needs_a_key_and_a_local_one_does_not() -> None:
    """A missing key is an error that says what to set; loopback needs none."""
    read_judge_settings({"LMMS_CAPTIONS_JUDGE_URL": "http://127.0.0.1:8/v1"}).require_judge_access()
    read_judge_settings({"OPENAI_API_KEY": "sk-1"}).require_judge_access()
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        read_judge_settings({}).require_judge_access()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST.", "judge.localhost", "[::1]", "0.0.0.0",
     "[::]", "[::ffff:127.0.0.1]"],
)  # fmt: skip
def test_no_judge_of_a_paper_is_assumed_on_this_machine(host: str) -> None:
    """One has to be named there, however the machine is called, and needs no key."""
    environ = {"LMMS_CAPTIONS_JUDGE_URL": f"https://judge.example/v1,http://{host}:8000/v1"}
    with pytest.raises(SettingsError, match="own judge, gpt-4o, is never assumed") as error:
        read_judge_settings(environ).require_named_judge("gpt-4o")
    assert f"http://{host.lower()}:8000/v1" in str(error.value).lower()
    for words in ("Set LMMS_CAPTIONS_JUDGE to", "lmms-eval-captions doctor"):
        assert words in str(error.value)
    read_judge_settings({**environ, "LMMS_CAPTIONS_JUDGE": "mine"}).require_named_judge("gpt-4o")
    read_judge_settings({"LMMS_CAPTIONS_JUDGE_URL": f"http://{host}:8/v1"}).require_judge_access()


@pytest.mark.parametrize("host", ["judge.example", "10.0.0.1", "localhost.example", "1.2.3.4"])
def test_the_judge_of_a_paper_is_asked_elsewhere(host: str) -> None:
    """A provider serves what it is asked for, or says that it does not."""
    environ = {"LMMS_CAPTIONS_JUDGE_URL": f"https://{host}/v1"}
    read_judge_settings(environ).require_named_judge("gpt-4o")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        read_judge_settings(environ).require_judge_access()


def test_the_key_is_in_no_text_of_the_settings() -> None:
    """Printing settings does not print the key."""
    assert "sk-secret" not in repr(read_judge_settings({"OPENAI_API_KEY": "sk-secret"}))


def test_the_environment_wins_over_the_benchmark() -> None:
    """Model and runs of the environment replace those of the YAML; the rest stays."""
    settings = read_judge_settings({"LMMS_CAPTIONS_JUDGE": "mine", "LMMS_CAPTIONS_JUDGE_RUNS": "3"})
    config = JudgeConfig.build({"model": "paper", "runs": 1, "max_tokens": 9}, settings)
    assert (config.model, config.runs, config.max_tokens) == ("mine", 3, 9)


@pytest.mark.parametrize(
    ("own", "value", "temperature", "extras"),
    [
        pytest.param(0.0, None, 0.0, {}, id="not-set"),
        pytest.param(0.0, "1", 1.0, {"temperature": "1"}, id="replaced"),
        pytest.param(1.0, "0", 0.0, {"temperature": "0"}, id="zero-is-a-value"),
        pytest.param(0.0, "0.0", 0.0, {}, id="the-benchmark's-own"),
        pytest.param(0.0, "0.25", 0.25, {"temperature": "0.25"}, id="fraction"),
    ],
)
def test_a_temperature_of_ones_own_is_noted_where_it_differs(
    own: float, value: str | None, temperature: float, extras: dict[str, str]
) -> None:
    """It replaces the benchmark's; the signature holds it where it is not the benchmark's."""
    environ = {} if value is None else {"LMMS_CAPTIONS_JUDGE_TEMPERATURE": value}
    config = JudgeConfig.build({"model": "paper", "temperature": own}, read_judge_settings(environ))
    assert (config.temperature, config.signature_fields) == (temperature, extras)


def test_a_number_of_asks_without_a_majority_is_an_error() -> None:
    """A YAML that asks twice is refused: two answers that differ would decide nothing."""
    with pytest.raises(SettingsError, match="asks of 1 or 3, got 2"):
        JudgeConfig(model="paper", asks=2)


def test_an_unknown_key_of_the_yaml_is_an_error() -> None:
    """A typing error in ``metadata.judge`` is not passed over."""
    with pytest.raises(SettingsError, match="temprature"):
        JudgeConfig.build({"model": "paper", "temprature": 0}, read_judge_settings({}))


@pytest.mark.parametrize("url", ["http://me:S3/CRET@host/v1", "http://me:S3CRET@host:x/v1"])
def test_a_password_in_a_broken_url_is_not_told(url: str) -> None:
    with pytest.raises(SettingsError, match="number 1") as error:
        read_judge_settings({"LMMS_CAPTIONS_JUDGE_URL": url})
    assert "CRET" not in str(error.value)


def test_a_user_in_the_url_takes_the_place_of_the_key_and_not_both() -> None:
    """HTTP sends one authorization."""
    environ = {"LMMS_CAPTIONS_JUDGE_URL": "https://me:S3CRET@host/v1"}
    read_judge_settings(environ).require_judge_access()
    with pytest.raises(SettingsError, match="take the other out") as error:
        read_judge_settings({**environ, "OPENAI_API_KEY": "key"}).require_judge_access()
    assert "S3CRET" not in str(error.value)


def test_the_page_of_settings_has_every_variable_and_its_default() -> None:
    rows = {row.name: row for row in variables_of(Settings).values()}
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| (`[A-Z0-9_`, ]+`) \| (.*) \|$", text, re.MULTILINE))
    meanings = {name: line for names, line in lines.items() for name in re.findall(r"\w+", names)}
    launchers, addresses = {"RANK", "WORLD_SIZE"}, {name for name in rows if name.endswith("_URL")}
    addresses -= set(meanings)
    assert len(addresses) == 2
    assert set(meanings) == set(rows) - launchers - addresses
    for name in addresses:
        assert f"`{name}`" in "".join(lines.values()), name
    for name, meaning in meanings.items():
        default = rows[name].default
        assert default is None or meaning.replace("`", "").endswith(f"({default})"), name


@pytest.mark.parametrize(
    ("environ", "urls", "key"),
    [
        pytest.param({}, ("https://api.anthropic.com",), None, id="the provider's"),
        pytest.param(
            {"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_URL": "http://b", "OPENAI_API_KEY": "o"},
            ("https://api.anthropic.com",),
            None,
            id="OpenAI's variables are another one's",
        ),
        pytest.param(
            {"ANTHROPIC_BASE_URL": "http://b:1/", "ANTHROPIC_API_KEY": "k"},
            ("http://b:1",),
            "k",
            id="its own variable",
        ),
        pytest.param(
            {"LMMS_CAPTIONS_JUDGE_URL": "http://a:1", "ANTHROPIC_API_KEY": "k"},
            ("http://a:1",),
            "k",
            id="own",
        ),
    ],
)
def test_the_other_api_has_an_address_and_a_key_of_its_own(
    environ: dict[str, str], urls: tuple[str, ...], key: str | None
) -> None:
    """OpenAI's key is never sent to Anthropic, nor its address asked with Anthropic's API."""
    settings = read_judge_settings({"LMMS_CAPTIONS_JUDGE_API": "anthropic", **environ})
    endpoint = settings.endpoint
    assert (endpoint.api, endpoint.urls, endpoint.api_key) == ("anthropic", urls, key)
    if key is None:
        with pytest.raises(SettingsError, match="needs a key and ANTHROPIC_API_KEY is not set"):
            settings.require_judge_access()


def test_variables_of_the_api_that_is_not_asked_are_not_looked_at() -> None:
    """A key or address that cannot be used stops nobody who does not use it."""
    typographic = "sk\N{EN DASH}1"
    read_judge_settings({"ANTHROPIC_API_KEY": typographic})
    read_judge_settings({"LMMS_CAPTIONS_JUDGE_URL": "http://a", "OPENAI_BASE_URL": "here"})
    environ = {"LMMS_CAPTIONS_JUDGE_API": "anthropic", "OPENAI_API_KEY": typographic}
    read_judge_settings({**environ, "OPENAI_BASE_URL": "here"})
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY: expected printable ASCII"):
        read_judge_settings({**environ, "ANTHROPIC_API_KEY": typographic})


def test_batches_are_at_one_openai_endpoint() -> None:
    """Replicas, and the other API, are refused by name."""
    environ = {"LMMS_CAPTIONS_JUDGE_MODE": "batch"}
    with pytest.raises(SettingsError, match="expected one URL with batch"):
        read_judge_settings({**environ, "LMMS_CAPTIONS_JUDGE_URL": "http://a,http://b"})
    with pytest.raises(SettingsError, match="expected now for the API anthropic"):
        read_judge_settings({**environ, "LMMS_CAPTIONS_JUDGE_API": "anthropic"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LMMS_CAPTIONS_JUGDE", "LMMS_CAPTIONS_JUDGE"),
        ("LMMS_CAPTIONS_JUDGE_URLS", "LMMS_CAPTIONS_JUDGE_URL"),
        ("LMMS_CAPTIONS_CONCURRENCY", "LMMS_CAPTIONS_JUDGE_CONCURRENCY"),
        ("LMMS_CAPTIONS_JUDGE_RATES", "LMMS_CAPTIONS_JUDGE_RATE"),
        ("LMMS_CAPTIONS_MAXCOST", "LMMS_CAPTIONS_MAX_COST"),
        ("LMMS_CAPTIONS_PROMPT", "LMMS_CAPTIONS_PROMPTS"),
        ("LMMS_CAPTIONS_CAHCE", "LMMS_CAPTIONS_CACHE"),
        ("LMMS_CAPTIONS_DATA_ROOT", "LMMS_CAPTIONS_DATA"),
        ("LMMS_CAPTION_MAX_COST", "LMMS_CAPTIONS_MAX_COST"),
        ("LMMS_EVAL_CAPTIONS_MAX_COST", "LMMS_CAPTIONS_MAX_COST"),
        ("LMMSCAPTIONS_MAX_COST", "LMMS_CAPTIONS_MAX_COST"),
        ("lmms_captions_max_cost", "LMMS_CAPTIONS_MAX_COST"),
        ("LMMS_CAPTIONS_COLOUR", None),
    ],
)
def test_a_variable_that_is_not_known_is_named_with_what_was_meant(
    name: str, meant: str | None
) -> None:
    """By the settings that it was meant for, by the judge's where nothing is like it."""
    readers = {JudgeSettings: read_judge_settings, DataSettings: read_data_settings}
    for kind, read in readers.items():
        assert read({name: " "}) == read({})
        names = {row.name for row in variables_of(kind).values()}
        if meant in names or (meant is None and kind is JudgeSettings):
            words = f"{name}: no setting of this name is known.*{meant or 'captions doctor'}"
            with pytest.raises(SettingsError, match=words):
                read({name: "1"})
        else:
            assert read({name: "1"}) == read({})
