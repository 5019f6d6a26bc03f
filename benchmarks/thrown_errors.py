"""Code of the engine that raises where it is told to: before any statement, or after any ``await``.

Modules are changed as they are imported, so this must be imported before them. A place is one
statement, one ``await``, one ``return`` or the body of one lambda; what it does otherwise stays.
Only the engine's own thread is concerned.
"""

from __future__ import annotations

import ast
import builtins
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final, Literal

PACKAGE: Final = "lmms_eval_captions.judges."
THREAD: Final = "judge"
MARK: Final = "thrown by the watchdog"
"""Words of every exception that is thrown."""

Kind = Literal["start", "statement", "await", "leave"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something may be raised."""

    module: str
    function: str
    line: int
    kind: Kind
    """``start`` is the first statement of a function or callback; ``leave`` its return value."""

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.function} ({self.kind})"


PLACES: Final[list[Place]] = []
"""All there are in the modules that were imported, by number."""


class Trap:
    """Counts the places that are passed, and raises at one of them."""

    def __init__(self) -> None:
        self.passed: Counter[int] = Counter()
        self.n_thrown = 0
        self._place = -1
        self._from = self._to = 0
        self._make: Callable[[], BaseException] = RuntimeError

    def arm(
        self, place: int, make: Callable[[], BaseException], *, nth: int, for_good: bool
    ) -> None:
        """Raise at a place, when it is passed for the nth time, or from then on."""
        self.passed.clear()
        self.n_thrown = 0
        self._place, self._make, self._from = place, make, nth
        self._to = sys.maxsize if for_good else nth

    def disarm(self) -> None:
        """Raise no more."""
        self._place = -1

    def before(self, place: int) -> None:
        """Pass a place."""
        if threading.current_thread().name != THREAD:
            return
        self.passed[place] += 1
        if place == self._place and self._from <= self.passed[place] <= self._to:
            self.n_thrown += 1
            raise self._make()

    def after(self, place: int, value: Any) -> Any:  # noqa: ANN401 - whatever the code has there
        """Pass a place that has a value."""
        self.before(place)
        return value


TRAP: Final = Trap()


class _Changer(ast.NodeTransformer):
    """Puts places into the functions of one module."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._functions: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._functions.append(node.name)
        self.generic_visit(node)
        self._functions.pop()
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        if self._functions:
            node.body = self._after(node.body, "start", node.lineno)
        return node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        self.generic_visit(node)
        return self._after(node, "await", node.lineno)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._functions.append(node.name)
        docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        node.body = docstring + self._block(node.body[len(docstring) :], "start")
        self._functions.pop()
        return node

    def _block(self, body: Sequence[ast.stmt], first: Kind = "statement") -> list[ast.stmt]:
        changed: list[ast.stmt] = []
        for index, statement in enumerate(body):
            if not isinstance(statement, ast.Nonlocal | ast.Global):
                call = self._call("__before__", statement.lineno, "statement" if index else first)
                changed.append(ast.copy_location(ast.Expr(call), statement))
            changed.append(self._statement(statement))
        return changed

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.visit(statement)
            return statement
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                setattr(statement, name, self.visit(value))
            elif not isinstance(value, list):
                continue
            elif value and isinstance(value[0], ast.stmt):
                setattr(statement, name, self._block(value))
            else:
                for part in value:
                    if isinstance(part, ast.ExceptHandler | ast.match_case):
                        part.body = self._block(part.body)
                    elif isinstance(part, ast.AST):
                        self.visit(part)
        if isinstance(statement, ast.Return) and statement.value is not None:
            statement.value = self._after(statement.value, "leave", statement.lineno)
        return statement

    def _after(self, value: ast.expr, kind: Kind, line: int) -> ast.expr:
        call = self._call("__after__", line, kind)
        call.args.append(value)
        return ast.copy_location(call, value)

    def _call(self, name: str, line: int, kind: Kind) -> ast.Call:
        number = len(PLACES)
        PLACES.append(Place(self._module, ".".join(self._functions), line, kind))
        return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(number)], [])


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        tree = _Changer(fullname.removeprefix(PACKAGE)).visit(ast.parse(source))
        code = compile(ast.fix_missing_locations(tree), self.path, "exec")
        assert isinstance(code, CodeType)  # noqa: S101 - of a module
        return code


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(PACKAGE):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path)
        return spec


def install() -> None:
    """Change the engine's modules as they are imported from here on."""
    vars(builtins).update(__before__=TRAP.before, __after__=TRAP.after)
    sys.meta_path.insert(0, _Finder())
