"""What endpoints say that take no parameter of a kind, and what only looks so."""

from __future__ import annotations

import json

import pytest

from lmms_eval_captions.judges.endpoint.answers.refusals import refused_parameter
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.errors import JudgeRequestError, ParameterRefusedError

_GEMINI = [
    {
        "error": {
            "code": 400,
            "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
            "status": "INVALID_ARGUMENT",
        }
    }
]
_VLLM = (
    "[{'type': 'extra_forbidden', 'loc': ('body', 'seed'), "
    "'msg': 'Extra inputs are not permitted', 'input': 0}]"
)


def _failure(answer: object) -> Exception:
    raw = json.dumps(answer).encode()
    return OPENAI.failure(400, raw, "http://host/v1", headers={}, api_key=None)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_GEMINI, id="gemini"),
        pytest.param({"error": {"message": "Unsupported parameter: 'seed'."}}, id="openai"),
        pytest.param({"error": {"message": "Unknown parameter: 'seed'."}}, id="unknown"),
        pytest.param(
            {"error": {"message": "Unrecognized request argument supplied: seed"}}, id="azure"
        ),
        pytest.param({"error": {"message": "seed is not supported"}}, id="bare"),
        pytest.param({"error": {"message": "property 'seed' is unsupported"}}, id="property"),
        pytest.param({"message": "The parameter `seed` is not supported by this model"}, id="by"),
        pytest.param({"error": "This model does not support the seed parameter."}, id="support"),
        pytest.param(
            {"error": {"message": "gemini does not support parameters: ['seed'], for model=x"}},
            id="litellm",
        ),
        pytest.param(
            {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]},
            id="fastapi",
        ),
        pytest.param({"message": _VLLM}, id="vllm"),
        pytest.param({"error": {"message": "seed: Extra inputs are not permitted"}}, id="colon"),
        pytest.param(
            {"error": {"message": "create() got an unexpected keyword argument 'seed'"}},
            id="python",
        ),
        pytest.param(
            {"error": {"message": "Additional properties are not allowed ('seed' was unexpected)"}},
            id="json-schema",
        ),
    ],
)
def test_a_refused_seed_is_recognized(answer: object) -> None:
    """However a provider says that it does not take the parameter."""
    error = _failure(answer)
    assert isinstance(error, ParameterRefusedError)
    assert error.parameter == "seed"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("Prompt blocked: 'A farmer throws seed, unknown birds follow.'", id="birds"),
        pytest.param("content_filter: the text 'an unsupported seed pod falls' is bad", id="pod"),
        pytest.param('Invalid prompt: "the seed is not supported by the soil"', id="soil"),
        pytest.param("The content is not allowed: a seed was planted.", id="planted"),
        pytest.param("Too long: 'in an unknown field seed mixtures lie'", id="field"),
        pytest.param("This model does not support images: the caption says seed", id="images"),
        pytest.param("The soil does not support seed growth", id="growth"),
        pytest.param("Invalid value for 'seed': must be a 32-bit integer", id="value"),
    ],
)
def test_an_error_that_quotes_the_word_seed_refuses_no_parameter(words: str) -> None:
    """A caption about seeds in a provider's words costs no run its seeds."""
    error = _failure({"error": {"message": words}})
    assert isinstance(error, JudgeRequestError)
    assert not isinstance(error, ParameterRefusedError)


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        pytest.param(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            id="openai",
        ),
        pytest.param(
            "max_tokens is not supported, use max_completion_tokens", "max_tokens", id="o"
        ),
        pytest.param(
            "'max_tokens' or 'max_completion_tokens' is too large: 256. This model's maximum "
            "context length is 4096 tokens and your request has 4000 input tokens (256 > 4096 - "
            "4000). None",
            None,
            id="vllm, too long",
        ),
    ],
)
def test_a_prompt_that_is_too_long_refuses_no_parameter(words: str, parameter: str | None) -> None:
    """One long caption does not change what all others are asked with, nor the signature."""
    assert refused_parameter(words) == parameter
