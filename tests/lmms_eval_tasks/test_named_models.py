"""Models that an option names, and their endpoints."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.urls import Key
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import parse_models

HERE = Endpoint(urls=("http://127.0.0.1:8000/v1",))


def test_models_are_asked_at_their_own_address_or_at_the_usual_one() -> None:
    """An address behind a name is that model's alone; replicas are separated by semicolons."""
    text = "a, b@http://127.0.0.1:1/v1;http://127.0.0.1:2/v1"
    first, second = parse_models("--writer", text, HERE, {})
    assert (first.name, first.endpoint) == ("a", HERE)
    assert second.name == "b"
    assert second.endpoint.urls == ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")


def test_a_name_may_hold_an_at_sign() -> None:
    """Versions of some providers are written so."""
    [model] = parse_models("--writer", "m@2026@http://127.0.0.1:1/v1", HERE, {})
    assert (model.name, model.endpoint.urls) == ("m@2026", ("http://127.0.0.1:1/v1",))
    [plain] = parse_models("--writer", "m@2026", HERE, {})
    assert (plain.name, plain.endpoint) == ("m@2026", HERE)


def test_an_address_may_hold_what_addresses_begin_with() -> None:
    """Behind a user and a password, a host whose name begins with http."""
    [model] = parse_models("--writer", "m@http://me:word@httpd:1/v1", HERE, {})
    assert (model.name, model.endpoint.urls) == ("m", ("http://me:word@httpd:1/v1",))


ENVIRON = {"OPENAI_API_KEY": "sk-usual", "OTHER": "sk-other"}


def test_a_key_is_that_of_the_variable_behind_the_address() -> None:
    """OpenAI gets OPENAI_API_KEY without being told; no key shows itself."""
    text = "a@https://api.openai.com/v1,b@https://two.example/v1#OTHER"
    first, second = parse_models("--writer", text, HERE, ENVIRON)
    assert (first.endpoint.api_key, second.endpoint.api_key) == (Key("sk-usual"), Key("sk-other"))
    assert "sk-" not in repr((first, second))


def test_the_usual_key_goes_to_no_address_that_it_is_not_for() -> None:
    """A server on this machine gets none, one elsewhere must have its own, a user is enough."""
    text = "a@http://127.0.0.1:1/v1,b@https://me:word@two.example/v1"
    models = parse_models("--writer", text, HERE, ENVIRON)
    assert [model.endpoint.api_key for model in models] == [None, None]
    with pytest.raises(SettingsError, match=r"needs a key .* as in a@URL#MY_KEY"):
        parse_models("--writer", "a@https://one.example/v1", HERE, ENVIRON)


def test_the_usual_address_spelled_out_has_the_usual_key() -> None:
    """It is the same endpoint, whichever way it is named."""
    usual = Endpoint(urls=("https://gate.example/v1",), api_key=Key("sk-gate"), alias="b")
    [model] = parse_models("--writer", "a@https://gate.example/v1/", usual, ENVIRON)
    assert model.endpoint == usual


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "expected names of models", id="nothing"),
        pytest.param("a,,b", "expected names of models", id="gap"),
        pytest.param("@http://127.0.0.1:1/v1", "expected names of models", id="no-name"),
        pytest.param("a,a", "expected different models", id="twice"),
        pytest.param("a@https://one.example/v1#OTHER", "needs a key and OTHER is not", id="no-key"),
        pytest.param("a@https://one.example/v1#sk-1", "name of a variable behind", id="key-itself"),
    ],
)
def test_what_is_no_list_of_models_is_refused(text: str, words: str) -> None:
    """The error names the option."""
    with pytest.raises(SettingsError, match=words) as caught:
        parse_models("--solver", text, HERE, {})
    assert "--solver" in str(caught.value)
    assert "sk-" not in str(caught.value)
