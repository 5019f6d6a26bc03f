"""Settings of a run, from the environment: a record for the judge and one for the data.

Each is read when it is first needed, so that captioning needs no usable judge, and judging no
usable data. Their fields, made by :func:`required` and :func:`optional`, are the one table of
variables; ``docs/settings.md`` says what each means.
"""
# ruff: noqa: RUF009 - the calls make fields, as dataclasses.field does

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, make_dataclass
from difflib import get_close_matches
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from lmms_eval_captions.judges.endpoint.cost import JudgeMode
from lmms_eval_captions.judges.endpoint.dialects import DIALECTS, OPENAI, api_of
from lmms_eval_captions.judges.endpoint.endpoint import (
    CACHE_VARIABLE,
    DEFAULT_CACHE,
    Endpoint,
    StoreBy,
    parse_key,
)
from lmms_eval_captions.judges.endpoint.urls import Key, is_loopback, parse_urls, redact_url
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import whole

T = TypeVar("T")
S = TypeVar("S", bound=str)

_VARIABLE: Final = "variable"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable; without a default its value is ``None`` if it is not set."""

    name: str
    parse: Callable[[str], object]
    """Turns a text into the value; raises ``ValueError`` with what was expected."""
    default: str | None

    def read(self, environ: Mapping[str, str]) -> object:
        """Return the value; a blank variable is not set."""
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            raise SettingsError(f"{self.name}: expected {error}, got {text!r}") from None


def required(name: str, parse: Callable[[str], T], default: str) -> T:
    """Make a field of a record: a variable that always has a value."""
    return cast("T", field(metadata={_VARIABLE: Variable(name, parse, default)}))


def optional(name: str, parse: Callable[[str], T]) -> T | None:
    """Make a field of a record: a variable whose value is ``None`` if it is not set."""
    return cast("T | None", field(metadata={_VARIABLE: Variable(name, parse, None)}))


def variables_of(record: type) -> dict[str, Variable]:
    """Return the variables of a record by the names of its fields."""
    return {each.name: each.metadata[_VARIABLE] for each in fields(record)}


def path(text: str) -> Path:
    """A file or folder; ``~`` is the user's own."""
    return Path(text).expanduser()


def switch(text: str) -> bool:
    """``1`` for on, ``0`` for off."""
    return choice_of("0", "1")(text) == "1"


def dollars_or_none(text: str) -> float | None:
    """US dollars above 0, with or without a dollar sign; ``None`` of "none"."""
    parse = number("US dollars above 0, such as 20, or none")
    return None if text.lower() == "none" else parse(text.removeprefix("$"))


def json_object(text: str) -> str:
    """Return the text of a JSON object."""
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(text), dict):
            return text
    raise ValueError('a JSON object such as {"reasoning_effort": "low"}')


def whole_number(*, least: int) -> Callable[[str], int]:
    """A reader of a whole number."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return parse


def number(
    expected: str, is_usable: Callable[[float], bool] = lambda value: 0 < value < inf
) -> Callable[[str], float]:
    """A reader of a number, by default above 0."""

    def parse(text: str) -> float:
        with suppress(ValueError):
            if is_usable(float(text)):
                return float(text)
        raise ValueError(expected)

    return parse


def choice_of(*choices: S) -> Callable[[str], S]:
    """A reader of a text that must be one of these."""

    def parse(text: str) -> S:
        for choice in choices:
            if text == choice:
                return choice
        raise ValueError(f"one of {', '.join(choices)}")

    return parse


R = TypeVar("R", bound="_CommonSettings")

SAMPLE: Final = "sample"
"""Value of ``LMMS_CAPTIONS_DATA`` that stands for the generated sample."""
AS_PUBLISHED: Final = "as-published"
"""Value of ``LMMS_CAPTIONS_JUDGE``, see :class:`JudgeSettings`."""
VIDCAPBENCH_FORMATS: Final = ("free", "miradata", "dream1k", "vript", "hunyuan")
"""Caption formats of VidCapBench, its default first."""
KEY_VARIABLES: Final = tuple(
    dict.fromkeys(name for dialect in DIALECTS.values() for name in dialect.key_variables)
)
URL_VARIABLES: Final = tuple(
    dict.fromkeys(name for dialect in DIALECTS.values() for name in dialect.url_variables)
)
_PREFIX: Final = "LMMS_CAPTIONS_"
_ALIKE: Final = re.compile(r"LMMS?_?(?:EVAL_?)?CAPTIONS?_?(.*)", re.IGNORECASE)
"""The prefix as it may be misspelt."""


@dataclass(frozen=True, kw_only=True)
class _CommonSettings:
    """Settings of both judging and data."""

    cache: Path = required(CACHE_VARIABLE, path, DEFAULT_CACHE)
    prompts: Path | None = optional("LMMS_CAPTIONS_PROMPTS", path)


def _field(variable: str) -> str:
    return variable.lower().replace("_api_key", "_key")


_ApiSettings: Final = make_dataclass(
    "_ApiSettings",
    [
        *((_field(name), "str | None", optional(name, whole)) for name in URL_VARIABLES),
        *((_field(name), "Key | None", optional(name, Key)) for name in KEY_VARIABLES),
    ],
    frozen=True,
    kw_only=True,
)
"""Addresses and keys of the APIs, a field for each variable."""


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(_ApiSettings, _CommonSettings):  # type: ignore[valid-type, misc]
    """Settings of the judge, and conditions for a score."""

    judge: str | None = optional("LMMS_CAPTIONS_JUDGE", whole)
    """Without, the benchmark's own, which a server on this machine is never asked for."""
    alias: str | None = optional("LMMS_CAPTIONS_JUDGE_ALIAS", whole)
    judge_url: str | None = optional("LMMS_CAPTIONS_JUDGE_URL", whole)
    api: str | None = optional("LMMS_CAPTIONS_JUDGE_API", choice_of(*DIALECTS))
    concurrency: int = required("LMMS_CAPTIONS_JUDGE_CONCURRENCY", whole_number(least=1), "64")
    rate: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_RATE", number("requests a second above 0, such as 100 or 0.5")
    )
    runs: int | None = optional("LMMS_CAPTIONS_JUDGE_RUNS", whole_number(least=1))
    temperature: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_TEMPERATURE",
        number("a sampling temperature of at least 0, such as 0.7", lambda value: 0 <= value < inf),
    )
    max_tokens: int | None = optional("LMMS_CAPTIONS_JUDGE_MAX_TOKENS", whole_number(least=1))
    extra_body: str | None = optional("LMMS_CAPTIONS_JUDGE_EXTRA_BODY", json_object)
    structured: bool = required("LMMS_CAPTIONS_JUDGE_STRUCTURED", switch, "0")
    timeout_s: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_TIMEOUT", number("seconds above 0, such as 300")
    )
    vcapsbench_asks: int | None = optional(
        "LMMS_CAPTIONS_VCAPSBENCH_ASKS", lambda text: int(choice_of("1", "3")(text))
    )
    frames: int | None = optional("LMMS_CAPTIONS_JUDGE_FRAMES", whole_number(least=1))
    store_by: StoreBy = required("LMMS_CAPTIONS_STORE_BY", choice_of("model", "endpoint"), "model")
    ask_again: bool = required("LMMS_CAPTIONS_ASK_AGAIN", switch, "0")
    max_unscored: float = required(
        "LMMS_CAPTIONS_MAX_UNSCORED",
        number("a share between 0 and 1", lambda value: 0 <= value <= 1),
        "0.01",
    )
    mode: JudgeMode = required("LMMS_CAPTIONS_JUDGE_MODE", choice_of("now", "batch"), "now")
    max_cost_usd: float | None = required("LMMS_CAPTIONS_MAX_COST", dollars_or_none, "20")
    """Limit of all processes of a run together."""
    prices: Path | None = optional("LMMS_CAPTIONS_PRICES", path)
    precision: float | None = optional(
        "LMMS_CAPTIONS_PRECISION", number("points above 0, such as 0.5")
    )
    """Half the width of the headline's 95% interval, in printed points."""
    cheap_judge: str | None = optional("LMMS_CAPTIONS_CHEAP_JUDGE", whole)
    rank: int = required("RANK", whole_number(least=0), "0")
    world_size: int = required("WORLD_SIZE", whole_number(least=1), "1")
    """Both from the launcher of a distributed run."""

    def __post_init__(self) -> None:
        endpoint, is_batch, error = self.endpoint, self.mode == "batch", None
        if is_batch and endpoint.api != OPENAI.name:
            error = (
                f"LMMS_CAPTIONS_JUDGE_MODE: expected now for the API {endpoint.api}, as batches "
                f"are asked through OpenAI's Batch API alone, got {self.mode!r}"
            )
        elif is_batch and self.rate is not None:
            error = (
                "LMMS_CAPTIONS_JUDGE_RATE: expected none with LMMS_CAPTIONS_JUDGE_MODE=batch, as "
                f"the provider works on a batch as fast as it likes, got {self.rate:g}"
            )
        elif self.cheap_judge is not None and self.precision is None:
            error = (
                "LMMS_CAPTIONS_CHEAP_JUDGE: expected LMMS_CAPTIONS_PRECISION beside it, such as "
                "0.5: it answers everything where the judge is asked a sample, got none"
            )
        elif is_batch and len(endpoint.urls) > 1:
            error = (
                "LMMS_CAPTIONS_JUDGE_MODE: expected one URL with batch, as a batch is at one "
                f"provider, got {len(endpoint.urls)}"
            )
        if error is not None:
            raise SettingsError(error)

    @property
    def is_as_published(self) -> bool:
        """True to judge as a benchmark's published table was judged."""
        return self.judge == AS_PUBLISHED

    @property
    def endpoint(self) -> Endpoint:
        """Endpoint of the judge."""
        usual = DIALECTS[self.api or OPENAI.name]
        given = [("LMMS_CAPTIONS_JUDGE_URL", self.judge_url), *self._set(usual.url_variables)]
        name, text = next((pair for pair in given if pair[1]), ("", usual.default_url))
        if not text:
            raise SettingsError(
                f"LMMS_CAPTIONS_JUDGE_URL: expected an address with LMMS_CAPTIONS_JUDGE_API="
                f"{usual.name}, got none"
            )
        urls = parse_urls(name, text)
        api = api_of(urls, self.api)
        variables = DIALECTS[api].key_variables
        name, key = next(iter(self._set(variables)), (variables[0], None))
        api_key = None if key is None else parse_key(name, key)
        return Endpoint(urls=urls, api=api, api_key=api_key, key_name=name, alias=self.alias)

    def _set(self, variables: Sequence[str]) -> list[tuple[str, str]]:
        values = ((name, getattr(self, _field(name))) for name in variables)
        return [(name, value) for name, value in values if value]

    @property
    def serving_endpoints(self) -> tuple[str, ...] | None:
        """Names of the endpoints whose stored replies alone serve; ``None`` for all."""
        return self.endpoint.names if self.store_by == "endpoint" else None

    def require_judge_access(self) -> None:
        """Raise if the endpoint would be called without a key, or cannot be called."""
        self.endpoint.require_access(
            "the judge at",
            "set it, point LMMS_CAPTIONS_JUDGE_URL at a server on this machine, or set "
            "LMMS_CAPTIONS_JUDGE=lexical to try the pipeline without a judge",
        )

    def require_named_judge(self, default: str) -> None:
        """Raise if a benchmark's own judge would be asked of a server on this machine."""
        here = next(filter(is_loopback, self.endpoint.urls), None)
        if here is not None and not self.judge:
            raise SettingsError(
                f"the judge at {redact_url(here)} is on this machine and LMMS_CAPTIONS_JUDGE is "
                f"not set: the benchmark's own judge, {default}, is never assumed there. Set "
                "LMMS_CAPTIONS_JUDGE to the name of the model that this server holds "
                "(`lmms-eval-captions doctor` lists it)"
            )


@dataclass(frozen=True, kw_only=True)
class DataSettings(_CommonSettings):
    """Locations of benchmark data, and formats of captions."""

    data: str | None = optional("LMMS_CAPTIONS_DATA", str)
    """Root of local benchmark data, or ``SAMPLE``; without, the Hugging Face hub."""
    t5: Path | None = optional("LMMS_CAPTIONS_T5", path)
    vidcapbench_format: str = required(
        "LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", choice_of(*VIDCAPBENCH_FORMATS), VIDCAPBENCH_FORMATS[0]
    )


@dataclass(frozen=True, kw_only=True)
class Settings(JudgeSettings, DataSettings):
    """Both, for commands that look at a whole run."""


def read_judge_settings(environ: Mapping[str, str] | None = None) -> JudgeSettings:
    """Read and validate the variables of the judge.

    Raises:
        SettingsError: If one of them cannot be used, or one is set that is not known.
    """
    return _read(JudgeSettings, environ)


def read_data_settings(environ: Mapping[str, str] | None = None) -> DataSettings:
    """Read and validate the variables of the data; see :func:`read_judge_settings`."""
    return _read(DataSettings, environ)


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read and validate every variable; see :func:`read_judge_settings`."""
    return _read(Settings, environ)


def data_settings() -> DataSettings:
    """The process's settings of the data."""
    return read_data_settings()


def unknown_settings(record: type[_CommonSettings], environ: Mapping[str, str]) -> dict[str, str]:
    """Return variables that probably mean one of this record's, with a message for each.

    A variable that is like no other is reported with the judge's: it affects no caption.
    """
    own, known = ({row.name for row in variables_of(kind).values()} for kind in (record, Settings))
    endings = {name.removeprefix(_PREFIX): name for name in known if name.startswith(_PREFIX)}
    unknown = {}
    for name in sorted(name for name, text in environ.items() if text.strip()):
        alike = _ALIKE.match(name)
        if alike is None or name in known:
            continue
        closest = [alike[1].upper()] if alike[1].upper() in endings else []
        if name.startswith(_PREFIX):
            closest = get_close_matches(name.removeprefix(_PREFIX), endings, n=1)
        elif not closest:  # another program's
            continue
        message = f"{name}: no setting of this name is known"
        if closest and endings[closest[0]] in own:
            unknown[name] = f"{message}; was {endings[closest[0]]} meant?"
        elif not closest and issubclass(record, JudgeSettings):
            listed = "those that `lmms-eval-captions doctor` lists"
            unknown[name] = f"{message}; unset it, or take one of {listed}"
    return unknown


def _read(record: type[R], environ: Mapping[str, str] | None) -> R:
    env = os.environ if environ is None else environ
    for words in unknown_settings(record, env).values():
        raise SettingsError(words)
    values: dict[str, Any] = {name: row.read(env) for name, row in variables_of(record).items()}
    return record(**values)
