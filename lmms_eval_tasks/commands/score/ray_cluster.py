"""Joining a Ray cluster, or starting one on this machine, without noise."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lmms_eval_captions.judges.errors import SettingsError

_QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    # Otherwise a warning about a later version's default.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Says of every actor that its arguments might get lost.
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}
_MIN_CPUS: Final = 4
_CONNECT_TIMEOUT_S: Final = 5.0


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Be part of a Ray cluster.

    Keys of judges are never handed on: scorers find them in the environment of their node, which
    is this process's own where the cluster is started here, and that of ``ray start`` elsewhere.

    Args:
        address: ``None`` starts Ray on this machine; ``auto`` or ``host:port`` joins a cluster.

    Raises:
        SettingsError: If Ray is not installed, or there is no cluster at the address.
    """
    _check_that_it_listens(address)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise SettingsError(
            f"--engine ray needs Ray Data ({error}): pip install 'lmms-eval-captions[ray]'"
        ) from error
    if ray.is_initialized():
        with _quiet_logs():
            yield
        return
    with _quiet_logs():
        try:
            if address is None:
                # Its tasks wait for files and judges, so that there are some on a small machine.
                ray.init(
                    "local",
                    num_cpus=max(_MIN_CPUS, os.cpu_count() or 1),
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            else:
                ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SettingsError(
                f"--address {address or 'of this machine'}: Ray could not be reached: {error}; "
                "RAY_AUTH_MODE (token or disabled) must be here what it is there"
            ) from error
        try:
            yield
        finally:
            ray.shutdown()


def _check_that_it_listens(address: str | None) -> None:
    # Ray itself tries for minutes.
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdecimal() or "://" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise SettingsError(
            f"--address {address}: expected the head of a Ray cluster, got no answer: {error}"
        ) from error


def n_nodes() -> int:
    """Nodes of the cluster that can work."""
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call] # Ray leaves it untyped
    return max(1, len([node for node in nodes if node["Alive"] and "CPU" in node["Resources"]]))


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Ray's own words end in its log files; what went wrong reaches the user as an error."""
    logger = logging.getLogger("ray.data")
    levels = [(handler, handler.level) for handler in logger.handlers]
    for handler in logger.handlers:
        if handler.name == "console":
            handler.setLevel(logging.CRITICAL)
    root = logging.getLogger("ray")
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)
        for handler, before in levels:
            handler.setLevel(before)
