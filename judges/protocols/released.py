"""VDC's wording as its authors released it, read from an installed lmms-eval, which has the same.

Source: AuroraCap's ``post_eval/process_vdc_result.py`` (rese1f/aurora), in lmms-eval's
``tasks/vdc/utils.py``. The file is parsed and not run: it needs SGLang and variables of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.errors import INSTALL_EVAL, SettingsError

Messages = list[dict[str, str]]

_FUNCTIONS: Final = {"vdc_answer": "gener_pred_response", "vdc_match": "gener_pred_score"}
_SLOTS: Final = {
    "pred_cap": "caption", "q": "question", "question": "question", "answer": "answer",
    "pred_answer": "predicted_answer",
}  # fmt: skip
"""Names in the script to those of our prompts' slots."""


@cache
def released_prompts() -> Mapping[str, Mapping[str, Messages]]:
    """Return the prompts by our names, as their files have them.

    Raises:
        SettingsError: If lmms-eval is not installed, or has another wording.
    """
    spec = find_spec("lmms_eval")
    places = (spec and spec.submodule_search_locations) or []
    path = next((Path(place) / "tasks" / "vdc" / "utils.py" for place in places), None)
    if path is None:
        raise SettingsError(
            "LMMS_CAPTIONS_JUDGE=as-published: VDC's released wording is read from lmms-eval, "
            f"which is not installed. Run: {INSTALL_EVAL}"
        )
    try:
        tree = ast.parse(path.read_text("utf-8"))
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        return {
            name: {"messages": list(_messages(functions[function]))}
            for name, function in _FUNCTIONS.items()
        }
    except (OSError, SyntaxError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(
            f"LMMS_CAPTIONS_JUDGE=as-published: {path} does not hold VDC's released wording as "
            f"lmms-eval 0.7.3 does ({error!r:.120})"
        ) from error


def _messages(function: ast.FunctionDef) -> Iterator[dict[str, str]]:
    for statement in function.body:
        call = statement.value if isinstance(statement, ast.AugAssign) else None
        role = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and role in ("system", "user"):
            yield {"role": role, "content": _text(call.args[0])}


def _text(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(
        str(ast.literal_eval(part)) if isinstance(part, ast.Constant) else _slot(part)
        for part in parts
    )


def _slot(part: ast.expr) -> str:
    value = part.value if isinstance(part, ast.FormattedValue) else part
    name = ast.literal_eval(value.slice) if isinstance(value, ast.Subscript) else value.id  # type: ignore[attr-defined] # a name, else another wording
    return f"{{{{{_SLOTS[str(name)]}}}}}"
