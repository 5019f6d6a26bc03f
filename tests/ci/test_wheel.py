"""Wheel and source archive of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "analysis", "cli", "construction", "judges", "lmms_eval_tasks", "metrics", "model_wrappers",
    "scorer",
    "verification",
)  # fmt: skip
PACKAGE = "lmms_eval_captions"
OF_ROOT = ("__init__.py", "constraints.txt", "py.typed")
"""Files of the root that are installed."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from a copy, since building leaves files."""
    source, out = tmp_path_factory.mktemp("source") / "project", tmp_path_factory.mktemp("dist")
    generated = shutil.ignore_patterns("__pycache__", ".*_cache", ".venv*", ".git", "*.egg-info")
    shutil.copytree(ROOT, source, symlinks=True, ignore=generated)
    for kind in ("wheel", "sdist"):
        build = f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})"
        done = subprocess.run(
            (sys.executable, "-c", build), cwd=source, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    [file] = built.glob("*.whl")
    return file


def test_the_sdist_has_tests_docs_and_changelog(built: Path) -> None:
    """Everything a redistributor needs."""
    [file] = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("tests", "docs", "examples", "benchmarks", ".ci"):
        files = {path for path in (ROOT / folder).rglob("*") if path.is_file()}
        files = {path for path in files if "__pycache__" not in path.parts}
        assert {path.relative_to(ROOT).as_posix() for path in files} <= names
    assert {"CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Makefile", "setup.py"} <= names
    assert not [name for name in names if "__pycache__" in name]


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return archive.read(name).decode()


def test_a_package_index_shows_links_that_lead_somewhere(wheel: Path) -> None:
    """Every link and picture of the README is absolute or an anchor, and its file exists."""
    targets = re.findall(r"\]\(([^)]+)\)", _metadata(wheel))
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    prefix = re.compile(r"https://github\.com/[\w-]+/lmms-eval-captions/(?:blob|raw)/main/([^#]+)")
    files = [found[1] for target in targets if (found := prefix.match(target))]
    assert len(files) > 10
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_torch_and_lmms_eval_come_with_the_extra_alone(wheel: Path) -> None:
    """A base install has neither."""
    lines = re.findall(r"^Requires-Dist: (.+)$", _metadata(wheel), re.MULTILINE)
    for package in ("torch", "lmms-eval", "transformers", "accelerate", "av", "decord", "datasets"):
        found = [line for line in lines if re.match(rf"{package}\b(?!-)", line)]
        assert found
        assert all("extra ==" in line for line in found)


@pytest.mark.parametrize(
    ("system", "machine", "is_required"),
    [
        ("linux", "x86_64", True),
        ("win32", "AMD64", True),
        ("darwin", "x86_64", False),
        ("darwin", "arm64", False),
        ("linux", "aarch64", False),
    ],
)
def test_decord_is_required_where_it_has_wheels(
    wheel: Path, system: str, machine: str, is_required: bool
) -> None:
    """Elsewhere PyAV reads the clips."""
    [line] = re.findall(r"^Requires-Dist: (decord.+)$", _metadata(wheel), re.MULTILINE)
    marker = Requirement(line).marker
    assert marker is not None
    platform = {"sys_platform": system, "platform_machine": machine, "extra": "eval"}
    assert marker.evaluate(platform) is is_required


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
    shutil.unpack_archive(wheel, site, "zip")
    user = tmp_path / "user.py"
    user.write_text(
        f"from {PACKAGE} import Scorer\nfrom {PACKAGE}.judges.protocols import reading\n"
        "reading.nothing\nScorer.nothing\n"
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
    report = "analysis/report"
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
