"""Addresses and keys: how they are written, completed and kept out of what is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit
from urllib.request import getproxies

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.files import whole_json

SHOWN: Final = "[key]"


class Key(str):
    """A key whose ``repr`` hides it, in records and tracebacks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return SHOWN


@lru_cache(maxsize=256)
def _forms(api_key: str | None, urls: tuple[str, ...]) -> tuple[str, ...]:
    proxies = [proxy for url in urls if (proxy := proxy_of(url))]
    forms = set()
    for text in (api_key or "", *(text for url in (*urls, *proxies) for text in secrets_in(url))):
        is_mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
        if len(text) >= (8 if is_mixed else 16):
            forms |= {text, json.dumps(text)[1:-1]}
    return tuple(sorted(forms, key=len, reverse=True))


def scrub(text: str, api_key: str | None, *urls: str) -> str:
    """Return an error's text without the key, however short, and the passwords of URLs."""
    for form in _forms(api_key, urls):
        text = text.replace(form, SHOWN)
    if api_key and api_key in text:
        text = re.sub(rf"(?<!\w){re.escape(api_key)}(?!\w)", SHOWN, text)
    return text


def answer_text(raw: bytes, api_key: str | None, *urls: str, strictly: bool = False) -> str:
    """Decode an answer, without secrets and lone surrogates."""
    text = raw.decode(json.detect_encoding(raw), "surrogatepass" if strictly else "replace")
    for form in _forms(api_key, urls):
        if form in text:
            text = text.replace(form, SHOWN)
    return whole_json(text.removeprefix("\ufeff"))


_THIS_MACHINE: Final = {"localhost", "127.0.0.1", "0.0.0.0", "::1", "::"}  # noqa: S104 # nosec B104 - names
"""Hosts of URLs that reach the same server."""
_PORTS: Final = {"http": 80, "https": 443}
_KEY_IN_PATH: Final = re.compile(r"(?=\w*\d)(?=\w*[A-Za-z])\w{20,}|sk-[\w-]{8,}", re.ASCII)
"""A segment of a path that holds a key, as some gateways have it."""


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine, so that no key is needed."""
    host = _host_of(url)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _address_of(host)
    # Servers print 0.0.0.0 for where they listen; to connect to it is to connect to this machine.
    return address is not None and (address.is_loopback or address.is_unspecified)


def is_self_hosted(url: str) -> bool:
    """Return whether a URL names this machine, a private address or a name without a dot."""
    host = _host_of(url)
    address = _address_of(host)
    if address is not None:
        return not address.is_global
    return is_loopback(url) or "." not in host or host.endswith((".local", ".internal"))


def is_http(url: str) -> bool:
    """Return whether a text is an HTTP URL with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, an address that is not closed
        return False


def parse_urls(setting: str, value: str, *, separators: str = ",") -> tuple[str, ...]:
    """Split a list of base URLs, without trailing slashes; at least one."""
    urls = tuple(
        part.strip().rstrip("/") for part in re.split(f"[{separators}]", value) if part.strip()
    )
    urls = tuple(url if "?" in url else url.removesuffix("/chat/completions") for url in urls)
    for number, url in enumerate(urls or (value,), 1):
        if not is_http(url):
            # A text that is not a URL may hold a password anywhere.
            came = f"something else as number {number}" if "@" in url else repr(url)
            raise SettingsError(
                f"{setting}: expected URLs such as http://127.0.0.1:8000/v1, separated by "
                f"{separators[-1]!r}, got {came}"
            )
    return urls


def redact_url(url: str) -> str:
    """Return a URL for printing, without user, password, key, query and fragment.

    >>> redact_url("http://me:secret@host:1/v1?key=x"), redact_url("http://h/0a1b2c3d4e5f6a7b8c9d/v1")
    ('http://host:1/v1', 'http://h/[key]/v1')
    """
    parts = urlsplit(url)
    path = _KEY_IN_PATH.sub("[key]", parts.path)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))


def secrets_in(url: str) -> list[str]:
    """Return the password of a URL, and keys in its path and query."""
    parts = urlsplit(url)
    password = parts.password or ""
    values = [value for name, value in parse_qsl(parts.query) if name != "api-version"]
    found = [unquote(password), password, *values, *_KEY_IN_PATH.findall(parts.path)]
    return list(dict.fromkeys(filter(None, found)))


def with_path(url: str, path: str) -> str:
    """Return a URL with a path appended before its query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def endpoint_name(url: str) -> str:
    """Return the name of an endpoint: its base URL in canonical form, without secrets.

    >>> endpoint_name("https://me:secret@API.openai.com:443/v1/?key=x")
    'https://api.openai.com/v1'
    """
    parts = urlsplit(redact_url(url))
    host = "127.0.0.1" if _host_of(url) in _THIS_MACHINE else _host_of(url)
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path.rstrip("/"), "", ""))


def endpoint_names(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct names of an endpoint's addresses."""
    return tuple(dict.fromkeys(map(endpoint_name, urls)))


def proxy_of(url: str) -> str | None:
    """Return the environment's proxy for a URL (``HTTPS_PROXY``, ``NO_PROXY`` ...), or ``None``.

    This machine and names without a dot are always reached directly. The message of a
    :class:`SettingsError` leaves out the proxy's URL, which may hold a password.
    """
    parts = urlsplit(url)
    host = _host_of(url)
    # A name without a dot is in the local network; the proxy would not know it.
    if is_loopback(url) or (_address_of(host) is None and "." not in host) or _is_bypassed(host):
        return None
    proxy = getproxies().get(parts.scheme)
    if proxy and "://" not in proxy:
        proxy = f"http://{proxy}"
    if proxy and not is_http(proxy):
        raise SettingsError(
            f"{parts.scheme}_proxy: expected the URL of an HTTP proxy such as "
            "http://proxy.example.org:3128 (special characters of a password written as %XX), or "
            f"{parts.hostname} in no_proxy"
        )
    return proxy


def _is_bypassed(host: str) -> bool:
    """Return whether ``no_proxy`` names a host: itself, a domain, ``*.domain`` or a network."""
    address = _address_of(host)
    for name in getproxies().get("no", "").lower().replace(",", " ").split():
        pattern = name.partition(":")[0].lstrip("*.") if name.count(":") == 1 else name.lstrip("*.")
        if name == "*" or host == pattern or host.endswith(f".{pattern}"):
            return True
        if address is not None and "/" in name:
            with suppress(ValueError):
                if address in ip_network(name, strict=False):
                    return True
    return False


def _host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").lower().removesuffix(".")


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
