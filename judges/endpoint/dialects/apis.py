"""Which APIs are spoken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.judges.endpoint.dialects.anthropic import ANTHROPIC
from lmms_eval_captions.judges.endpoint.dialects.dialect import Dialect
from lmms_eval_captions.judges.endpoint.dialects.openai import OPENAI
from lmms_eval_captions.judges.endpoint.roles import Api

DIALECTS: Final[Mapping[Api, Dialect]] = {"openai": OPENAI, "anthropic": ANTHROPIC}
"""Each API that is spoken."""
