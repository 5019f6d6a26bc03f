"""``caption_openai`` against a server on loopback."""

from __future__ import annotations

import base64
import json
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import cv2
import numpy as np
import pytest

from caption_requests import caption_all, results_of
from hostile_clips import level, write_clip
from judge_server import Behaviour, JudgeServer, Refuse, Say
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.caption_openai import CaptionOpenai, CaptionOpenaiChat
from lmms_eval_captions.model_wrappers.chat_api import media_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lmms_eval_captions.model_wrappers.captioner import Captioner

PROMPTS = {"a": "Describe.", "b": "Describe the camera."}


def reply(prompt: str) -> str:
    return f" A caption for: {prompt}\n"


@pytest.fixture
def endpoint() -> Iterator[JudgeServer]:
    """An endpoint that keeps what it is asked."""
    with JudgeServer(Behaviour(latency_s=0.01), reply=reply) as server:
        server.keep_bodies = True
        yield server


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three clips."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"{n}.mp4", 12 + n) for n in range(3)]


@pytest.fixture
def make(
    endpoint: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CaptionOpenai]]:
    """Makes captioners that end with the test."""
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:1/v1")
    made: list[CaptionOpenai] = []

    def build(cls: type[CaptionOpenai] = CaptionOpenai, **arguments: Any) -> CaptionOpenai:
        given: dict[str, Any] = {"model": "seer", "base_url": endpoint.url, "device": "cpu"}
        if arguments.get("send") != "video":
            given["max_num_frames"] = 3
        made.append(cls(**{**given, **arguments}))
        return made[-1]

    yield build
    for model in made:
        model.clean()


def _images(body: dict[str, Any]) -> list[np.ndarray]:
    urls = [part["image_url"]["url"] for part in _parts(body) if part["type"] == "image_url"]
    raws = [base64.b64decode(url.removeprefix("data:image/jpeg;base64,")) for url in urls]
    pictures = [cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR_RGB) for raw in raws]
    return [picture for picture in pictures if picture is not None]


def _parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = body["messages"][0]["content"]
    return parts


@pytest.mark.parametrize("cls", [CaptionOpenai, CaptionOpenaiChat])
def test_frames_are_sent_as_images(
    make: Callable[..., Captioner], endpoint: JudgeServer, clips: list[Path], cls: type
) -> None:
    """The endpoint sees the frames in order, then the prompt, and the task's settings."""
    model = make(cls)
    results = results_of(model, clips[:1], PROMPTS)
    assert [result.text for result in results] == [reply(prompt) for prompt in PROMPTS.values()]
    assert all(result.token_counts.output_tokens > 0 for result in results)
    body = next(body for body in endpoint.bodies if _parts(body)[-1]["text"] == "Describe.")
    images = _images(body)
    assert [image.shape for image in images] == [(48, 64, 3)] * 3
    levels = [image[20:].mean() for image in images]
    assert levels == pytest.approx([level(0), level(6), level(11)], abs=6)
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("seer", 0.0, 16)


def test_a_clip_is_sent_whole(
    make: Callable[..., Captioner], endpoint: JudgeServer, clips: list[Path]
) -> None:
    """``send=video`` sends the file as it is."""
    caption_all(make(send="video"), clips[:1])
    url = _parts(endpoint.bodies[0])[0]["video_url"]["url"]
    head, _, data = url.partition(",")
    assert head == "data:video/mp4;base64"
    assert base64.b64decode(data) == clips[0].read_bytes()


def test_no_caption_is_paid_for_twice(
    make: Callable[..., CaptionOpenai], endpoint: JudgeServer, clips: list[Path]
) -> None:
    """A second run sends nothing; one more clip sends one more request."""
    model = make()
    first = caption_all(model, clips[:2], PROMPTS)
    model.clean()
    assert endpoint.counts.n_requests == 4
    again = make()
    assert caption_all(again, clips[:2], PROMPTS) == first
    assert endpoint.counts.n_requests == 4
    caption_all(again, clips, PROMPTS)
    assert endpoint.counts.n_requests == 6


def test_faults_that_pass_cost_nothing_but_time(
    make: Callable[..., Captioner], endpoint: JudgeServer, clips: list[Path]
) -> None:
    """Dropped connections and 500s are asked again; every clip is captioned."""
    endpoint.behaviour = Behaviour(faults=("drop", "500"), fault_rate=0.5, max_faults=2)
    assert all(caption_all(make(), clips, PROMPTS))
    assert endpoint.counts.n_faults > 0


def test_a_refusal_is_named_for_every_clip(
    make: Callable[..., Captioner], endpoint: JudgeServer, clips: list[Path]
) -> None:
    """A wrong key leaves captions empty, with the server's own words, and does not hang."""
    endpoint.behaviour = Behaviour(status=401, message="no such key")
    model = make()
    assert caption_all(model, clips) == ["", "", ""]
    assert all("no such key" in reason for reason in model.outcome.failures.values())
    assert endpoint.counts.n_requests <= 3


def test_another_model_writes_no_caption_unless_an_alias_says_so(
    make: Callable[..., Captioner], endpoint: JudgeServer, clips: list[Path]
) -> None:
    """The reason names both and its own arguments; the reply is kept for a run with an alias."""
    endpoint.script = lambda _: Say("A caption.", model="eye.gguf")
    model = make()
    assert caption_all(model, clips[:2]) == ["", ""]
    for reason in model.outcome.failures.values():
        assert f"the captioner at {endpoint.url} answered as 'eye.gguf', but 'seer'" in reason
        assert "set caption_openai's alias= to it" in reason
        assert "judg" not in reason.lower()
    assert endpoint.counts.n_requests <= 2
    assert caption_all(make(alias="eye.gguf"), clips[:2]) == ["A caption."] * 2
    assert endpoint.counts.n_requests == 2
    endpoint.script = None
    assert caption_all(make(), clips[:2]) == [reply("Describe the video.")] * 2


def test_a_broken_clip_is_not_sent(
    make: Callable[..., Captioner], endpoint: JudgeServer, clips: list[Path], tmp_path: Path
) -> None:
    """Nothing is paid for a clip that cannot be read, even where the file would be sent whole."""
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    captions = caption_all(make(send="video"), [broken, clips[0]])
    assert [bool(caption) for caption in captions] == [False, True]
    assert endpoint.counts.n_requests == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": ""}, "expected --model_args model"),
        ({"send": "sound"}, "send='sound'"),
        ({"concurrency": 0}, "concurrency"),
        ({"detail": "sharp"}, "detail='sharp' is not one of auto, low, high"),
        ({"frame_pixels": 0}, "frame_pixels"),
        ({"extra_body": "[1]"}, "extra_body: expected a JSON object"),
        ({"extra_body": {"messages": []}}, "messages cannot be set there"),
        ({"extra_body": {"seed": "one"}}, "seed: expected a number"),
        ({"reuse": False}, "always kept: leave reuse out, and set LMMS_CAPTIONS_CACHE"),
        ({"send": "video", "max_num_frames": 8}, "max_num_frames would change nothing"),
        ({"send": "video", "fps": 2}, "fps would change nothing"),
        ({"send": "video", "frame_pixels": 9, "detail": "low"}, "frame_pixels, detail would"),
        ({"max_cost": 0, "model": "gpt-4o"}, "max_cost: expected US dollars above 0"),
        ({"max_cost": 5}, "max_cost= is set and the price of 'seer' is not known"),
        ({"max_cost": 5, "model": "gpt-4o", "send": "video"}, "max_cost: what a video costs"),
        ({"base_url": "https://example.invalid/v1", "api_key_env": "NO_KEY"}, "NO_KEY is not set"),
    ],
)
def test_wrong_arguments_are_named(
    make: Callable[..., Captioner], arguments: dict[str, object], message: str
) -> None:
    """Each wrong argument is answered before anything is sent."""
    with pytest.raises(SettingsError, match=message):
        make(**arguments)


def test_a_user_in_the_url_takes_the_place_of_the_key_and_not_both(
    make: Callable[..., Captioner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP sends one authorization, so that both are refused before anything is sent."""
    url = "https://me:S3CRET@example.invalid/v1"
    make(base_url=url, api_key_env="NO_KEY")
    monkeypatch.setenv("SOME_KEY", "k")
    with pytest.raises(SettingsError, match="only one of them can be sent") as error:
        make(base_url=url, api_key_env="SOME_KEY")
    assert "S3CRET" not in str(error.value)


@pytest.mark.parametrize("ending", [".mp4", ".webm", ".ts", ".mts", ".3gp", ".ogg", ".bin", ""])
def test_a_clip_is_never_sent_as_sound_or_text(ending: str) -> None:
    """Whatever its ending means elsewhere on this machine."""
    assert media_type(Path(f"clip{ending}")).startswith("video/")


def _refuse_above(n_bytes: int, status: int = 413, words: str = "too large") -> Callable[..., Any]:
    def script(body: dict[str, Any]) -> Refuse | None:
        size = len(json.dumps(body, separators=(",", ":")))
        return Refuse(status, words) if size > n_bytes else None

    return script


@pytest.fixture
def large_clips(tmp_path: Path) -> list[Path]:
    """Three clips whose frames can be made smaller."""
    return [write_clip(tmp_path / f"large{n}.mp4", 4 + n, size=(640, 480)) for n in range(3)]


@pytest.mark.parametrize(
    ("status", "words"),
    [(413, "Request Entity Too Large"), (400, "Request payload size exceeds the limit: 9 bytes.")],
)
def test_smaller_frames_answer_a_request_that_is_too_large(
    make: Callable[..., Captioner],
    endpoint: JudgeServer,
    large_clips: list[Path],
    logged: list[str],
    status: int,
    words: str,
) -> None:
    """Frames are halved until the endpoint takes them, said once; a rerun sends nothing."""
    assert all(caption_all(make(), large_clips[:1]))
    full = len(json.dumps(endpoint.bodies[0], separators=(",", ":")))
    endpoint.bodies.clear()
    endpoint.script = _refuse_above(full // 2, status, words)
    frame_pixels = 640 * 480
    captions = caption_all(make(frame_pixels=frame_pixels), large_clips[1:], PROMPTS)
    assert all(captions)
    sizes = {image.shape[0] * image.shape[1] for body in endpoint.bodies for image in _images(body)}
    assert max(sizes) < frame_pixels
    assert {len(_images(body)) for body in endpoint.bodies} == {3}
    assert len([line for line in logged if "refuses requests this large" in line]) == 1
    n_requests = endpoint.counts.n_requests
    assert caption_all(make(frame_pixels=frame_pixels), large_clips[1:], PROMPTS) == captions
    assert endpoint.counts.n_requests == n_requests


def test_a_request_that_cannot_be_smaller_is_named(
    make: Callable[..., Captioner], endpoint: JudgeServer, large_clips: list[Path]
) -> None:
    endpoint.script = _refuse_above(100)
    model = make(frame_pixels=640 * 480)
    assert caption_all(model, large_clips[:1]) == [""]
    assert "too large" in str(model.outcome.failures.values())
    n_requests = endpoint.counts.n_requests
    assert n_requests <= 8
    model = make(send="video")
    assert caption_all(model, large_clips[:1]) == [""]
    assert endpoint.counts.n_requests == n_requests + 1


def test_captioning_stays_within_its_limit_of_cost(
    make: Callable[..., Captioner],
    endpoint: JudgeServer,
    clips: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("models: {seer: {input: 1000, output: 0, image_tokens: 1}}\n")
    monkeypatch.setenv("LMMS_CAPTIONS_PRICES", str(prices))
    endpoint.script = lambda _: Say("A caption.")
    model = make(max_cost=1.0, concurrency=1)
    prompts = {f"t{n}": f"Prompt {n}." for n in range(4)}
    captions = caption_all(model, clips, prompts)
    n_sent = endpoint.counts.n_requests
    assert 0 < n_sent < len(captions)
    assert sum(map(bool, captions)) == n_sent
    reason = next(iter(model.outcome.failures.values()))
    assert "caption_openai's max_cost=: $" in reason
    assert "captioning stopped" in reason
    assert "LMMS_CAPTIONS_MAX_COST" not in reason
    assert all(caption_all(make(max_cost=100), clips, prompts))
    assert endpoint.counts.n_requests == len(captions)


def test_what_is_under_way_when_a_run_is_ended_is_paid_once(
    make: Callable[..., CaptionOpenai],
    endpoint: JudgeServer,
    clips: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    logged: list[str],
) -> None:
    """Ctrl-C waits for replies in flight, sends nothing more, and a rerun asks for the others."""
    endpoint.behaviour = Behaviour(latency_s=1.0)
    model = make(concurrency=2)
    asked: list[object] = []
    write = model.caption

    def caption(batch: Any) -> Any:
        if len(asked) == 4:
            while endpoint.counts.n_in_flight < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt
        asked.append(batch)
        return write(batch)

    monkeypatch.setattr(model, "caption", caption)
    with pytest.raises(KeyboardInterrupt):
        caption_all(model, clips, PROMPTS)
    n_sent = endpoint.counts.n_requests
    assert n_sent == endpoint.counts.n_answered == 2
    assert [line for line in logged if "2 captions are under way and paid for" in line]
    endpoint.behaviour = Behaviour()
    assert all(caption_all(make(), clips, PROMPTS))
    assert endpoint.counts.n_requests == len(clips) * len(PROMPTS)


@pytest.mark.keeps_captions
def test_a_rerun_reads_no_clip(make: Callable[..., CaptionOpenai], clips: list[Path]) -> None:
    """Captions are known by their clips, too: what would be asked need not be made to know them."""
    first = caption_all(make(), clips, PROMPTS)
    model = make(concurrency=3, max_cost=None, timeout_s=9.0)
    model._read = _not_read  # type: ignore[method-assign,assignment] # must not be called
    assert caption_all(model, clips, PROMPTS) == first


@pytest.mark.keeps_captions
def test_a_caption_is_on_disk_before_the_task_has_it(
    make: Callable[..., CaptionOpenai], clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the callback that saves it runs late."""
    call = Future._invoke_callbacks  # type: ignore[attr-defined] # as the library's thread does

    def call_late(self: Future[Any]) -> None:
        time.sleep(0.1)
        call(self)

    with monkeypatch.context() as patch:
        patch.setattr(Future, "_invoke_callbacks", call_late)
        first = caption_all(make(), clips, PROMPTS)
        model = make()
    model._read = _not_read  # type: ignore[method-assign,assignment] # must not be called
    assert caption_all(model, clips, PROMPTS) == first


def _not_read(video: object) -> NoReturn:
    raise AssertionError(f"{video} was read")
