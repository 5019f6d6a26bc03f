"""What ``make check`` makes of an audit of our requirements."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def audit() -> ModuleType:
    """The program."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report(**fixes: list[str]) -> dict[str, Any]:
    packages = [
        {"name": name, "version": "1.0", "vulns": [{"id": f"CVE-{name}", "fix_versions": versions}]}
        for name, versions in fixes.items()
    ]
    return {"dependencies": [{"name": "fine", "version": "2", "vulns": []}, *packages], "fixes": []}


@pytest.mark.parametrize(
    ("report", "code", "words"),
    [
        pytest.param(_report(), 0, "0 vulnerabilities", id="none"),
        pytest.param(_report(a=["1.1"]), 1, "a 1.0: CVE-a, raise it to 1.1", id="mended"),
        pytest.param(_report(b=[]), 0, "b 1.0: CVE-b, no version mends it", id="not mended"),
        pytest.param(
            "no route", 0, "skipped, the package index cannot be asked: no route", id="no"
        ),
    ],
)
def test_only_what_can_be_mended_fails(
    audit: ModuleType,
    report: object,
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Vulnerabilities are told; the exit code asks for a version that there is."""
    monkeypatch.setattr(audit, "ask", lambda _: report)
    assert audit.main() == code
    assert words in capsys.readouterr().out


def test_our_own_requirements_are_audited(audit: ModuleType) -> None:
    """Those of the package, at their installed versions, without the tools of its developers."""
    names = {line.partition("==")[0] for line in audit.pinned()}
    assert {"aiohttp", "lmms-eval", "torch"} < names
    assert not names & {"pytest", "ruff", "bandit"}
    assert not [line for line in audit.pinned() if "+" in line]


def test_without_a_network_nothing_fails(audit: ModuleType) -> None:
    """Where nobody answers, the audit says so and lets the check pass."""
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTPS_PROXY"), "http://127.0.0.1:1")
    command = [sys.executable, str(ROOT / ".ci" / "audit.py")]
    done = subprocess.run(
        command, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("audit: skipped, the package index cannot be asked: ")
