"""Judges that cannot see what they are shown, and those that cannot use one picture."""

from __future__ import annotations

import time
from typing import Any

import pytest

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import Refuse
from lmms_eval_captions.judges.endpoint.adapt import cannot_see
from lmms_eval_captions.judges.endpoint.request import Asked, Chain, Message, Picture
from lmms_eval_captions.judges.protocols.prompt import attach_pictures

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
"""What servers answer whose model takes no pictures, or no videos."""
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
"""What servers answer whose model sees, of a picture that it cannot use."""

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
