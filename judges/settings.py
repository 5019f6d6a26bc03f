"""Settings of a run, from the environment: a record for the judge and one for the data.

Each is read when it is first needed, so that captioning needs no usable judge, and judging no
usable data; everything else is handed a record. Their fields are the one table of variables: name,
reader, and the text that is read if a variable is not set.

A record is a dataclass whose fields are made by :func:`required` and :func:`optional`.
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
    """One environment variable."""

    name: str
    parse: Callable[[str], object]
    """Turns a text into the value; raises ``ValueError`` with what was expected."""
    default: str | None
    """Text that is read if it is not set; without, its value is then ``None``."""

    def read(self, environ: Mapping[str, str]) -> object:
        """The value; a blank variable is not set."""
        text = environ.get(self.name, "").strip() or self.default
        if text is None:
            return None
        try:
            return self.parse(text)
        except ValueError as error:
            raise SettingsError(f"{self.name}: expected {error}, got {text!r}") from None


def required(name: str, parse: Callable[[str], T], default: str) -> T:
    """A field of a record: a variable that always has a value; see :class:`Variable`."""
    return cast("T", field(metadata={_VARIABLE: Variable(name, parse, default)}))


def optional(name: str, parse: Callable[[str], T]) -> T | None:
    """A field of a record: a variable whose value is ``None`` if it is not set."""
    return cast("T | None", field(metadata={_VARIABLE: Variable(name, parse, None)}))


def variables_of(record: type) -> dict[str, Variable]:
    """The variables of a record by the names of its fields."""
    return {each.name: each.metadata[_VARIABLE] for each in fields(record)}


def path(text: str) -> Path:
    """A file or folder; ``~`` is the user's own."""
    return Path(text).expanduser()


def switch(text: str) -> bool:
    """``1`` for on, ``0`` for off."""
    return choice_of("0", "1")(text) == "1"


def dollars_or_none(text: str) -> float | None:
    """US dollars above 0, with or without a dollar sign; ``None`` of "none"."""
    if text.lower() == "none":
        return None
    parse = number("US dollars above 0, such as 20, or none")
    return parse(text.removeprefix("$"))


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
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return choices[choices.index(text)]

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
"""The prefix as it may be misspelt, and what stands after it."""


@dataclass(frozen=True, kw_only=True)
class _CommonSettings:
    """Settings of both judging and data."""

    cache: Path = required(CACHE_VARIABLE, path, DEFAULT_CACHE)
    prompts: Path | None = optional("LMMS_CAPTIONS_PROMPTS", path)
    """Folder of prompts that replace ours by file name; without, ours."""


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
    """Settings of the judge, and conditions for a score.

    Raises:
        SettingsError: If they cannot be used together.
    """

    judge: str | None = optional("LMMS_CAPTIONS_JUDGE", whole)
    """Judge model; ``lexical`` for the offline stand-in; ``as-published`` for the judge, wording
    and sampling of the benchmark's published table. Without, the benchmark's own, which a server on
    this machine is never asked for."""
    alias: str | None = optional("LMMS_CAPTIONS_JUDGE_ALIAS", whole)
    """Name under which an endpoint answers as the judge, if it differs."""
    judge_url: str | None = optional("LMMS_CAPTIONS_JUDGE_URL", whole)
    """Base URLs; replicas, separated by commas, share the load."""
    api: str | None = optional("LMMS_CAPTIONS_JUDGE_API", choice_of(*DIALECTS))
    """API of the endpoint; without, OpenAI's, or Azure's if it is recognised by its address."""
    concurrency: int = required("LMMS_CAPTIONS_JUDGE_CONCURRENCY", whole_number(least=1), "64")
    rate: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_RATE",
        number("requests a second above 0, such as 100 or 0.5"),
    )
    """Most requests a second that a run sends the judge, all processes together; without, no limit
    of ours."""
    runs: int | None = optional("LMMS_CAPTIONS_JUDGE_RUNS", whole_number(least=1))
    """Independent judge runs, seeds 0..n-1; without, the benchmark's own."""
    temperature: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_TEMPERATURE",
        number("a sampling temperature of at least 0, such as 0.7", lambda value: 0 <= value < inf),
    )
    """Sampling temperature of the judge; without, the benchmark's own."""
    max_tokens: int | None = optional("LMMS_CAPTIONS_JUDGE_MAX_TOKENS", whole_number(least=1))
    """Longest reply in tokens, reasoning included; without, the benchmark's own."""
    extra_body: str | None = optional("LMMS_CAPTIONS_JUDGE_EXTRA_BODY", json_object)
    """Further fields of every request, as a JSON object such as ``{"reasoning_effort": "low"}``."""
    structured: bool = required("LMMS_CAPTIONS_JUDGE_STRUCTURED", switch, "0")
    """Ask for JSON-schema output if a protocol's reply is an object."""
    timeout_s: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_TIMEOUT",
        number("seconds above 0, such as 300"),
    )
    """Until a reply must be complete; without, the benchmark's own."""
    vcapsbench_asks: int | None = optional(
        "LMMS_CAPTIONS_VCAPSBENCH_ASKS", lambda text: int(choice_of("1", "3")(text))
    )
    """Requests of VCapsBench for each question; without, as its YAML file says."""
    frames: int | None = optional("LMMS_CAPTIONS_JUDGE_FRAMES", whole_number(least=1))
    """Frames of a clip that a judge is shown that sees the video; without, the benchmark's own."""
    store_by: StoreBy = required("LMMS_CAPTIONS_STORE_BY", choice_of("model", "endpoint"), "model")
    """Use stored replies of the judge's name, or those of the endpoint alone."""
    ask_again: bool = required("LMMS_CAPTIONS_ASK_AGAIN", switch, "0")
    """Ask questions again whose stored replies are all unreadable."""
    max_unscored: float = required(
        "LMMS_CAPTIONS_MAX_UNSCORED",
        number("a share between 0 and 1", lambda value: 0 <= value <= 1),
        "0.01",
    )
    """Largest share of unscored questions that still gives a score."""
    mode: JudgeMode = required("LMMS_CAPTIONS_JUDGE_MODE", choice_of("now", "batch"), "now")
    max_cost_usd: float | None = required("LMMS_CAPTIONS_MAX_COST", dollars_or_none, "20")
    """Most US dollars that a run may be billed for judging, all processes together; ``none`` for no
    limit."""
    prices: Path | None = optional("LMMS_CAPTIONS_PRICES", path)
    precision: float | None = optional(
        "LMMS_CAPTIONS_PRECISION",
        number("points above 0, such as 0.5"),
    )
    """Half the width of the headline's 95% interval, in printed points, for which questions are
    sampled; without, all are asked."""
    cheap_judge: str | None = optional("LMMS_CAPTIONS_CHEAP_JUDGE", whole)
    """A cheaper judge, with its address if that is another one, which answers every question of a
    run with ``precision``: it makes the sample smaller and affects no score."""
    rank: int = required("RANK", whole_number(least=0), "0")
    """Rank of this process, from the launcher of a distributed run."""
    world_size: int = required("WORLD_SIZE", whole_number(least=1), "1")
    """Processes, from the same."""

    def __post_init__(self) -> None:
        endpoint = self.endpoint
        if self.mode == "batch" and endpoint.api != OPENAI.name:
            raise SettingsError(
                f"LMMS_CAPTIONS_JUDGE_MODE: expected now for the API {endpoint.api}, as batches "
                f"are asked through OpenAI's Batch API alone, got {self.mode!r}"
            )
        if self.mode == "batch" and self.rate is not None:
            raise SettingsError(
                "LMMS_CAPTIONS_JUDGE_RATE: expected none with LMMS_CAPTIONS_JUDGE_MODE=batch, as "
                f"the provider works on a batch as fast as it likes, got {self.rate:g}"
            )
        if self.cheap_judge is not None and self.precision is None:
            raise SettingsError(
                "LMMS_CAPTIONS_CHEAP_JUDGE: expected LMMS_CAPTIONS_PRECISION beside it, such as "
                "0.5: it answers everything where the judge is asked a sample, got none"
            )
        n_urls = len(endpoint.urls)
        if self.mode == "batch" and n_urls > 1:
            raise SettingsError(
                "LMMS_CAPTIONS_JUDGE_MODE: expected one URL with batch, as a batch is at one "
                f"provider, got {n_urls}"
            )

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
        key_name, key = next(iter(self._set(variables)), (variables[0], None))
        return Endpoint(
            urls=urls,
            api=api,
            api_key=None if key is None else parse_key(key_name, key),
            key_name=key_name,
            alias=self.alias,
        )

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
        """Raise if a benchmark's own judge would be asked of a server on this machine.

        Such a server holds the model that it was started with, and some answer to any name.
        """
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
    """A T5 ``spiece.model`` or tokenizer folder, for VidCapBench's ``con``; without,
    google/flan-t5-base from the hub."""
    vidcapbench_format: str = required(
        "LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", choice_of(*VIDCAPBENCH_FORMATS), VIDCAPBENCH_FORMATS[0]
    )


@dataclass(frozen=True, kw_only=True)
class Settings(JudgeSettings, DataSettings):
    """Both, for commands that look at a whole run."""


def read_judge_settings(environ: Mapping[str, str] | None = None) -> JudgeSettings:
    """Read and validate the variables of the judge.

    Raises:
        SettingsError: If one of them cannot be used, or one is set that is not known; the text
            names it.
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
    """Variables that are set and probably mean one of this record's, to a message for each.

    A variable that is like no other is reported with the judge's: it affects no caption.
    """
    own, known = ({row.name for row in variables_of(kind).values()} for kind in (record, Settings))
    endings = {name.removeprefix(_PREFIX): name for name in known if name.startswith(_PREFIX)}
    unknown = {}
    for name in sorted(name for name, text in environ.items() if text.strip()):
        alike = _ALIKE.match(name)
        if alike is None or name in known:
            continue
        if name.startswith(_PREFIX):
            closest = get_close_matches(name.removeprefix(_PREFIX), endings, n=1)
        elif alike[1].upper() in endings:
            closest = [alike[1].upper()]
        else:  # another program's
            continue
        if not closest and issubclass(record, JudgeSettings):
            unknown[name] = (
                f"{name}: no setting of this name is known; unset it, or take one of those that "
                "`lmms-eval-captions doctor` lists"
            )
        if closest and endings[closest[0]] in own:
            unknown[name] = (
                f"{name}: no setting of this name is known; was {endings[closest[0]]} meant?"
            )
    return unknown


def _read(record: type[R], environ: Mapping[str, str] | None) -> R:
    env = os.environ if environ is None else environ
    for words in unknown_settings(record, env).values():
        raise SettingsError(words)
    values: dict[str, Any] = {name: row.read(env) for name, row in variables_of(record).items()}
    return record(**values)
