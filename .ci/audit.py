"""Are there known vulnerabilities in what this package requires itself?

Asks the package index through pip-audit about the installed versions of our own requirements: those
whose versions we choose. Exit code 1 where one has a vulnerability that another version mends. What
no version mends is only told, and so is an index that cannot be reached: a check that needs the
network must not stop work without it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

PACKAGE: Final = "lmms-eval-captions"
_TIMEOUT_S: Final = 120.0
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def pinned() -> list[str]:
    """Our requirements at their installed versions, as lines of a requirements file."""
    lines = []
    for requirement in requires(PACKAGE) or ():
        name = _NAME.match(requirement)
        if name is None or ("extra ==" in requirement and 'extra == "eval"' not in requirement):
            continue
        try:
            # What follows a plus is a build's own name, which the index does not know.
            lines.append(f"{name[0]}=={version(name[0]).partition('+')[0]}")
        except PackageNotFoundError:
            continue  # of another platform
    return lines


def ask(lines: Sequence[str]) -> Mapping[str, object] | str:
    """pip-audit's report, or why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("\n".join(lines))
        options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--timeout", "10"]
        command = [sys.executable, "-m", "pip_audit", "-f", "json", *options, "-r", str(file)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_TIMEOUT_S:g} s"
    try:
        report: Mapping[str, object] = json.loads(done.stdout)
    except ValueError:
        return (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
    return report


def findings(report: Mapping[str, object]) -> tuple[list[str], bool]:
    """Return the lines of a report, and True if any finding can be fixed."""
    lines, can_be_mended = [], False
    packages = report["dependencies"]
    for package in packages if isinstance(packages, list) else ():
        for found in package.get("vulns", ()):
            fixed = ", ".join(found["fix_versions"])
            can_be_mended |= bool(fixed)
            advice = f"raise it to {fixed}" if fixed else "no version mends it"
            lines.append(f"{package['name']} {package['version']}: {found['id']}, {advice}")
    return lines, can_be_mended


def main() -> int:
    """Ask, tell, and say by the exit code whether there is something to do."""
    lines = pinned()
    report = ask(lines)
    if isinstance(report, str):
        print(f"audit: skipped, the package index cannot be asked: {report}")
        return 0
    told, can_be_mended = findings(report)
    print("\n".join([f"audit: {len(lines)} requirements, {len(told)} vulnerabilities", *told]))
    return int(can_be_mended)


if __name__ == "__main__":
    sys.exit(main())
