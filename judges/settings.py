"""The settings of a run: one function reads the environment, everything else is handed a record."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import inf, nan
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from lmms_eval_captions.judges.endpoint.prices import JudgeMode
from lmms_eval_captions.judges.endpoint.roles import KEYS, Api
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.surrogates import whole

S = TypeVar("S", bound=str)

SAMPLE = "sample"
"""Value of ``LMMS_CAPTIONS_DATA`` that stands for the generated sample."""

VIDCAPBENCH_FORMATS = ("free", "miradata", "dream1k", "vript", "hunyuan")
"""Caption formats of VidCapBench, its default first."""

VCAPSBENCH_ASKS = ("1", "3")
"""How often VCapsBench may ask: the released script asks once, the paper three times."""

JUDGE_MODES: Final[tuple[JudgeMode, ...]] = ("now", "batch")
"""How the judge is asked, the default first."""

JUDGE_APIS: Final[tuple[Api, ...]] = ("openai", "anthropic")
"""Whose API the judge's endpoint may speak, the default first."""

OPENAI_URL = "https://api.openai.com/v1"
"""Where models are asked when no other address is set."""
ANTHROPIC_URL = "https://api.anthropic.com"
"""Where those are asked that speak Anthropic's API."""


class Key(str):
    """A key that shows itself nowhere but where it is sent: not in a record, a list, a traceback.

    >>> [Key("sk-secret")], f"Bearer {Key('sk-secret')}"
    ([[key]], 'Bearer sk-secret')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "[key]"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says, validated. Source: the table of settings in the README."""

    judge: str | None
    """Judge model that replaces each benchmark's own, or ``None``."""
    alias: str | None
    """Name under which the endpoint answers as the judge, or ``None`` for the judge's own."""
    urls: tuple[str, ...]
    """Base URLs of the judge's replicas, without a trailing slash, at least one."""
    api: Api
    """Whose API the judge's endpoint speaks."""
    api_key: Key | None = field(repr=False)
    """Key sent as a bearer token, or ``None``. Never printed."""
    concurrency: int
    """Most requests in flight, all replicas together, >= 1."""
    runs: int | None
    """Independent judge runs that replace each benchmark's own number, >= 1, or ``None``."""
    temperature: float | None
    """Sampling temperature that replaces each benchmark's own, >= 0, or ``None``."""
    timeout_s: float | None
    """Seconds until a reply must be complete, in place of each benchmark's own, or ``None``."""
    cache: Path
    """Folder of verdicts, captions and data."""
    data: str | None
    """Root of local benchmark data, ``sample``, or ``None`` for the hub."""
    t5: Path | None
    """T5 ``spiece.model`` or tokenizer folder, or ``None``."""
    vidcapbench_format: str
    """Caption format that VidCapBench asks captioners for, one of ``VIDCAPBENCH_FORMATS``."""
    prompts: Path | None
    """Folder of prompts that replace packaged ones, or ``None``."""
    vcapsbench_asks: int | None
    """How often VCapsBench asks each question in a judge run, 1 or 3; ``None`` for its own."""
    ask_again: bool
    """Whether what the store holds unreadable replies to alone is asked anew."""
    max_unscored: float
    """Largest share of unscored questions that still gives a score, in [0, 1]."""
    mode: JudgeMode
    """Whether the judge is asked at once or through the provider's Batch API."""
    max_cost_usd: float | None
    """Most US dollars that a run may be billed, all processes together, > 0, or ``None``."""
    prices: Path | None
    """File of prices that is laid over the packaged ones, or ``None``."""
    rank: int
    """Rank of this process in a distributed run, 0 alone."""
    world_size: int
    """Processes of a distributed run, 1 alone."""

    def require_judge_access(self) -> None:
        """Raise where an endpoint would be called without a key, or cannot be called.

        Raises:
            SettingsError: If a URL is not on this machine and there is neither a key nor a user in
                it, if there are both, or if the environment's proxy cannot be used.
        """
        for url in self.urls:
            has_user = urlsplit(url).username is not None
            if not (is_loopback(url) or self.api_key or has_user):
                raise SettingsError(
                    f"the judge at {redact_url(url)} needs a key and {KEYS[self.api]} is not set; "
                    "set it, point LMMS_CAPTIONS_JUDGE_URL at a server on this machine, or set "
                    "LMMS_CAPTIONS_JUDGE=lexical to try the pipeline without a judge"
                )
            if has_user and self.api_key:
                raise SettingsError(
                    f"the judge at {redact_url(url)} has a user in its URL and {KEYS[self.api]} is "
                    "set: only one of them can be sent, take the other out"
                )
            proxy_of(url)

    def require_named_judge(self, default: str) -> None:
        """Raise where a benchmark's own judge would be asked of a server on this machine.

        Such a server holds the model that it was started with, and some answer to any name.

        Args:
            default: The benchmark's own judge.

        Raises:
            SettingsError: If no judge is named and a URL is on this machine.
        """
        here = None if self.judge else next(filter(is_loopback, self.urls), None)
        if here is not None:
            raise SettingsError(
                f"the judge at {redact_url(here)} is on this machine and LMMS_CAPTIONS_JUDGE is "
                f"not set: the benchmark's own judge, {default}, is never assumed there. Set "
                "LMMS_CAPTIONS_JUDGE to the name of the model that this server holds "
                "(`lmms-eval-captions doctor` lists it)"
            )


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read and validate every environment variable this package knows.

    Args:
        environ: Variables to read, by default the process's own.

    Raises:
        SettingsError: If a variable holds something that cannot be used; the text names it.
    """
    env = os.environ if environ is None else environ

    def text(name: str) -> str | None:
        return env.get(name, "").strip() or None

    judge, alias = text("LMMS_CAPTIONS_JUDGE"), text("LMMS_CAPTIONS_JUDGE_ALIAS")
    api = _choice("LMMS_CAPTIONS_JUDGE_API", text("LMMS_CAPTIONS_JUDGE_API"), JUDGE_APIS)
    urls = text("LMMS_CAPTIONS_JUDGE_URL") or _default_url(api, text)
    t5 = text("LMMS_CAPTIONS_T5")
    prices = text("LMMS_CAPTIONS_PRICES")
    mode = _choice("LMMS_CAPTIONS_JUDGE_MODE", text("LMMS_CAPTIONS_JUDGE_MODE"), JUDGE_MODES)
    concurrency = (
        _integer("LMMS_CAPTIONS_JUDGE_CONCURRENCY", text("LMMS_CAPTIONS_JUDGE_CONCURRENCY")) or 64
    )
    return Settings(
        judge=judge and whole(judge),
        alias=alias and whole(alias),
        urls=_judge_urls(urls, mode, api),
        api=api,
        api_key=parse_key(text(KEYS[api]), KEYS[api]),
        concurrency=concurrency,
        runs=_integer("LMMS_CAPTIONS_JUDGE_RUNS", text("LMMS_CAPTIONS_JUDGE_RUNS")),
        temperature=_temperature(text("LMMS_CAPTIONS_JUDGE_TEMPERATURE")),
        timeout_s=_seconds(text("LMMS_CAPTIONS_JUDGE_TIMEOUT")),
        cache=cache_folder(env),
        data=text("LMMS_CAPTIONS_DATA"),
        t5=Path(t5).expanduser() if t5 else None,
        vidcapbench_format=_choice(
            "LMMS_CAPTIONS_VIDCAPBENCH_FORMAT",
            text("LMMS_CAPTIONS_VIDCAPBENCH_FORMAT"),
            VIDCAPBENCH_FORMATS,
        ),
        prompts=prompt_folder(env),
        vcapsbench_asks=_asks(text("LMMS_CAPTIONS_VCAPSBENCH_ASKS")),
        ask_again=_switch("LMMS_CAPTIONS_ASK_AGAIN", text("LMMS_CAPTIONS_ASK_AGAIN")),
        max_unscored=_share("LMMS_CAPTIONS_MAX_UNSCORED", text("LMMS_CAPTIONS_MAX_UNSCORED"), 0.01),
        mode=mode,
        max_cost_usd=_dollars("LMMS_CAPTIONS_MAX_COST", text("LMMS_CAPTIONS_MAX_COST")),
        prices=Path(prices).expanduser() if prices else None,
        rank=int(env.get("RANK", "0") or 0),
        world_size=int(env.get("WORLD_SIZE", "1") or 1),
    )


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Folder of verdicts, captions and data.

    By itself, as captioners need it, to which settings of the judge are nothing.

    Args:
        environ: Variables to read, by default the process's own.
    """
    env = os.environ if environ is None else environ
    folder = env.get("LMMS_CAPTIONS_CACHE", "").strip()
    return Path(folder).expanduser() if folder else Path.home() / ".cache" / "lmms-eval-captions"


def prompt_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Folder of prompts that replace packaged ones, ``None`` for none.

    By itself, as captioners are asked before the settings of the judge are looked at.

    Args:
        environ: Variables to read, by default the process's own.
    """
    env = os.environ if environ is None else environ
    folder = env.get("LMMS_CAPTIONS_PROMPTS", "").strip()
    return Path(folder).expanduser() if folder else None


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine, so that no key is needed.

    >>> is_loopback("http://127.0.0.1:8000/v1"), is_loopback("https://api.openai.com/v1")
    (True, False)
    >>> is_loopback("http://0.0.0.0:8000/v1"), is_loopback("http://[::ffff:127.0.0.1]:8000/v1")
    (True, True)
    """
    host = _host_of(url)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address_of(host)
    # Servers print 0.0.0.0 for where they listen; to connect to it is to connect to this machine.
    return address is not None and (address.is_loopback or address.is_unspecified)


def is_self_hosted(url: str) -> bool:
    """Whether a URL names a server of one's own: this machine, a private address or name.

    >>> [is_self_hosted(f"http://{host}/v1") for host in ("10.0.0.7:8000", "vllm", "[fd00::1]")]
    [True, True, True]
    >>> is_self_hosted("https://api.openai.com/v1")
    False
    """
    host = _host_of(url)
    address = _address_of(host)
    if address is not None:
        return not address.is_global
    return is_loopback(url) or "." not in host or host.endswith((".local", ".internal"))


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for a URL (``HTTPS_PROXY``, ``NO_PROXY`` ...).

    ``None`` for none. Proxies are for the outside world: this machine is always reached directly.

    Raises:
        SettingsError: If it is not an HTTP proxy; its text, which may hold a password, is not told.
    """
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and not _is_http(proxy):
        raise SettingsError(
            f"{parts.scheme}_proxy: expected the URL of an HTTP proxy such as "
            "http://proxy.example.org:3128 (special characters of a password written as %XX), or "
            f"{parts.hostname} in no_proxy"
        )
    return proxy


def redact_url(url: str) -> str:
    """A URL fit for printing: no user, password, query or fragment.

    >>> redact_url("http://me:secret@host:1/v1?key=x")
    'http://host:1/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def parse_urls(value: str, setting: str = "LMMS_CAPTIONS_JUDGE_URL") -> tuple[str, ...]:
    """Base URLs of replicas from a list with commas, without a trailing slash.

    Args:
        value: What was set.
        setting: What it was set with, for messages.

    Raises:
        SettingsError: If one of them is no URL.
    """
    urls = tuple(part.strip().rstrip("/") for part in value.split(",") if part.strip())
    urls = tuple(url.removesuffix("/chat/completions") for url in urls)
    for number, url in enumerate(urls, 1):
        if not _is_http(url):
            # In what is no URL a password may stand anywhere.
            came = f"something else as number {number}" if "@" in url else repr(url)
            raise SettingsError(
                f"{setting}: expected URLs such as http://127.0.0.1:8000/v1, separated by commas, "
                f"got {came}"
            )
    return urls


def parse_key(value: str | None, setting: str = "OPENAI_API_KEY") -> Key | None:
    """A key that can be sent, ``None`` where there is none.

    Args:
        value: What was set.
        setting: The variable that holds it, for messages.

    Raises:
        SettingsError: If it holds what cannot stand in a header.
    """
    if value is None:
        return None
    if not (value.isascii() and value.isprintable()):
        # aiohttp's error for what cannot be sent in a header holds the whole header.
        raise SettingsError(
            f"{setting}: expected printable ASCII characters, got a key with others in it (a "
            "line end, a typographic hyphen); copy it again"
        )
    return Key(value)


def _host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").lower().removesuffix(".")


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is written as, ``None`` for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _default_url(api: Api, text: Callable[[str], str | None]) -> str:
    if api == "anthropic":
        return text("ANTHROPIC_BASE_URL") or ANTHROPIC_URL
    return text("OPENAI_BASE_URL") or text("OPENAI_API_URL") or OPENAI_URL


def _judge_urls(value: str, mode: JudgeMode, api: Api) -> tuple[str, ...]:
    urls = parse_urls(value)
    if mode == "batch" and api != "openai":
        raise SettingsError(
            "LMMS_CAPTIONS_JUDGE_MODE: expected now with LMMS_CAPTIONS_JUDGE_API=anthropic, as "
            f"batches are asked through OpenAI's Batch API alone, got {mode!r}"
        )
    if mode == "batch" and len(urls) > 1:
        raise SettingsError(
            "LMMS_CAPTIONS_JUDGE_MODE: expected one URL with batch, as a batch is at one provider, "
            f"got {len(urls)}"
        )
    return urls


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, an address that is not closed
        return False


def _integer(name: str, value: str | None) -> int | None:
    if value is None:
        return None
    if not re.fullmatch(r"\d+", value) or int(value) < 1:
        raise SettingsError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return int(value)


def _choice(name: str, value: str | None, known: tuple[S, ...]) -> S:
    if value is None:
        return known[0]
    for choice in known:
        if choice == value:
            return choice
    raise SettingsError(f"{name}: expected one of {', '.join(known)}, got {value!r}")


def _switch(name: str, value: str | None) -> bool:
    return value is not None and _choice(name, value, ("0", "1")) == "1"


def _asks(value: str | None) -> int | None:
    if value is None:
        return None
    return int(_choice("LMMS_CAPTIONS_VCAPSBENCH_ASKS", value, VCAPSBENCH_ASKS))


def _dollars(name: str, value: str | None) -> float | None:
    if value is None:
        return None
    dollars = _number(value.removeprefix("$"))
    if not 0.0 < dollars < inf:
        raise SettingsError(f"{name}: expected US dollars above 0, such as 20, got {value!r}")
    return dollars


def _temperature(value: str | None) -> float | None:
    if value is None:
        return None
    temperature = _number(value)
    if not 0.0 <= temperature < inf:
        raise SettingsError(
            "LMMS_CAPTIONS_JUDGE_TEMPERATURE: expected a sampling temperature of at least 0, such "
            f"as 0.7, got {value!r}"
        )
    return temperature


def _seconds(value: str | None) -> float | None:
    if value is None:
        return None
    seconds = _number(value)
    if not 0.0 < seconds < inf:
        raise SettingsError(
            f"LMMS_CAPTIONS_JUDGE_TIMEOUT: expected seconds above 0, such as 300, got {value!r}"
        )
    return seconds


def _share(name: str, value: str | None, default: float) -> float:
    if value is None:
        return default
    share = _number(value)
    if not 0.0 <= share <= 1.0:
        raise SettingsError(f"{name}: expected a share between 0 and 1, got {value!r}")
    return share


def _number(value: str) -> float:
    """A number, ``nan`` where it is none: no comparison with that holds."""
    try:
        return float(value)
    except ValueError:
        return nan
