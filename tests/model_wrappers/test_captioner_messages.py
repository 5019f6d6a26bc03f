"""What is said of an endpoint that captions: nothing of judges, whatever fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from caption_requests import caption_all
from hostile_clips import write_clip
from judge_server import Behaviour, JudgeServer, Refuse
from lmms_eval_captions.judges.endpoint.sender import Sender
from lmms_eval_captions.judges.endpoint.store.stored_replies import StoredReplies
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers import caption_openai
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai
from lmms_eval_captions.model_wrappers.chat_api.connection import engine_config

MMPROJ: Final = " input is not supported - hint: you may need to provide the mmproj"
FAILURES: Final[dict[str, tuple[int | str | Refuse, str]]] = {
    "wrong key": (401, "check caption_openai's key, in the variable that api_key_env names"),
    "no money": (402, "the account has nothing left to pay with"),
    "forbidden": (403, "the key may not use this model or endpoint"),
    "no such model": (404, "check the model's name (caption_openai's model=) and caption_openai's"),
    "proxy": (407, "check the user and password in the environment's proxy"),
    "redirect": (302, "set caption_openai's base_url= to it"),
    "refused": (400, "answered 400"),
    "too large": (413, "answered 413"),
    "rate limit": (429, "answered 429"),
    "down": (503, "the captioner gave no reply to any request for"),
    "dropped": ("drop", "captioning stopped"),
    "no completion": ("garbage", "expected a chat completion"),
    "cut off": ("cut", "captioning stopped"),
    "no answer in time": ("hang", "within 0.3 s"),
    "empty": ("empty", "unreadable reply, asked 4 times; the last one was empty"),
    "content": ("filter", "content filter"),
    "error within a 200": (Refuse(200, "overloaded"), "answered 200 with an error"),
    "quota": (Refuse(429, "insufficient_quota"), "the account has nothing left"),
    "no pictures": (Refuse(500, "image" + MMPROJ), "a vision-language model with caption_openai's"),
}
"""Failures of every request: the status, the error or the server's fault, and what is said."""


@pytest.fixture
def endpoint() -> Iterator[JudgeServer]:
    """An endpoint that captions."""
    with JudgeServer(Behaviour(), reply=lambda prompt: f"A caption for: {prompt}") as server:
        yield server


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two clips."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"{n}.mp4", 4 + n) for n in range(2)]


@pytest.fixture
def make(
    endpoint: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CaptionOpenai]]:
    """Makes captioners that wait little and end with the test."""
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", "nonsense: settings of judges are not read")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "nonsense")
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_MODE", "nonsense")
    read = engine_config
    waits: dict[str, Any] = {
        "backoff_s": 0.01,
        "max_backoff_s": 0.02,
        "n_attempts": 3,
        "patience_s": 0.5,
        "outage_patience_s": 0.3,
        "store_patience_s": 0.2,
    }
    monkeypatch.setattr(
        caption_openai,
        "engine_config",
        lambda *given, **named: replace(read(*given, **named), **waits),
    )
    made: list[CaptionOpenai] = []

    def build(**arguments: Any) -> CaptionOpenai:
        given = {"model": "seer", "base_url": endpoint.url, "max_num_frames": 2, "device": "cpu"}
        # Long: an answer that comes is in time on a busy machine, too.
        made.append(CaptionOpenai(**{**given, "timeout_s": 30.0, **arguments}))
        return made[-1]

    yield build
    for model in made:
        model.clean()


def _said(model: CaptionOpenai, clips: list[Path], logged: list[str]) -> str:
    """Everything that is said while clips are captioned, in vain or not."""
    caption_all(model, clips)
    model.clean()
    text = "\n".join([*map(str, model.outcome.failures.values()), *logged])
    assert "judg" not in text.lower()
    return text


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_is_that_of_a_captioner(
    kind: str,
    make: Callable[..., CaptionOpenai],
    endpoint: JudgeServer,
    clips: list[Path],
    logged: list[str],
) -> None:
    """Statuses, dropped connections, answers that are none: each advice names its own arguments."""
    fault, words = FAILURES[kind]
    played = Refuse(fault, "told to") if isinstance(fault, int) else fault
    endpoint.script = lambda _: played
    timeout_s = 0.3 if fault == "hang" else 30.0
    assert words in _said(make(timeout_s=timeout_s), clips, logged)


def test_a_model_that_takes_no_videos_is_told_from_one_that_cannot_see(
    make: Callable[..., CaptionOpenai], endpoint: JudgeServer, clips: list[Path], logged: list[str]
) -> None:
    """Frames may do where a clip as a whole does not; one request per place is sent, no more."""
    endpoint.script = lambda _: Refuse(500, "video" + MMPROJ)
    said = _said(make(send="video", concurrency=1, max_num_frames=None), clips, logged)
    assert "the captioner 'seer' cannot be shown a video: " in said
    assert "use caption_openai's send=frames" in said
    assert endpoint.counts.n_requests == 1


def test_an_endpoint_that_goes_away_is_said_to_have_answered(
    make: Callable[..., CaptionOpenai], endpoint: JudgeServer, clips: list[Path], logged: list[str]
) -> None:
    """Since when nothing came is in the words."""
    model = make()
    caption_all(model, clips[:1])
    endpoint.behaviour = Behaviour(status=503)
    assert "the last one came at " in _said(model, clips, logged)


@pytest.mark.parametrize("behaviour", [{"refuses_parameters": True}, {"refuses_seed": True}])
def test_a_refused_parameter_is_that_of_a_captioner(
    behaviour: dict[str, Any],
    make: Callable[..., CaptionOpenai],
    endpoint: JudgeServer,
    clips: list[Path],
    logged: list[str],
) -> None:
    """What it means is said of captions."""
    endpoint.behaviour = Behaviour(**behaviour)
    assert "captions" in _said(make(), clips, logged)


def test_a_defect_of_ours_is_that_of_captioning(
    make: Callable[..., CaptionOpenai],
    clips: list[Path],
    logged: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exception that nobody caught ends it."""

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Sender, "send", fail)
    assert "captioning ended after an internal error" in _said(make(), clips, logged)


def test_captioning_goes_on_without_what_it_can_do_without(
    make: Callable[..., CaptionOpenai],
    clips: list[Path],
    logged: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is done a few times a second may fail."""
    failed = threading.Event()

    def fail(*_: object) -> None:
        failed.set()
        raise ZeroDivisionError

    monkeypatch.setattr(StoredReplies, "refresh", fail)
    model = make()
    assert failed.wait(20)
    assert "captioning goes on" in _said(model, clips, logged)


def test_a_full_disk_is_that_of_captioning(
    make: Callable[..., CaptionOpenai],
    clips: list[Path],
    logged: list[str],
    tmp_path: Path,
) -> None:
    """A caption that cannot be saved."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "caption_replies").write_text("no folder")
    assert "caption_replies" in _said(make(), clips, logged)


def test_captions_after_the_end_are_those_of_captioning(
    make: Callable[..., CaptionOpenai], clips: list[Path], logged: list[str]
) -> None:
    """A captioner that was ended, and one that another process was forked from."""
    model = make()
    model.clean()
    assert "captioning was ended" in _said(model, clips, logged)
    model = make()
    model._engine._pid = os.getpid() + 1
    assert "forked from one that was captioning" in _said(model, clips, logged)
    model._engine._pid = os.getpid()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"base_url": "localhost:8000"}, "caption_openai: base_url: expected URLs"),
        ({"base_url": "https://a.example/v1", "api_key_env": "NO_KEY"}, "NO_KEY is not set"),
        ({"base_url": "https://a.example/v1", "api_key_env": "ODD_KEY"}, "ODD_KEY: expected print"),
        ({"model": ""}, "caption_openai: expected --model_args model=NAME"),
    ],
)
def test_settings_are_those_of_a_captioner(
    arguments: dict[str, object],
    words: str,
    make: Callable[..., CaptionOpenai],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error names the argument, or the variable that it names."""
    monkeypatch.setenv("ODD_KEY", "sk-\u2010")
    with pytest.raises(SettingsError, match=words) as error:
        make(**arguments)
    assert "judg" not in str(error.value).lower()


def test_several_addresses_are_replicas(make: Callable[..., CaptionOpenai]) -> None:
    """They are separated by semicolons, as commas separate arguments."""
    model = make(base_url="http://127.0.0.1:1/v1; http://127.0.0.1:2/v1/")
    assert model._engine.config.urls == ("http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1")
    assert model._engine.config.sampling == {}
