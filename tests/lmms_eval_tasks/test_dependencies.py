"""Advice on packages: only if a version or an absence explains the error, and never a new break."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from lmms_eval_captions.lmms_eval_tasks import dependencies
from lmms_eval_captions.lmms_eval_tasks.dependencies import Dependency, advice_for


@pytest.mark.parametrize(
    ("installed", "command"),
    [
        pytest.param("6.0", "'transformers<6'", id="too new"),
        pytest.param("5.10.0", "'transformers==5.23.0'", id="too old"),
        pytest.param("5.24.0", "'transformers==5.23.0'", id="excluded"),
        pytest.param("5.22.0", "'transformers==5.23.0'", id="allowed, not tested"),
    ],
)
def test_the_command_installs_no_version_that_is_too_new(installed: str, command: str) -> None:
    """A lower bound alone would let the newest release in."""
    requirement = Requirement("transformers>=5.16,<6,!=5.24.0")
    advice = Dependency(requirement, installed, "5.23.0").advice()
    assert advice.startswith(f"transformers {installed} is installed, 5.23.0 is known to work.")
    assert advice.endswith(f"Run: pip install {command}")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ('torch>=2; extra == "eval"', "'lmms-eval-captions[eval]'"),
        ('ray[data]>=2; extra == "ray"', "'lmms-eval-captions[ray]'"),
        ("wandb", "'wandb==0.25.0'"),
    ],
)
def test_a_missing_package_comes_with_its_extra(line: str, command: str) -> None:
    """An indirect dependency has none."""
    advice = Dependency(Requirement(line), None, "0.25.0").advice()
    assert advice.endswith(f"is not installed. Run: pip install {command}")


@pytest.fixture
def other_versions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every package has a version that was never tested."""
    monkeypatch.setattr(dependencies, "version", lambda _: "0.0.1")
    dependencies.direct_dependencies.cache_clear()
    yield
    dependencies.direct_dependencies.cache_clear()


def _raised(kind: str) -> Exception:
    """Errors as they occur, with their causes."""
    try:
        try:
            raise ImportError("no name", name="transformers.models")
        except ImportError as error:
            if kind == "hidden":
                raise ValueError("a wrong setting") from None
            if kind == "caused":
                raise RuntimeError("cannot load") from error
            raise error from error
    except Exception as error:  # noqa: BLE001 - returned
        return error


@pytest.mark.parametrize(
    ("error", "package"),
    [
        pytest.param(_raised("caused"), "transformers", id="cause"),
        pytest.param(_raised("its own cause"), "transformers", id="its own cause"),
        pytest.param(_raised("hidden"), None, id="hidden context"),
        pytest.param(AttributeError("x", name="x", obj=ModuleType("av")), "av", id="attribute"),
        pytest.param(AttributeError("x", name="x", obj="text"), None, id="of no module"),
        pytest.param(ImportError("x", name="_my_captioner"), None, id="private module"),
        pytest.param(ImportError("x", name="json"), None, id="standard library"),
        pytest.param(KeyError("transformers"), None, id="another error"),
    ],
)
@pytest.mark.usefixtures("other_versions")
def test_only_an_import_or_a_missing_attribute_is_explained(
    error: Exception, package: str | None
) -> None:
    """The user's own modules and unrelated errors are nobody's fault."""
    advice = advice_for(error)
    assert (advice is None) is (package is None)
    assert advice is None or advice.startswith(f"{package} 0.0.1 is installed")
