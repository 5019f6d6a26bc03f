"""Requests in the form that a model takes: sampling, pictures, and the name that answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pytest
from hypothesis import strategies as st

from chains import PARAMS, chain
from conftest import EngineFactory, ServerFactory
from judge_server import AS_ASKED, JudgeServer, Refuse, Say, scripted_reply
from lmms_eval_captions.judges.endpoint.adapt import (
    NEUTRAL,
    added_params,
    cannot_see,
    is_same_model,
    is_same_name,
    served_name,
)
from lmms_eval_captions.judges.endpoint.request import Asked, Chain, Message, Picture, Reply
from lmms_eval_captions.judges.endpoint.urls import is_self_hosted
from lmms_eval_captions.judges.errors import JudgeStoppedError
from lmms_eval_captions.judges.protocols.prompt import attach_pictures

OPENAI = {"model", "messages", "temperature", "max_tokens", "seed", "logprobs", "top_logprobs"}


def _asks(text: str, *, model: str = "judge", **params: object) -> Chain[Asked[str]]:
    return chain(text, model=model, params={**PARAMS, **params})


def _strict(payload: Mapping[str, Any]) -> str | None:
    extra = sorted(set(payload) - OPENAI)
    if not extra:
        return None
    found = [{"type": "extra_forbidden", "loc": ["body", name]} for name in extra]
    return f"{found}: Extra inputs are not permitted"


def _by_name(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    words = f"Unsupported parameter: '{name}'. Supported: 'temperature', 'max_tokens'."
    return lambda payload: words if name in payload else None


def _text_generation_inference(payload: Mapping[str, Any]) -> str | None:
    share = payload.get("top_p")
    return None if share is None or 0 < share < 1 else "`top_p` must be > 0.0 and < 1.0"


def _no_negative(payload: Mapping[str, Any]) -> str | None:
    return "top_k must be a non-negative integer" if payload.get("top_k", 0) < 0 else None


REFUSING: dict[str, tuple[int, Callable[[Mapping[str, Any]], str | None]]] = {
    "strict": (422, _strict),
    "strict with 400": (400, _strict),
    "transformers serve": (422, lambda p: _strict(p) and "Unexpected keys in the request"),
    "without a word": (400, lambda p: _strict(p) and ""),
    "a gateway": (404, lambda p: _strict(p) and "No endpoint can handle the parameters"),
    "text-generation-inference": (422, _text_generation_inference),
    "no negative number": (400, _no_negative),
    "a wrapper that fails": (
        500,
        lambda p: _strict(p) and "generate() got an unexpected keyword argument 'min_p'",
    ),
    **{f"refuses {name}": (400, _by_name(name)) for name in NEUTRAL},
}
"""Servers that do not take what is sent explicitly: status, and what they say of a request."""


def _script(
    server: JudgeServer,
    status: int,
    refuse: Callable[[Mapping[str, Any]], str | Literal[False] | None],
) -> None:
    def script(payload: dict[str, Any]) -> Refuse | None:
        words = refuse(payload)
        return None if words is None or words is False else Refuse(status, words)

    server.script = script
    server.keep_bodies = True


def _explicit(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in NEUTRAL if name in body}


@pytest.mark.parametrize("takes", ["all, as vLLM does", "those it knows, as llama.cpp does"])
def test_a_server_that_takes_them_is_sent_all_with_every_request(
    takes: str, serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Nothing is sent twice, nothing is said, fresh samples have them, too."""
    server = serve()
    server.keep_bodies = True
    llama = takes.endswith("llama.cpp does")
    server.script = lambda p: Say("ok") if llama or "repetition_penalty" in p else Refuse(400, "")
    engine = make_engine(server.url, added_params=NEUTRAL)
    read = engine.submit([_asks(f"prompt {i}") for i in range(30)]).result(timeout=30)
    assert all(one.reason is None for one in read)
    assert server.counts.n_requests == 30
    assert all(_explicit(body) == dict(NEUTRAL) for body in server.bodies)
    assert not [line for line in logged if "sent without" in line]


@pytest.mark.parametrize("kind", REFUSING)
def test_a_server_that_refuses_them_is_asked_without(
    kind: str, serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """Whatever its words: all is answered, it is said once, and no signature speaks of it."""
    server = serve()
    _script(server, *REFUSING[kind])
    engine = make_engine(server.url, added_params=NEUTRAL, concurrency=4)
    asked = engine.submit([_asks(f"prompt {i}") for i in range(40)]).result(timeout=30)
    assert [one.value for one in asked] == [scripted_reply(f"prompt {i}") for i in range(40)]
    assert {one.usage.refused for one in asked} == {()}
    assert server.counts.n_requests <= 40 + 4
    assert all(set(body) <= OPENAI for body in server.bodies)
    said = [line for line in logged if "are sent without" in line]
    assert len(said) == 1
    assert said[0].startswith("INFO requests are sent without top_p, top_k, min_p, repetition_pen")
    assert not [line for line in logged if line.startswith("WARNING")]


def test_a_server_that_ends_the_connection_is_asked_without(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    server = serve()
    server.script = lambda p: "drop" if p.get("top_k", 0) < 0 else None
    engine = make_engine(server.url, added_params=NEUTRAL, concurrency=4)
    asked = engine.submit([_asks(f"prompt {i}") for i in range(40)]).result(timeout=30)
    assert [one.value for one in asked] == [scripted_reply(f"prompt {i}") for i in range(40)]
    assert engine.meter.retried.total() == 0
    assert server.counts.n_requests <= 40 + 8
    assert len([line for line in logged if "are sent without" in line]) == 1


def test_replies_are_stored_under_what_was_asked(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    server = serve()
    chains = [_asks(f"prompt {i}") for i in range(10)]
    make_engine(server.url).submit(chains[:5]).result(timeout=30)
    with_them = make_engine(server.url, added_params=NEUTRAL).submit(chains).result(timeout=30)
    without = make_engine(server.url).submit(chains).result(timeout=30)
    assert server.counts.n_requests == 10
    assert [one.cached for one in with_them] == [True] * 5 + [False] * 5
    assert all(one.cached for one in without)


def test_a_protocols_own_value_wins(serve: ServerFactory, make_engine: EngineFactory) -> None:
    server = serve()
    server.keep_bodies = True
    engine = make_engine(server.url, added_params=NEUTRAL)
    engine.submit([_asks("a", top_p=0.9, min_p=0.1)]).result(timeout=30)
    assert _explicit(server.bodies[0]) == {**NEUTRAL, "top_p": 0.9, "min_p": 0.1}


def test_a_seed_that_is_refused_leaves_them_in(
    serve: ServerFactory, make_engine: EngineFactory, logged: list[str]
) -> None:
    """A server that refuses something else is sent them all the same."""
    server = serve(refuses_seed=True)
    server.keep_bodies = True
    engine = make_engine(server.url, added_params=NEUTRAL, concurrency=1)
    asked = engine.submit([_asks(f"prompt {i}") for i in range(5)]).result(timeout=30)
    assert {one.usage.refused for one in asked} == {("seed",)}
    assert all(_explicit(body) == dict(NEUTRAL) for body in server.bodies)
    assert not [line for line in logged if "is asked without top_p" in line]


@pytest.mark.parametrize(
    ("url", "is_own"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://192.168.0.5:11434/v1", True),
        ("http://172.20.1.1/v1", True),
        ("http://100.101.102.103/v1", True),
        ("http://[fd12::7]:80/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://gpu-node-3/v1", True),
        ("http://desk.local:1234/v1", True),
        ("http://host.docker.internal:8000/v1", True),
        ("http://localhost.:8000/v1", True),
        ("http://vllm.:8000/v1", True),
        ("http://[::ffff:10.0.0.7]:8000/v1", True),
        ("http://[::ffff:8.8.8.8]/v1", False),
        ("https://api.openai.com/v1", False),
        ("https://openrouter.ai/api/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://[2606:4700::1111]/v1", False),
        ("http://172.32.1.1/v1", False),
    ],
)
def test_a_server_of_ones_own_is_known_by_its_address(url: str, is_own: bool) -> None:
    assert is_self_hosted(url) is is_own
    assert bool(added_params([url])) is is_own
    assert bool(added_params([url, "http://127.0.0.1/v1"])) is is_own


BLIND = (
    # llama.cpp, a text model; and before it knew ``video_url``
    (
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the "
        "mmproj",
    ),
    (
        500,
        "video input is not supported - hint: if this is unexpected, you may need to provide the "
        "mmproj",
    ),
    (500, 'Failed to parse messages: Unsupported content part type: "image_url"; messages = ['),
    (400, "unsupported content[].type"),
    # vLLM
    (400, "SmolLM2-135M-Instruct is not a multimodal model"),
    (400, "At most 0 image(s) may be provided in one prompt."),
    (400, "At most 0 video(s) may be provided in one request. (parameter=video)"),
    # Ollama, its cloud
    (500, "this model is missing data required for image input"),
    (400, "this model does not support image input (ref: b8bd630e-4a39-4b57)"),
    # OpenAI
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "Invalid value: 'video_url'. Supported values are: 'text', 'image_url' and 'refusal'."),
    # OpenRouter
    (404, "No endpoints found that support image input"),
    # LM Studio, DeepSeek, Groq, MLX, Gemini, and words that others use
    (400, "Model does not support images. Please use a model that does."),
    (
        422,
        "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`",
    ),
    (400, "messages[1].content must be a string"),
    (400, "Only 'text' content type is supported."),
    (400, "Image input modality is not enabled for models/gemma-3-1b-it"),
    (400, "This model doesn't support image inputs."),
    (400, "The model glm-5.2 does not support vision"),
    (400, "glm-5.2 is a text-only model"),
    (400, 'messages[3]: content: part type "image_url" is not supported; only text is'),
    (400, "Images are not supported by this model"),
    (415, "this model supports only text"),
    (501, "Multimodal input is not supported"),
    (400, "Image content blocks are not supported by this model"),
    (400, "gpt-3.5-turbo does not have vision capabilities"),
    (400, "This model is not capable of processing images"),
    (400, "Image input is not available for this model"),
    # SGLang, a text model
    (500, "'NoneType' object has no attribute 'process_mm_data_async'"),
)
ABOUT_ONE_PICTURE = (
    (400, "You uploaded an unsupported image. Please make sure your image has of one the following "
     "formats: ['png', 'jpeg', 'gif', 'webp']."),
    (400, "The image data you provided does not represent a valid image. Please check your input."),
    (400, "cannot identify image file <_io.BytesIO object at 0x7f3a>"),
    (400, "At most 1 image(s) may be provided in one prompt."),
    (400, "The image format is not supported"),
    (400, "The image type image/avif is not supported; use image/jpeg"),
    (400, "This model does not support images larger than 20 MB"),
    (400, "Animated images are not supported"),
    (400, "Could not process image"),
    (400, "image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes"),
    (400, "Failed to load image: broken data stream"),
    (400, "The video codec is not supported"),
    (413, "image input is too large"),
    (400, "This model's maximum context length is 4096 tokens; the image takes 5000"),
    (400, "The image was rejected by our safety system"),
    (400, "The image content is not allowed by our content policy"),
    (400, "Image input is not allowed: it shows a person"),
    (400, "The video content is not available in your region"),
    (400, "Your image content is not supported (format webp)"),
    (400, "Image input is not supported in this format: image/avif; use png"),
    (400, "The image content is not available at the given URL"),
    (400, "Invalid value: image_url.url must be a data URL"),
    (400, "messages[1].content must be a string or a list of parts"),
    (400, "The request does not have images"),
    (400, "not supported: 4000 tokens are too many for text-only models"),
)  # fmt: skip

PICTURE = Picture(b"abc", "image/png")


def _say(text: str, *, sees: bool) -> Chain[Asked[str]]:
    words: list[Message] = [{"role": "user", "content": text}]
    return chain(text, messages=attach_pictures(words, PICTURE) if sees else words)


@pytest.mark.parametrize(("status", "words"), BLIND[::6])
def test_a_model_that_cannot_see_ends_what_shows_it_pictures_at_once(
    status: int, words: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """Whatever the status: hardly any is sent with pictures, all those in words are answered."""
    server = serve(latency_s=0.005)
    shown: list[dict[str, Any]] = []

    def script(payload: dict[str, Any]) -> Refuse | None:
        if isinstance(payload["messages"][0]["content"], str):
            return None
        shown.append(payload)
        return Refuse(status, words)

    server.script = script
    engine = make_engine(server.url, concurrency=2, outage_patience_s=300.0, max_backoff_s=30.0)
    started_s = time.monotonic()
    chains = [_say(f"prompt {i}", sees=i % 2 == 0) for i in range(40)]
    asked = engine.submit(chains).result(timeout=30)
    later = engine.submit([_say("later", sees=False), _say("later", sees=True)]).result(timeout=30)
    assert time.monotonic() - started_s < 10
    for one in (*asked[1::2], later[0]):
        assert one.reason is None
    for one in (*asked[::2], later[1]):
        assert one.value is None
        assert words in str(one.reason)
        assert "the judge 'judge' cannot be shown pictures" in str(one.reason)
        assert "msvd_eval_ref_free, msvd_eval_combined and" in str(one.reason)
    assert len(shown) <= 2
    assert engine.meter.retried.total() == 0


@pytest.mark.parametrize(("status", "words"), ABOUT_ONE_PICTURE[::8])
def test_a_picture_that_cannot_be_used_is_its_own_questions_matter(
    status: int, words: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """The others are shown theirs, and answered."""
    server = serve()

    def script(payload: dict[str, Any]) -> Refuse | None:
        text = payload["messages"][0]["content"][0]["text"]
        return Refuse(status, words) if text == "prompt 3" else None

    server.script = script
    engine = make_engine(server.url, concurrency=2)
    asked = engine.submit([_say(f"prompt {i}", sees=True) for i in range(20)]).result(timeout=30)
    assert [i for i, one in enumerate(asked) if one.reason is not None] == [3]
    assert words[:40] in str(asked[3].reason)
    assert server.counts.n_requests == 20


def test_a_rate_limit_on_pictures_is_waited_out(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A 429 is about the next minute, whatever its words."""
    server = serve()
    failures = iter([Refuse(429, "At the moment we cannot accept images, try again later")])
    server.script = lambda _: next(failures, None)
    [one] = make_engine(server.url).submit([_say("a", sees=True)]).result(timeout=30)
    assert one.reason is None


@pytest.mark.parametrize(("status", "words"), BLIND[::10])
def test_words_about_sight_are_nothing_special_where_nothing_is_shown(
    status: int, words: str, serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A request in words alone fails as its status says: an error may quote a caption."""
    if status == 404:
        pytest.skip("a 404 stops judging, whatever its words")
    server = serve()
    failures = iter([Refuse(status, words)])
    server.script = lambda _: next(failures, None)
    one = make_engine(server.url, concurrency=1).submit([_say("a", sees=False)]).result(timeout=30)
    assert "cannot be shown" not in str(one[0].reason)
    assert one[0].reason is None


@pytest.mark.parametrize(("_status", "words"), BLIND)
def test_words_of_a_model_that_cannot_see_are_known(_status: int, words: str) -> None:
    """In any case, and within JSON, where quotation marks stand behind backslashes."""
    assert cannot_see(words)
    assert cannot_see(words.upper())
    assert cannot_see(words.replace('"', '\\"').replace("'", "\\'"))


@pytest.mark.parametrize(("_status", "words"), ABOUT_ONE_PICTURE)
def test_words_about_one_picture_are_not_taken_for_them(_status: int, words: str) -> None:
    """Formats, sizes, damage, limits and content."""
    assert not cannot_see(words)


URLS = ("http://127.0.0.1:8000/v1", "http://me:S3CRET@127.0.0.1:8001/v1")

SAME = [
    ("gpt-4o", "GPT-4o"),
    ("X", "meta-llama/X"),
    ("gemini-2.0-flash", "models/gemini-2.0-flash"),
    ("llama-v3p1-8b", "accounts/fireworks/models/llama-v3p1-8b"),
    ("google/gemini-2.0-flash", "models/google/gemini-2.0-flash"),
]
"""Names that are equal."""
DATED = [
    ("gpt-4o", "gpt-4o-2024-08-06"),
    ("openai/gpt-4o", "gpt-4o-2024-08-06"),
    ("gpt-4", "gpt-4-0613"),
    ("gpt-3.5-turbo", "gpt-3.5-turbo-0125"),
    ("claude-3-5-sonnet", "claude-3-5-sonnet-20240620"),
    ("claude-3-5-sonnet", "claude-3-5-sonnet@20240620"),
    ("claude-3-5-sonnet-20240620", "claude-3-5-sonnet@20240620"),
    ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20240620"),
    ("gemini-2.5-flash-preview", "gemini-2.5-flash-preview-05-20"),
    ("gemini-2.0-flash", "models/gemini-2.0-flash-001"),
    ("chatgpt-4o", "chatgpt-4o-latest"),
    ("llama3.1:latest", "llama3.1"),
    ("HuggingFaceTB/SmolLM2-135M-Instruct@main", "HuggingFaceTB/SmolLM2-135M-Instruct"),
    ("./SmolLM2-135M-Instruct@main", "./SmolLM2-135M-Instruct"),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
    ("gpt-4", "gpt-4-1106-preview"),
    ("mistral-large-latest", "mistral-large-2411"),
    ("deepseek/deepseek-chat-v3-0324:free", "deepseek/deepseek-chat-v3-0324"),
    ("gemini-2.5-pro", "gemini-2.5-pro-preview-05-06"),
]
"""Names of one family."""
OTHER = [
    ("gpt-4o-2024-08-06", "SmolLM2-135M-Instruct.Q8_0.gguf"),
    ("gpt-4o", "gpt-4o-mini"),
    ("gpt-4o", "gpt-4o-mini-2024-07-18"),
    ("meta-llama/X", "unsloth/X"),
    ("Llama-3.1-8B-Instruct", "Llama-3.1-70B-Instruct"),
    ("Llama-3.1-8B-Instruct", "Llama-3.1-8B-Instruct-GGUF"),
    ("llama-3.1", "llama-3"),
    ("judge", "judge-2024-08-06|unscored:0/9"),
    ("judge", "a line\nof/judge"),
    ("judge", "judge:free|unscored:0"),
    ("judge", "/"),
    ("judge", "-2024-08-06"),
]
"""Names of different models."""
names = st.text("abAB09-/@:.|, \nß", max_size=12)


@pytest.mark.parametrize(("asked", "served"), [*SAME, *DATED])
def test_names_of_the_same_model_are_the_same_both_ways(asked: str, served: str) -> None:
    """Case, organisation on one side, version and release tag do not make another model."""
    assert is_same_model(asked, served)
    assert is_same_model(served, asked)
    assert is_same_name(asked, served) == ((asked, served) in SAME)


@pytest.mark.parametrize(("asked", "served"), OTHER)
def test_names_of_different_models_are_different_both_ways(asked: str, served: str) -> None:
    """Another size or organisation is another model; odd names are never the same."""
    assert not is_same_model(asked, served)
    assert not is_same_model(served, asked)


@pytest.mark.parametrize(
    ("served", "alias", "kept"),
    [
        pytest.param(None, None, None, id="no name"),
        pytest.param("org/Judge", None, None, id="the name asked for"),
        pytest.param("judge-0613", None, "judge-0613", id="a version of it"),
        pytest.param("tiny.gguf", "tiny.gguf", None, id="the alias"),
        pytest.param("tiny.gguf-001", "tiny.gguf", "tiny.gguf-001", id="a version of the alias"),
        pytest.param("judge", "tiny.gguf", "judge", id="its own name in spite of an alias"),
    ],
)
def test_a_name_is_kept_where_it_says_more_than_what_was_expected(
    served: str | None, alias: str | None, kept: str | None
) -> None:
    """The rest of the reply stays as it is."""
    assert served_name(served, "judge", alias, URLS, "judge") == kept


def test_another_model_is_named_with_what_to_do() -> None:
    """Both names, where they are from, and the settings of whoever asks."""
    with pytest.raises(JudgeStoppedError) as judge:
        served_name("tiny.gguf", "gpt-4o", None, URLS, "judge")
    assert str(judge.value) == (
        "the judge at http://127.0.0.1:8000/v1, http://127.0.0.1:8001/v1 answered as "
        "'tiny.gguf', but 'gpt-4o' was asked for: judging stopped. If 'tiny.gguf' is the judge "
        "that you want, set LMMS_CAPTIONS_JUDGE to that name; if it is only another name of "
        "'gpt-4o', set LMMS_CAPTIONS_JUDGE_ALIAS to it: the reply is kept and counts then; "
        "otherwise start 'gpt-4o' there"
    )
    with pytest.raises(JudgeStoppedError) as captioner:
        served_name("x" * 9999, "seer", "eye", URLS[:1], "captioner")
    words = str(captioner.value)
    assert "judg" not in words.lower()
    assert "(or 'eye', its alias)" in words
    assert "set caption_openai's model= to that name" in words
    assert "set caption_openai's alias= to it" in words
    assert len(words) < 1500


@pytest.mark.parametrize("name", [None, "judge-0613", "Üñ"])
def test_a_stored_reply_keeps_the_name_it_came_under(name: str | None) -> None:
    """Only where there is one to keep: other lines are what they were before."""
    line = Reply("yes", "stop", 1, 2, model=name).to_json()
    assert Reply.from_json(line).model == name
    assert (b"model" in line) == (name is not None)


def test_another_model_stops_its_own_questions_alone(
    serve: ServerFactory, make_engine: EngineFactory
) -> None:
    """A second judge at the same endpoint goes on."""
    server = serve()
    server.script = lambda payload: Say(
        "yes", model="tiny" if payload["model"] == "big" else AS_ASKED
    )
    engine = make_engine(server.url)
    [big, small] = engine.submit([chain("a", model="big"), chain("a", model="small")]).result()
    assert (big.value, small.value) == (None, "yes")
    [again] = engine.submit([chain("b", model="small")]).result()
    assert again.value == "yes"
    assert again.usage.served == ()
