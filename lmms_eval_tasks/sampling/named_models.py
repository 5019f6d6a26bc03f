"""Models that an option or a variable names, each with its endpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from lmms_eval_captions.judges.endpoint.dialects import OPENAI, api_of
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint, parse_key
from lmms_eval_captions.judges.endpoint.urls import endpoint_names, parse_urls
from lmms_eval_captions.judges.errors import SettingsError

_HOW: Final = (
    "expected names of models, separated by commas, each with the address of its endpoint if it "
    "is another one than LMMS_CAPTIONS_JUDGE_URL's, and the variable that holds its key if it "
    "needs one: gpt-4o,qwen@http://127.0.0.1:8000/v1,m@https://host/v1#MY_KEY"
)
_AT: Final = re.compile(r"@\s*(?=https?:)", re.IGNORECASE)
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
_NO_VARIABLE: Final = "the variable behind its address"
"""Stands in messages for a key's variable that is not named."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model behind an endpoint."""

    name: str
    endpoint: Endpoint


def parse_models(
    option: str, text: str, endpoint: Endpoint, environ: Mapping[str, str] | None = None
) -> tuple[Model, ...]:
    """Return the models that an option names, ``NAME[@URL[#VARIABLE]][,...]``, in its order.

    Replicas of an address are separated by ``;``. The variable holds the key that is sent there;
    without one no key is sent, except to OpenAI and to the usual endpoint, that of models without
    an address.

    Raises:
        SettingsError: If no model is named, one is named twice, or its endpoint cannot be used.
    """
    env = os.environ if environ is None else environ
    models = tuple(_model(option, part.strip(), endpoint, env) for part in text.split(","))
    names = [model.name for model in models]
    if len(set(names)) < len(names):
        raise SettingsError(f"{option}: expected different models, got {', '.join(names)}")
    return models


def split_address(text: str) -> tuple[str, str]:
    """Split a model's name from its addresses and the variable of its key.

    A name may hold an ``@`` of its own, such as a version's.

    >>> split_address("m@2026@http://me:secret@httpd:1/v1#KEY"), split_address("m@2026")
    (('m@2026', 'http://me:secret@httpd:1/v1#KEY'), ('m@2026', ''))
    >>> split_address("m @ HTTPS://me:secret@httpd/v1")
    ('m', 'HTTPS://me:secret@httpd/v1')
    """
    # The first one: the address after it may hold a password.
    at = _AT.search(text)
    return (text[: at.start()].strip(), text[at.end() :].strip()) if at else (text.strip(), "")


def _model(option: str, text: str, endpoint: Endpoint, environ: Mapping[str, str]) -> Model:
    name, address = split_address(text)
    if not name or "://" in name or "#" in name:
        raise SettingsError(f"{option}: {_HOW}")
    if address:
        endpoint = _endpoint(option, address, endpoint, environ)
    advice = f"set it, or name a server on this machine: {option} {name}@http://127.0.0.1:8000/v1"
    if address and endpoint.key_name == _NO_VARIABLE:
        advice = f"name its variable behind the address, as in {name}@URL#MY_KEY"
    endpoint.require_access(f"{option} {name} at", advice)
    return Model(name, endpoint)


def _endpoint(option: str, address: str, usual: Endpoint, environ: Mapping[str, str]) -> Endpoint:
    text, _, variable = address.partition("#")
    urls = parse_urls(option, text, separators=";")
    key_name = variable.strip()
    if not key_name:
        # A key is sent only to its own endpoint: OPENAI_API_KEY to OpenAI and the usual endpoint.
        if set(endpoint_names(urls)) <= set(usual.names):
            return replace(usual, urls=urls)
        is_openai = set(endpoint_names(urls)) == set(endpoint_names([OPENAI.default_url]))
        key_name = OPENAI.key_variables[0] if is_openai else _NO_VARIABLE
    elif not (_VARIABLE.fullmatch(key_name) or key_name in environ):
        # It may be the key itself, which is not shown.
        raise SettingsError(
            f"{option}: expected the name of a variable behind an address's #, such as MY_KEY, got "
            "something else; the key itself is the variable's value"
        )
    key = environ.get(key_name, "").strip()
    return Endpoint(
        urls=urls,
        api=api_of(urls),
        api_key=parse_key(key_name, key) if key else None,
        key_name=key_name,
    )
