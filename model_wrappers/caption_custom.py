"""The ``caption_custom`` model: a custom ``Captioner``, by the name of its class."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.base import CaptionModel
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.model_args import arguments_of, refuse_unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from lmms_eval.api.instance import Instance


class CaptionCustom(CaptionModel):
    """Stands for the class that ``--model_args class=my_module:MyCaptioner`` names.

    The module is one that can be imported, or a file in the working directory
    (``class=my_module:MyCaptioner``) or anywhere (``class=path/to/file.py:MyCaptioner``). All other
    arguments go to the class.
    """

    @classmethod
    def create_from_arguments(
        cls, arguments: Mapping[str, object], additional_config: Mapping[str, object] | None = None
    ) -> Captioner:
        """Return the user's captioner."""
        captioner = load_class(arguments.get("class"))
        typed = {k: v for k, v in arguments.items() if k != "class"}
        given = {k: v for k, v in (additional_config or {}).items() if v is not None}
        given = {**typed, **given}
        try:
            inspect.signature(captioner).bind(**given)
        except TypeError as error:
            known = arguments_of(captioner, Captioner)
            refuse_unknown(captioner.__name__, known=known, unknown=set(typed) - known)
            raise SettingsError(
                f"caption_custom: {captioner.__name__}: {error}; arguments come from --model_args, "
                "and its __init__ hands **common on to super().__init__"
            ) from error
        return captioner(**given)  # type: ignore[arg-type] # checked by each class

    def generate_until(self, requests: Sequence[Instance]) -> NoReturn:
        """Never called: lmms-eval is handed the user's captioner."""
        raise NotImplementedError("make it with create_from_arg_string")


def load_class(name: object) -> type[Captioner]:
    """Load a captioner by ``module:Class`` or ``file.py:Class``."""
    where, colon, class_name = str(name or "").rpartition(":")
    if not colon or not where or not class_name:
        raise SettingsError(
            f"caption_custom: expected --model_args class=my_module:MyCaptioner, got class={name!r}"
        )
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Captioner) and value is not Captioner
    }
    if class_name not in own:
        raise SettingsError(
            f"caption_custom: expected a subclass of Captioner, {where} has "
            f"{class_name}={getattr(module, class_name, None)!r}; its captioners are {[*own]}"
        )
    return own[class_name]


def _load_module(name: str) -> ModuleType:
    """Import a module, of the working directory, too, which ``lmms-eval`` leaves out."""
    here = str(Path.cwd())
    is_new = here not in sys.path and "" not in sys.path
    if is_new:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the module itself imports
        raise SettingsError(
            f"caption_custom: there is no module {name!r}, neither installed nor in {here}"
        ) from error
    finally:
        if is_new:
            sys.path.remove(here)


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise SettingsError(f"caption_custom: expected a Python file, found none at {path}")
    module = importlib.util.module_from_spec(spec)
    # Known under its name, so that its objects can be pickled and its annotations resolved.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
