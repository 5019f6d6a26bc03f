"""What came of a batch: replies, and errors classified like HTTP answers."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Final

from lmms_eval_captions.judges.endpoint.answers.completion import NOT_READABLE
from lmms_eval_captions.judges.endpoint.answers.failures import FORBIDDEN, Source, failure
from lmms_eval_captions.judges.endpoint.client import MOST_BYTES
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.redaction import scrub
from lmms_eval_captions.judges.endpoint.request import Reply
from lmms_eval_captions.judges.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeStoppedError,
    JudgeUnavailableError,
)

Outcome = Reply | JudgeError

_ENDED_BEFORE: Final = {"batch_expired", "batch_cancelled"}
"""Codes of requests that were never begun."""
_WORDS: Final = 300


def read_results(files: Iterable[IO[bytes]], source: Source) -> dict[str, Outcome]:
    """What came of each request, by ``custom_id``.

    Args:
        files: The batch's output and error files, one JSON object per line.
        source: The endpoint.

    Returns:
        Requests that were never begun, and lines that cannot be read, are left out. Of several
        lines for one request a reply counts more than an error, and the first more than others.
    """
    outcomes: dict[str, Outcome] = {}
    for file in files:
        for line in _lines(file):
            # Quickly past what is no record: there may be millions of such lines.
            if not line.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
                continue
            try:
                record = json.loads(source.text(line, strictly=True))
                custom_id = record["custom_id"]
                outcome = _outcome(record, source)
                earlier = outcomes.get(custom_id)
                if isinstance(custom_id, str) and outcome and not isinstance(earlier, Reply):
                    outcomes[custom_id] = outcome
            except NOT_READABLE:
                continue
    return outcomes


def why_missing(state: Mapping[str, object], api_key: str | None) -> Callable[[], JudgeError]:
    """Makes the error of requests that a batch that ended has nothing of."""
    status, batch = state.get("status"), f"batch {state.get('id')}"
    if status == "failed":
        words = words_of(state, api_key)
        return lambda: JudgeStoppedError(f"{batch} was refused: {words}")
    if status == "cancelled":
        return lambda: JudgeStoppedError(
            f"{batch} was cancelled at the provider; replies that were there already are kept, run "
            "again to submit the rest"
        )
    text = f"{batch} ended ({status}) without a reply to this request"
    return lambda: JudgeUnavailableError(text, may_be_billed=False, kind="a batch without a reply")


def errors_of(state: Mapping[str, object]) -> list[tuple[str, str]]:
    """Code and words of each error of a batch that was refused as a whole."""
    errors = state.get("errors")
    data = errors.get("data") if isinstance(errors, dict) else None
    entries = data if isinstance(data, list) else []
    return [(str(e.get("code")), str(e.get("message"))) for e in entries if isinstance(e, dict)]


def words_of(state: Mapping[str, object], api_key: str | None) -> str:
    """The first errors of a batch in one line, without the key."""
    texts = [f"{code}: {message}" for code, message in errors_of(state)[:3]]
    return scrub("; ".join(texts), api_key)[:_WORDS] or "the provider gives no reason"


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Lines of a file but those that are larger than an answer may be."""
    while line := file.readline(MOST_BYTES + 1):
        if len(line) <= MOST_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MOST_BYTES)


def _outcome(record: Mapping[str, dict[str, object]], source: Source) -> Outcome | None:
    response = record.get("response")
    if response:
        return _of_response(response, source)
    refusal = record["error"]
    if refusal.get("code") in _ENDED_BEFORE:
        return None
    words = scrub(f"{refusal.get('code')}: {refusal.get('message')}", source.api_key)[:_WORDS]
    return JudgeRequestError(f"the batch has no reply to this request: {words}")


def _of_response(response: Mapping[str, object], source: Source) -> Outcome:
    status = int(str(response["status_code"]))
    raw = json.dumps(response["body"]).encode("ascii")
    if status == 200:
        try:
            return OPENAI.read_reply(raw, source)
        except JudgeUnavailableError as unreadable:
            return unreadable
    error = failure(status, raw, source, headers={})
    if isinstance(error, JudgeUnavailableError):
        # Not as a rate limit: batches do not slow single requests down.
        return JudgeUnavailableError(str(error), may_be_billed=False, kind=error.kind)
    if status == 403:
        # The key was good enough for the batch: this input was flagged.
        return JudgeRequestError(str(error).removesuffix(f" ({FORBIDDEN})"))
    return error
