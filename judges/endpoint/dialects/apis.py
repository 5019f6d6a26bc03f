"""The APIs that are spoken, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lmms_eval_captions.judges.endpoint.dialects.anthropic import ANTHROPIC
from lmms_eval_captions.judges.endpoint.dialects.dialect import Dialect
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI, AzureDialect

DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect for dialect in (OPENAI, AzureDialect(), ANTHROPIC)
}
"""The dialects, the default first."""


def api_of(urls: Sequence[str], api: str | None = None) -> str:
    """Return the API of some addresses: the given one, or the one that they are recognised by."""
    if api is not None:
        return api
    known = (name for name, dialect in DIALECTS.items() if any(map(dialect.is_address, urls)))
    return next(known, OPENAI.name)
