"""Every setting with its value and where that is from, for ``doctor``; never a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.endpoint.urls import is_http, redact_url
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.settings import (
    KEY_VARIABLES,
    URL_VARIABLES,
    Settings,
    Variable,
    unknown_settings,
    variables_of,
)
from lmms_eval_captions.lmms_eval_tasks.named_models import is_variable_name, split_address

_URLS: Final = {"LMMS_CAPTIONS_JUDGE_URL", *URL_VARIABLES}
_MODELS: Final = {"LMMS_CAPTIONS_CHEAP_JUDGE"}
_OWN: Final = "the benchmark's own"
_WITHOUT: Final[Mapping[str, Callable[[], str]]] = {
    "LMMS_CAPTIONS_JUDGE": lambda: _OWN,
    "LMMS_CAPTIONS_JUDGE_RATE": lambda: "no limit",
    "LMMS_CAPTIONS_JUDGE_RUNS": lambda: _OWN,
    "LMMS_CAPTIONS_JUDGE_TEMPERATURE": lambda: _OWN,
    "LMMS_CAPTIONS_JUDGE_TIMEOUT": lambda: _OWN,
    "LMMS_CAPTIONS_JUDGE_MAX_TOKENS": lambda: _OWN,
    "LMMS_CAPTIONS_JUDGE_API": lambda: "OpenAI's, or recognised by the address",
    "LMMS_CAPTIONS_VCAPSBENCH_ASKS": lambda: _OWN,
    "LMMS_CAPTIONS_JUDGE_FRAMES": lambda: _OWN,
    "LMMS_CAPTIONS_PRICES": lambda: load_prices().as_of,
    "LMMS_CAPTIONS_PROMPTS": lambda: "the packaged ones",
    "LMMS_CAPTIONS_DATA": lambda: "the Hugging Face hub",
    "LMMS_CAPTIONS_T5": lambda: "google/flan-t5-base from the hub",
}
"""What counts where a variable is not set that has no default of its own."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable."""

    name: str
    ok: bool
    text: str
    """Its value and where that is from, or why it cannot be used."""


def settings_in_force(environ: Mapping[str, str]) -> list[Setting]:
    """All variables that a run reads, and those that look like one of them.

    Args:
        environ: Variables to read.
    """
    unknown = unknown_settings(Settings, environ)
    return [
        *(Setting(name, ok=False, text=words) for name, words in unknown.items()),
        *(_setting(variable, environ) for variable in _variables()),
    ]


def _variables() -> Iterator[Variable]:
    """Each once; what a launcher sets is not the user's."""
    rows = variables_of(Settings).values()
    yield from {row.name: row for row in rows if row.name not in ("RANK", "WORLD_SIZE")}.values()


def _setting(variable: Variable, environ: Mapping[str, str]) -> Setting:
    name, text = variable.name, environ.get(variable.name, "").strip()
    if name in KEY_VARIABLES:
        return Setting(name, ok=True, text=f"{name} is {'set' if text else 'not set'}")
    try:
        variable.read(environ)
    except SettingsError as error:
        return Setting(name, ok=False, text=str(error))
    if text:
        shown = ", ".join(map(_shown_url, text.split(","))) if name in _URLS else text
        shown = _shown_model(text) if name in _MODELS else shown
        return Setting(name, ok=True, text=f"{name} = {shown} (environment)")
    default = variable.default or _WITHOUT.get(name, lambda: "not set")()
    return Setting(name, ok=True, text=f"{name} = {default} (default)")


def _shown_url(text: str) -> str:
    # A text that is no URL may hold a password anywhere.
    url = text.strip()
    return redact_url(url) if is_http(url) else "[no URL]"


def _shown_model(text: str) -> str:
    """One model with its addresses and its key's variable, as :func:`_shown_url` shows them.

    >>> _shown_model("small@http://me:secret@host/v1;http://b:2/v1#MY_KEY")
    'small@http://host/v1;http://b:2/v1#MY_KEY'
    >>> _shown_model("small@https://host/v1#sk-secret"), _shown_model("small")
    ('small@https://host/v1#[no variable]', 'small')
    >>> _shown_model("small@htps://me:secret@host/v1"), _shown_model("small#sk-secret")
    ("[no model's name]", "[no model's name]")
    """
    if "," in text:
        return "[several models]"  # one of which may be half a password
    name, address = split_address(text)
    if "://" in name or "#" in name:
        return "[no model's name]"
    if not address:
        return name
    urls, mark, variable = address.partition("#")
    shown = variable if not mark or is_variable_name(variable.strip()) else "[no variable]"
    return f"{name}@{';'.join(map(_shown_url, urls.split(';')))}{mark}{shown}"
