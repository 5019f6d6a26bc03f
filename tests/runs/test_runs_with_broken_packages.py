"""A run that a package's version breaks ends with that version and the command that helps."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import filelock
import pytest

from runs import environment


def _release(folder: Path, name: str, number: str) -> Path:
    """A folder of packages that takes precedence, with the metadata of one release."""
    metadata = folder / f"{name}-{number}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")
    return folder


def _filelock(folder: Path) -> Path:
    """Make filelock 4: no private module `_api`, which lmms-eval 0.7.3 imports."""
    shutil.copytree(Path(filelock.__file__).parent, folder / "filelock")
    (folder / "filelock" / "_api.py").rename(folder / "filelock" / "_core.py")
    for file in (folder / "filelock").glob("*.py"):
        file.write_text(re.sub(r"\b_api\b", "_core", file.read_text()))
    return _release(folder, "filelock", "4.3.1")


def _accelerate(folder: Path) -> Path:
    """Breaks the import of lmms-eval before it loads its plug-ins."""
    (folder / "accelerate").mkdir(parents=True)
    (folder / "accelerate" / "__init__.py").touch()
    return _release(folder, "accelerate", "9.0.0")


@pytest.mark.parametrize(
    ("make", "found", "command"),
    [
        (_filelock, "filelock 4.3.1", "pip install 'filelock<4'"),
        (_accelerate, "accelerate 9.0.0", "pip install 'accelerate<2'"),
    ],
    ids=["while it runs", "while it is imported"],
)
def test_the_last_line_has_package_version_and_command(
    make: Callable[[Path], Path], found: str, command: str, tmp_path: Path
) -> None:
    """The tested version is the installed one; the broken one only takes precedence over it."""
    tested = version(found.split(maxsplit=1)[0])
    arguments = ["run", "--model", "caption_baseline", "--tasks", "vdc_camera", "--limit", "1"]
    done = subprocess.run(
        [Path(sys.executable).with_name("lmms-eval-captions"), *arguments],
        env={**environment(tmp_path), "PYTHONPATH": str(make(tmp_path / "packages"))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1]
    assert f"{found} is installed, {tested} is known to work. Run: {command}" in last
    assert done.returncode == 1
