"""Package discovery, and a README whose links also work on a package index."""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = "lmms_eval_captions"
FOLDERS = (
    "analysis",
    "cli",
    "construction",
    "judges",
    "lmms_eval_tasks",
    "metrics",
    "model_wrappers",
    "scorer",
    "verification",
)
REPOSITORY = "https://github.com/lmms-eval-captions/lmms-eval-captions"


class BuildPackages(build_py):
    """Builds the packages without this file, which lies next to the root package's one module."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules of a package, each with its name and file."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if package != ROOT or module[1] == "__init__"]


def readme() -> str:
    """Return the README with links to the repository where it links to files."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:)", rf"\g<1>{REPOSITORY}/raw/main/", text)
    return re.sub(r"(?<=\]\()(?!\w+:|#)", f"{REPOSITORY}/blob/main/", text)


setup(
    packages=[
        ROOT,
        *(
            f"{ROOT}.{name}"
            for folder in FOLDERS
            for name in find_packages(include=[folder, f"{folder}.*"])
        ),
    ],
    cmdclass={"build_py": BuildPackages},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
