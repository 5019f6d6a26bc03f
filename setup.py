"""Package discovery."""

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


class BuildPackages(build_py):
    """Builds the packages without this file, which lies next to the root package's one module."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules of a package, each with its name and file."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if package != ROOT or module[1] == "__init__"]


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
)
