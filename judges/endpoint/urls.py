"""URLs of endpoints: which machine they name, how they are read, shown and reached."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from lmms_eval_captions.judges.errors import SettingsError

_THIS_MACHINE: Final = {"localhost", "127.0.0.1", "0.0.0.0", "::1", "::"}  # noqa: S104 # nosec B104 - names
"""Hosts of URLs that reach the same server."""
_PORTS: Final = {"http": 80, "https": 443}


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


def is_http(url: str) -> bool:
    """Whether a text is an HTTP URL with a host that can be connected to.

    >>> is_http("http://127.0.0.1:8000/v1"), is_http("127.0.0.1:8000"), is_http("http://[::1")
    (True, False, False)
    """
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, an address that is not closed
        return False


def parse_urls(setting: str, value: str, *, separators: str = ",") -> tuple[str, ...]:
    """Base URLs of replicas from a list, without a trailing slash; at least one.

    Args:
        setting: What they were set with, for messages.
        value: What was set.
        separators: What may stand between two; the last one is what a mistaken user is told.

    Raises:
        SettingsError: If one of them is no URL, or there is none.
    """
    urls = tuple(
        part.strip().rstrip("/") for part in re.split(f"[{separators}]", value) if part.strip()
    )
    urls = tuple(url.removesuffix("/chat/completions") for url in urls)
    for number, url in enumerate(urls or (value,), 1):
        if not is_http(url):
            # In what is no URL a password may stand anywhere.
            came = f"something else as number {number}" if "@" in url else repr(url)
            raise SettingsError(
                f"{setting}: expected URLs such as http://127.0.0.1:8000/v1, separated by "
                f"{separators[-1]!r}, got {came}"
            )
    return urls


def redact_url(url: str) -> str:
    """A URL fit for printing: no user, password, query or fragment.

    >>> redact_url("http://me:secret@host:1/v1?key=x")
    'http://host:1/v1'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def endpoint_name(url: str) -> str:
    """What tells one endpoint from another: its base URL, written in one way, without secrets.

    >>> endpoint_name("https://me:secret@API.openai.com:443/v1/?key=x")
    'https://api.openai.com/v1'
    >>> endpoint_name("http://localhost:8000/v1"), endpoint_name("http://0.0.0.0:8000/v1")
    ('http://127.0.0.1:8000/v1', 'http://127.0.0.1:8000/v1')
    """
    parts = urlsplit(redact_url(url))
    host = "127.0.0.1" if _host_of(url) in _THIS_MACHINE else _host_of(url)
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path.rstrip("/"), "", ""))


def endpoint_names(urls: Iterable[str]) -> tuple[str, ...]:
    """The names of an endpoint's addresses, each once, as stored replies have them."""
    return tuple(dict.fromkeys(map(endpoint_name, urls)))


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
    if proxy and not is_http(proxy):
        raise SettingsError(
            f"{parts.scheme}_proxy: expected the URL of an HTTP proxy such as "
            "http://proxy.example.org:3128 (special characters of a password written as %XX), or "
            f"{parts.hostname} in no_proxy"
        )
    return proxy


def _host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").lower().removesuffix(".")


def _address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is written as, ``None`` for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
