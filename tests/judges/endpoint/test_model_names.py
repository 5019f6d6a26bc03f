"""Which names are the same model, and what is said where they are not."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from chains import chain
from conftest import EngineFactory, ServerFactory
from judge_server import AS_ASKED, Say
from lmms_eval_captions.judges.endpoint.adapt import is_same_model, is_same_name, served_name
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import JudgeStoppedError

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
