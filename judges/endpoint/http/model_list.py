"""Which models an endpoint says that it serves."""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp
from yarl import URL

from lmms_eval_captions.judges.endpoint.answers.completion import NOT_READABLE, decode
from lmms_eval_captions.judges.endpoint.dialects.apis import DIALECTS
from lmms_eval_captions.judges.endpoint.http.no_reply import no_reply
from lmms_eval_captions.judges.endpoint.http.wire import open_session, read_answer
from lmms_eval_captions.judges.endpoint.redaction import answer_text
from lmms_eval_captions.judges.endpoint.roles import Api
from lmms_eval_captions.judges.endpoint.urls import proxy_of, redact_url
from lmms_eval_captions.judges.errors import JudgeUnavailableError

_TIMEOUT_S: Final = 10.0


async def listed_models(url: str, api_key: str | None, *, api: Api = "openai") -> tuple[str, ...]:
    """Names of the models that an endpoint lists, other names of theirs (llama.cpp) among them.

    Args:
        url: Base URL, e.g. ``http://127.0.0.1:8000/v1``.
        api_key: The endpoint's key or ``None``.
        api: Whose API it speaks.

    Raises:
        JudgeError: If it cannot be asked, or lists none.
    """
    goal = DIALECTS[api].models_url(url)
    async with open_session(DIALECTS[api].headers(api_key), timeout_s=_TIMEOUT_S) as session:
        try:
            async with session.get(URL(goal), proxy=proxy_of(url), allow_redirects=False) as answer:
                status, raw = answer.status, await read_answer(answer)
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            raise no_reply(error, goal, timeout_s=_TIMEOUT_S, api_key=api_key) from error
    if status != 200:
        raise JudgeUnavailableError(f"{redact_url(goal)} answered {status}")
    try:
        listed = decode(answer_text(raw, api_key, url, strictly=True))
        entries = listed["data"]  # type: ignore[index]  # else it raises
        names = [name for entry in entries for name in (entry["id"], *(entry.get("aliases") or ()))]
    except NOT_READABLE as error:
        raise JudgeUnavailableError(
            f"{redact_url(goal)} answered with no list of models"
        ) from error
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))
