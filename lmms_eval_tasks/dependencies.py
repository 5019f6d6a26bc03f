"""Installed packages compared with the tested ones, and advice when one of them breaks a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.resources import files
from types import ModuleType
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

DISTRIBUTION: Final = "lmms-eval-captions"
_EXTRA: Final = re.compile(r'extra == "(\w+)"')
_NAMES: Final = {"cv2": "opencv-python-headless", "google": "protobuf", "PIL": "pillow"}
"""Top-level modules whose distribution has another name."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package that we or lmms-eval need."""

    requirement: Requirement
    """Requirement of this package's metadata; without bounds for an indirect dependency."""
    installed: str | None
    tested: str | None
    """Version in ``constraints.txt``, ``None`` if it has none for this platform."""

    @property
    def is_as_tested(self) -> bool:
        """True if the tested version is installed; a local label such as ``+cpu`` may differ."""
        return self.installed is not None and Version(self.installed).public == self.tested

    @property
    def is_allowed(self) -> bool:
        """True if the installed version satisfies the requirement."""
        return self.installed is not None and not self._violated(self.installed)

    def is_needed(self, *, has_eval: bool) -> bool:
        """Return True if the base install or the extra ``eval`` needs it on this platform."""
        marker = self.requirement.marker
        return marker is None or marker.evaluate({"extra": "eval" if has_eval else ""})

    def advice(self) -> str:
        """Return what is installed, what is known to work, and the command that installs it.

        >>> Dependency(Requirement("filelock>=3.16,<4"), "4.3.1", "3.32.7").advice()
        "filelock 4.3.1 is installed, 3.32.7 is known to work. Run: pip install 'filelock<4'"
        """
        name = self.requirement.name
        if self.installed is None:
            extra = _EXTRA.search(str(self.requirement.marker))
            wanted = f"{DISTRIBUTION}[{extra[1]}]" if extra else f"{name}=={self.tested}"
            return f"{name} is not installed. Run: pip install '{wanted}'"
        violated = self._violated(self.installed)
        is_too_new = bool(violated) and all(bound.startswith("<") for bound in violated)
        wanted = ",".join(violated) if is_too_new else f"=={self.tested}"
        return (
            f"{name} {self.installed} is installed, {self.tested} is known to work. "
            f"Run: pip install '{name}{wanted}'"
        )

    def _violated(self, installed: str) -> list[str]:
        bounds = self.requirement.specifier
        return [str(bound) for bound in bounds if not bound.contains(installed, prereleases=True)]


@cache
def pinned_versions() -> dict[str, str]:
    """Return the tested version of each package that has one for this platform and Python."""
    text = (files("lmms_eval_captions") / "constraints.txt").read_text(encoding="utf-8")
    pins = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    return {
        pin.name: next(iter(pin.specifier)).version
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


@cache
def direct_dependencies() -> dict[str, Dependency]:
    """Return the packages that this package's metadata requires, those of extras included."""
    requirements = [Requirement(line) for line in requires(DISTRIBUTION) or ()]
    return {
        canonicalize_name(requirement.name): _dependency(requirement)
        for requirement in requirements
        if requirement.name != DISTRIBUTION
    }


def advice_for(error: BaseException) -> str | None:
    """Return what to install if a package's version or absence explains an error, else ``None``."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    for module in map(_module_of, reversed(causes)):
        owners = packages_distributions().get(module) or [_NAMES.get(module, module)]
        known = [name for name in map(canonicalize_name, owners) if name in pinned_versions()]
        if not known:
            continue
        name = next((name for name in known if name in direct_dependencies()), known[0])
        dependency = direct_dependencies().get(name) or _dependency(Requirement(name))
        if not (dependency.is_as_tested and dependency.is_allowed):
            return dependency.advice()
    return None


def _dependency(requirement: Requirement) -> Dependency:
    name = canonicalize_name(requirement.name)
    try:
        installed = version(name)
    except PackageNotFoundError:
        installed = None
    return Dependency(requirement, installed, pinned_versions().get(name))


def _module_of(error: BaseException) -> str:
    name = None
    if isinstance(error, ImportError):
        name = error.name
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        name = error.obj.__name__
    return (name or "").partition(".")[0]
