"""The settings of a run: what the environment says, in a record for the judge and one for the data.

Each is read when it is first needed, so that what shows clips to a captioner needs no usable judge,
and what judges no usable data; everything else is handed a record. Their fields are the one table
of variables: name, meaning, reader, and what holds where a variable is not set.
"""
# ruff: noqa: RUF009 - the calls make fields, as dataclasses.field does

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from math import inf
from pathlib import Path
from typing import Final, TypeVar

from lmms_eval_captions.judges.endpoint.cache_folder import CACHE_VARIABLE, DEFAULT_CACHE
from lmms_eval_captions.judges.endpoint.endpoint import (
    PROVIDER_URLS,
    Endpoint,
    Key,
    parse_key,
)
from lmms_eval_captions.judges.endpoint.prices import JudgeMode
from lmms_eval_captions.judges.endpoint.roles import KEYS, Api
from lmms_eval_captions.judges.endpoint.urls import parse_urls, redact_url
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.variables import (
    choice_of,
    number,
    optional,
    parse_dollars,
    parse_path,
    parse_switch,
    parse_text,
    read_record,
    required,
    variables_of,
    whole_number,
)

R = TypeVar("R", bound="_CommonSettings")

SAMPLE: Final = "sample"
"""Value of ``LMMS_CAPTIONS_DATA`` that stands for the generated sample."""
VIDCAPBENCH_FORMATS: Final = ("free", "miradata", "dream1k", "vript", "hunyuan")
"""Caption formats of VidCapBench, its default first."""
JUDGE_APIS: Final = tuple(KEYS)
"""Whose API the judge's endpoint may speak, the default first."""
JUDGE_MODES: Final[tuple[JudgeMode, ...]] = ("now", "batch")
"""How the judge is asked, the default first."""
_PREFIX: Final = "LMMS_CAPTIONS_"
_OWN: Final = "the benchmark's own"


def _parse_secret(_: str, text: str) -> Key:
    return Key(text)


@dataclass(frozen=True, kw_only=True)
class _CommonSettings:
    """What judging and data have in common."""

    cache: Path = required(
        CACHE_VARIABLE, "folder of replies, captions and data", parse_path, default=DEFAULT_CACHE
    )
    prompts: Path | None = optional(
        "LMMS_CAPTIONS_PROMPTS",
        "folder of prompts that replace ours by file name",
        parse_path,
        otherwise="ours",
    )


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(_CommonSettings):
    """How the judge is asked, and what its replies must be for a score.

    Raises:
        SettingsError: If they cannot be used together.
    """

    judge: str | None = optional(
        "LMMS_CAPTIONS_JUDGE",
        "judge model, or lexical for the offline stand-in",
        parse_text,
        otherwise=f"{_OWN}; a server on this machine needs one to be named",
    )
    alias: str | None = optional(
        "LMMS_CAPTIONS_JUDGE_ALIAS",
        "name under which an endpoint answers as the judge, where it differs",
        parse_text,
        otherwise="none",
    )
    judge_url: str | None = optional(
        "LMMS_CAPTIONS_JUDGE_URL",
        "base URLs; replicas, separated by commas, share the load",
        parse_text,
        otherwise="OPENAI_BASE_URL, OPENAI_API_URL, then OpenAI's; Anthropic's for its API",
    )
    openai_base_url: str | None = optional(
        "OPENAI_BASE_URL",
        "base URLs where LMMS_CAPTIONS_JUDGE_URL is not set and the API is openai",
        parse_text,
        otherwise="OPENAI_API_URL",
    )
    openai_api_url: str | None = optional(
        "OPENAI_API_URL",
        "base URLs where OPENAI_BASE_URL is not set either",
        parse_text,
        otherwise="OpenAI's",
    )
    anthropic_base_url: str | None = optional(
        "ANTHROPIC_BASE_URL",
        "base URLs where LMMS_CAPTIONS_JUDGE_URL is not set and the API is anthropic",
        parse_text,
        otherwise="Anthropic's",
    )
    api: Api = required(
        "LMMS_CAPTIONS_JUDGE_API",
        f"whose API the endpoint speaks: {', '.join(JUDGE_APIS)}",
        choice_of(*JUDGE_APIS),
        default=JUDGE_APIS[0],
    )
    openai_key: Key | None = optional(
        KEYS["openai"], "key; a URL on this machine needs none", _parse_secret, otherwise="none"
    )
    anthropic_key: Key | None = optional(
        KEYS["anthropic"], "key where the API is anthropic", _parse_secret, otherwise="none"
    )
    concurrency: int = required(
        "LMMS_CAPTIONS_JUDGE_CONCURRENCY",
        "most requests in flight, all replicas together, a process",
        whole_number(least=1),
        default="64",
    )
    runs: int | None = optional(
        "LMMS_CAPTIONS_JUDGE_RUNS",
        "independent judge runs, seeds 0..n-1; mean and standard deviation are reported",
        whole_number(least=1),
        otherwise=_OWN,
    )
    temperature: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_TEMPERATURE",
        "sampling temperature of the judge, at least 0; in the signature where it is not the "
        "benchmark's",
        number("a sampling temperature of at least 0, such as 0.7", lambda value: 0 <= value < inf),
        otherwise=_OWN,
    )
    timeout_s: float | None = optional(
        "LMMS_CAPTIONS_JUDGE_TIMEOUT",
        "seconds until a reply must be complete",
        number("seconds above 0, such as 300", lambda value: 0 < value < inf),
        otherwise=_OWN,
    )
    vcapsbench_asks: int | None = optional(
        "LMMS_CAPTIONS_VCAPSBENCH_ASKS",
        "how often VCapsBench asks each question: 3 as in the paper, 1 as in the released script",
        lambda name, text: int(choice_of("1", "3")(name, text)),
        otherwise="3",
    )
    ask_again: bool = required(
        "LMMS_CAPTIONS_ASK_AGAIN",
        "1 asks questions anew whose stored replies were all unreadable",
        parse_switch,
        default="0",
    )
    max_unscored: float = required(
        "LMMS_CAPTIONS_MAX_UNSCORED",
        "largest share of unscored questions that still gives a score",
        number("a share between 0 and 1", lambda value: 0 <= value <= 1),
        default="0.01",
    )
    mode: JudgeMode = required(
        "LMMS_CAPTIONS_JUDGE_MODE",
        "now, or batch for the provider's Batch API, half the price within a day",
        choice_of(*JUDGE_MODES),
        default=JUDGE_MODES[0],
    )
    max_cost_usd: float | None = optional(
        "LMMS_CAPTIONS_MAX_COST",
        "most US dollars that a run may be billed for judging, all processes together",
        parse_dollars,
        otherwise="no limit",
    )
    prices: Path | None = optional(
        "LMMS_CAPTIONS_PRICES",
        "YAML or JSON of prices, laid over the packaged ones",
        parse_path,
        otherwise="none",
    )
    rank: int = required(
        "RANK",
        "rank of this process, from the launcher of a distributed run",
        whole_number(least=0),
        default="0",
    )
    world_size: int = required(
        "WORLD_SIZE",
        "processes, from the launcher of a distributed run",
        whole_number(least=1),
        default="1",
    )

    def __post_init__(self) -> None:
        if self.mode == "batch" and self.api != "openai":
            raise SettingsError(
                f"LMMS_CAPTIONS_JUDGE_MODE: expected now with LMMS_CAPTIONS_JUDGE_API={self.api}, "
                f"as batches are asked through OpenAI's Batch API alone, got {self.mode!r}"
            )
        n_urls = len(self.endpoint.urls)
        if self.mode == "batch" and n_urls > 1:
            raise SettingsError(
                "LMMS_CAPTIONS_JUDGE_MODE: expected one URL with batch, as a batch is at one "
                f"provider, got {n_urls}"
            )

    @property
    def endpoint(self) -> Endpoint:
        """Where the judge is asked.

        Raises:
            SettingsError: If a URL or the key cannot be used; those of the other API are not read.
        """
        urls = {"LMMS_CAPTIONS_JUDGE_URL": self.judge_url}
        key_name, key = KEYS[self.api], self.openai_key
        if self.api == "openai":
            urls |= {"OPENAI_BASE_URL": self.openai_base_url, "OPENAI_API_URL": self.openai_api_url}
        else:
            urls["ANTHROPIC_BASE_URL"], key = self.anthropic_base_url, self.anthropic_key
        given = ((name, text) for name, text in urls.items() if text)
        return Endpoint(
            urls=parse_urls(*next(given, ("", PROVIDER_URLS[self.api]))),
            api=self.api,
            api_key=None if key is None else parse_key(key_name, key),
            key_name=key_name,
            alias=self.alias,
        )

    def require_judge_access(self) -> None:
        """Raise where an endpoint would be called without a key, or cannot be called.

        Raises:
            SettingsError: As :meth:`.Endpoint.require_access`.
        """
        self.endpoint.require_access(
            "the judge at",
            "set it, point LMMS_CAPTIONS_JUDGE_URL at a server on this machine, or set "
            "LMMS_CAPTIONS_JUDGE=lexical to try the pipeline without a judge",
        )

    def require_named_judge(self, default: str) -> None:
        """Raise where a benchmark's own judge would be asked of a server on this machine.

        Such a server holds the model that it was started with, and some answer to any name.

        Args:
            default: The benchmark's own judge.

        Raises:
            SettingsError: If no judge is named and a URL is on this machine.
        """
        here = None if self.judge else self.endpoint.local_url
        if here is not None:
            raise SettingsError(
                f"the judge at {redact_url(here)} is on this machine and LMMS_CAPTIONS_JUDGE is "
                f"not set: the benchmark's own judge, {default}, is never assumed there. Set "
                "LMMS_CAPTIONS_JUDGE to the name of the model that this server holds "
                "(`lmms-eval-captions doctor` lists it)"
            )


@dataclass(frozen=True, kw_only=True)
class DataSettings(_CommonSettings):
    """Where benchmark data are, and what captioners are asked."""

    data: str | None = optional(
        "LMMS_CAPTIONS_DATA",
        f"root of local benchmark data, or {SAMPLE}",
        lambda _, text: text,
        otherwise="download from the Hugging Face hub",
    )
    t5: Path | None = optional(
        "LMMS_CAPTIONS_T5",
        "a T5 spiece.model or tokenizer folder, for VidCapBench's con",
        parse_path,
        otherwise="google/flan-t5-base from the hub",
    )
    vidcapbench_format: str = required(
        "LMMS_CAPTIONS_VIDCAPBENCH_FORMAT",
        f"caption format that VidCapBench asks for: {', '.join(VIDCAPBENCH_FORMATS)}",
        choice_of(*VIDCAPBENCH_FORMATS),
        default=VIDCAPBENCH_FORMATS[0],
    )


@dataclass(frozen=True, kw_only=True)
class Settings(JudgeSettings, DataSettings):
    """Both, for commands that look at a whole run."""


def read_judge_settings(environ: Mapping[str, str] | None = None) -> JudgeSettings:
    """Read and validate the variables of the judge.

    Args:
        environ: Variables to read, by default the process's own.

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


@cache
def data_settings() -> DataSettings:
    """The process's settings of the data, read once, when data are first needed.

    Raises:
        SettingsError: As :func:`read_data_settings`; the next call reads again.
    """
    return read_data_settings()


def _read(record: type[R], environ: Mapping[str, str] | None) -> R:
    env = os.environ if environ is None else environ
    _refuse_unknown(record, (name for name, text in env.items() if text.strip()))
    return read_record(record, env)


def _refuse_unknown(record: type[_CommonSettings], names: Iterable[str]) -> None:
    """Raise where a variable is set that probably means one of this record's.

    One that is like none of them all is told when the judge is needed: it moves no caption.
    """
    own, known = ({row.name for row in variables_of(kind).values()} for kind in (record, Settings))
    endings = {name.removeprefix(_PREFIX): name for name in known if name.startswith(_PREFIX)}
    for name in sorted(names):
        if not name.startswith(_PREFIX) or name in known:
            continue
        closest = get_close_matches(name.removeprefix(_PREFIX), endings, n=1)
        if not closest and issubclass(record, JudgeSettings):
            raise SettingsError(
                f"{name}: no setting of this name is known; expected {_PREFIX} and one of "
                f"{', '.join(sorted(endings))} behind it"
            )
        if closest and endings[closest[0]] in own:
            raise SettingsError(
                f"{name}: no setting of this name is known; was {endings[closest[0]]} meant?"
            )
