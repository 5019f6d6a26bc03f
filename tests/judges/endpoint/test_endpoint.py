"""Endpoints: their addresses and keys."""

from __future__ import annotations

import pytest

from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.endpoint.urls import Key
from lmms_eval_captions.judges.errors import SettingsError

REMOTE = "https://judge.example/v1"


def test_the_key_is_in_no_text_of_an_endpoint() -> None:
    """Printing an endpoint does not print its key."""
    assert "sk-secret" not in repr(Endpoint(urls=(REMOTE,), api_key=Key("sk-secret")))


def test_access_is_a_key_or_a_user_for_every_replica_elsewhere() -> None:
    """The first replica that cannot be called is named, with what is missing and what to do."""
    local, with_user = "http://127.0.0.1:8/v1", "https://me:S3CRET@judge.example/v1"
    Endpoint(urls=(local, with_user)).require_access("x at", "set it")
    Endpoint(urls=(local, REMOTE), api_key=Key("k")).require_access("x at", "set it")
    with pytest.raises(SettingsError, match=f"x at {REMOTE} needs a key and MINE is not .*set it"):
        Endpoint(urls=(local, REMOTE), key_name="MINE").require_access("x at", "set it")
    endpoint = Endpoint(urls=(with_user,), api_key=Key("k"), key_name="MINE")
    with pytest.raises(SettingsError, match="a user in its URL and MINE is set") as error:
        endpoint.require_access("x at", "set it")
    assert "S3CRET" not in str(error.value)
