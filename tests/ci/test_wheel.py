"""What is built of this project for others to install."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("judges", "lmms_eval_tasks", "metrics", "model_wrappers")
PACKAGE = "lmms_eval_captions"
OF_ROOT = ("__init__.py", "py.typed")
"""What is installed of the root itself."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built of a copy, since building leaves files beside the sources."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for folder in FOLDERS:
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, source / folder, ignore=left_out)
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.py", *OF_ROOT):
        shutil.copy(ROOT / name, source)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r})"
    done = subprocess.run(
        (sys.executable, "-c", build), cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [file] = out.glob("*.whl")
    return file


def test_every_file_is_in_the_wheel(wheel: Path) -> None:
    """Whatever stands in the four folders is installed, and nothing that stands beside them."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*") if file.is_file()]
    assert packed == {
        f"{PACKAGE}/{file.relative_to(ROOT).as_posix()}"
        for file in [*files, *(ROOT / name for name in OF_ROOT)]
        if "__pycache__" not in file.parts
    }


def test_an_installed_wheel_has_its_types(wheel: Path, tmp_path: Path) -> None:
    """One ``py.typed`` in each of the four folders serves the packages within, too."""
    venv.create(tmp_path / "venv")
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    user = tmp_path / "user.py"
    user.write_text(
        f"from {PACKAGE} import Scorer\nfrom {PACKAGE}.judges.protocols import fields\n"
        "fields.nothing\nScorer.nothing\n"
    )
    python = tmp_path / "venv" / "bin" / "python"
    line = (sys.executable, "-m", "mypy", "--python-executable", python, user)
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "import-untyped" not in done.stdout
    assert 'Module has no attribute "nothing"' in done.stdout


def test_every_file_of_the_report_is_packed() -> None:
    """Patterns of the package's data match the page and its chart library, licences as well."""
    tomllib = pytest.importorskip("tomllib")  # from Python 3.11 on
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    report = "lmms_eval_tasks/commands/report"
    patterns = settings["tool"]["setuptools"]["package-data"][
        f"{PACKAGE}.{report.replace('/', '.')}"
    ]
    files = {file for file in (ROOT / report / "page").rglob("*") if file.is_file()}
    packed = {file for pattern in patterns for file in (ROOT / report).glob(pattern)}
    assert files
    assert files - packed == set()
    licences = {file for file in files if file.name.startswith(("LICENSE", "NOTICE"))}
    told = {file for glob in settings["project"]["license-files"] for file in ROOT.glob(glob)}
    assert len(licences) == 3
    assert licences - told == set()
