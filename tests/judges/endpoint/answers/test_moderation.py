"""A 403 about what one request says costs that request; one about who asks stops judging."""

from __future__ import annotations

import json

import pytest

from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.errors import JudgeRequestError, JudgeStoppedError

_XAI_CODE = "The caller does not have permission to execute the specified operation"
_TEAM = "Team: 0a1b, API key ID: 2c3d, Model: grok-4-0709, Failed check: SAFETY_CHECK_TYPE_BIO"


def _error(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


def _failure(answer: object, status: int = 403) -> Exception:
    raw = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    return OPENAI.failure(status, raw, "http://host/v1", headers={}, api_key=None)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            {"code": _XAI_CODE, "error": f"Content violates usage guidelines. {_TEAM}"}, id="xai"
        ),
        pytest.param(
            _error(
                "openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "
                '"violence". No credits were charged.',
                code=403,
                metadata={"reasons": ["violence"], "flagged_input": "a man is robbed"},
            ),
            id="openrouter",
        ),
        pytest.param(_error("No", metadata={"flagged_input": "..."}), id="flagged-input"),
        pytest.param(
            _error("Blocked by content policy", code="content_policy_violation"), id="code"
        ),
        pytest.param(_error("The prompt was rejected by our moderation."), id="moderation"),
        pytest.param(_error("Request blocked: violates our content policy."), id="policy"),
        pytest.param(_error("Your request was rejected by the safety system."), id="safety"),
        pytest.param(_error("Access denied", type="content_filter"), id="type"),
        pytest.param("The input was flagged as inappropriate.", id="plain"),
        pytest.param({"detail": "x", "error": "Guardrail intervened: hate"}, id="guardrail"),
        pytest.param(
            _error(
                "Your input was flagged as harmful. Repeated violations may lead to your account "
                "being suspended."
            ),
            id="warning",
        ),
        pytest.param(
            _error("The prompt was flagged. Your account was not charged."), id="no charge"
        ),
        pytest.param(_error("Potentially unsafe content detected"), id="unsafe content"),
    ],
)
def test_a_flagged_request_costs_itself_alone(answer: object) -> None:
    """The words say that the input was flagged: other requests may go through."""
    error = _failure(answer)
    assert type(error) is JudgeRequestError
    assert "answered 403" in str(error)
    assert "may not use" not in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"code": _XAI_CODE, "error": "The API key is blocked."}, id="xai"),
        pytest.param(_error("Project `p` does not have access to model `gpt-4o`"), id="project"),
        pytest.param(_error("Country, region, or territory not supported"), id="country"),
        pytest.param(
            _error("Your API key does not have permission", type="permission_error"), id="p"
        ),
        pytest.param(_error("Request not allowed", type="forbidden"), id="anthropic"),
        pytest.param(
            _error("Your account was flagged for violating our usage policies. Contact support."),
            id="account",
        ),
        pytest.param(
            _error("This organization has been disabled: content policy violations"),
            id="organization",
        ),
        pytest.param(_error("You must accept the content license to use this model"), id="license"),
        pytest.param(
            _error("not allowed", request="the prompt was flagged", quoted=["moderation"]),
            id="quoted",
        ),
        pytest.param("<html>403 Forbidden: text/html response content</html>", id="page"),
        pytest.param("", id="empty"),
        pytest.param(
            _error("Your API key does not have access to content moderation"), id="endpoint"
        ),
        pytest.param(_error("Your key's guardrails do not allow this model"), id="guardrails"),
        pytest.param(
            _error("You have violated our usage policies; requests are disabled"), id="you"
        ),
        pytest.param(
            _error(
                "Your account has repeatedly violated our content and usage policies and has now "
                "been suspended"
            ),
            id="account, suspended",
        ),
        pytest.param(
            _error("This model requires moderation to be enabled on your account"), id="disabled"
        ),
    ],
)
def test_a_key_without_permission_stops_judging(answer: object) -> None:
    """Words about the key, the account or the model concern every request."""
    error = _failure(answer)
    assert type(error) is JudgeStoppedError
    assert "the key may not use this model or endpoint" in str(error)
