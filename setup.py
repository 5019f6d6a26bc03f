"""Names the packages: the root and all folders of these four, under one name."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = "lmms_eval_captions"
ROOMS = ("judges", "lmms_eval_tasks", "metrics", "model_wrappers")


class BuildPackages(build_py):
    """Leaves this file out, which stands beside the root's one module."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Modules of a package, each with its name and its file."""
        modules = super().find_package_modules(package, package_dir)
        return [each for each in modules if package != ROOT or each[1] == "__init__"]


setup(
    packages=[
        ROOT,
        *(
            f"{ROOT}.{name}"
            for room in ROOMS
            for name in find_packages(include=[room, f"{room}.*"])
        ),
    ],
    cmdclass={"build_py": BuildPackages},
)
