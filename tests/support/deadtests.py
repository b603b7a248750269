"""Finds tests that cannot fail, as far as ruff does not: nothing asserted, results dropped.

Bare comparisons (B015), tuples (F631) and strings (PLW0129) in `assert` and the global generator of
NumPy (NPY002) are ruff's.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

# `check` is what scikit-learn's parametrize_with_checks hands to a test.
CHECKING_CALLS = {"raises", "warns", "deprecated_call", "fail", "check"}
CHECKING_PREFIXES = ("assert", "check_", "expect")
VERDICTS = {
    "approx", "allclose", "array_equal", "isclose", "isnan", "isfinite", "all", "any",
    "isinstance", "issubclass", "startswith", "endswith", "array_equiv",
}  # fmt: skip
REASONED = {"skip", "skipif", "xfail", "importorskip"}
# Base dependencies and the package itself: such a skip could only hide a fault.
ALWAYS_INSTALLED = {
    "wellsep", "numpy", "scipy", "sklearn", "joblib", "narwhals", "array_api_compat",
}  # fmt: skip


@functools.cache
def _nodes(source: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(source)))


def defects(source: str) -> list[str]:
    """One sentence for each place of a test module that cannot fail."""
    nodes = _nodes(source)
    checking = _calls_and_asserts(nodes)
    helpers = _asserting_functions(checking)
    found = [f"line {line}: {what}" for line, what in _tests_without_checks(checking, helpers)]
    inside_raises = {
        id(node)
        for block in nodes
        if isinstance(block, ast.With) and any(_is_raises(item) for item in block.items)
        for node in ast.walk(block)
    }
    for node in nodes:
        if isinstance(node, ast.Expr) and id(node) not in inside_raises:
            found += [f"line {node.lineno}: {what}" for what in _dropped(node.value)]
        elif isinstance(node, ast.Assert):
            found += [f"line {node.lineno}: {what}" for what in _always_true(node.test)]
        elif isinstance(node, ast.Try) and _swallows(node):
            found.append(f"line {node.lineno}: a failing assertion is swallowed by except")
        found += [f"line {line}: {what}" for line, what in _without_reason(node)]
    return sorted(set(found))


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_raises(item: ast.withitem) -> bool:
    return _name(item.context_expr) in CHECKING_CALLS


def _checks(node: ast.AST, helpers: set[str]) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = _name(node)
    return name in CHECKING_CALLS or name in helpers or name.startswith(CHECKING_PREFIXES)


Functions = list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[ast.AST]]]


def _calls_and_asserts(nodes: list[ast.AST]) -> Functions:
    """Each function with the nodes in it that may check something."""
    return [
        (function, [n for n in ast.walk(function) if isinstance(n, ast.Assert | ast.Call)])
        for function in nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _asserting_functions(functions: Functions) -> set[str]:
    """Names of the module's own functions that assert, directly or through each other."""
    helpers: set[str] = set()
    while True:
        more = {f.name for f, inside in functions if any(_checks(n, helpers) for n in inside)}
        if more == helpers:
            return helpers
        helpers = more


def _tests_without_checks(functions: Functions, helpers: set[str]) -> Iterator[tuple[int, str]]:
    for function, inside in functions:
        if not isinstance(function, ast.FunctionDef) or not function.name.startswith("test"):
            continue
        others = helpers - {function.name}
        if not any(_checks(node, others) for node in inside):
            yield function.lineno, f"{function.name} asserts nothing"
        elif not any(_checks(node, others) for node in _unconditional(function.body)):
            yield function.lineno, f"{function.name} asserts only under a condition"


def _unconditional(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes but those that an `if` without an asserting `else` may leave out."""
    for statement in statements:
        if isinstance(statement, ast.If):
            if statement.orelse:
                yield from _unconditional(statement.orelse)
        elif isinstance(statement, ast.With | ast.For | ast.While | ast.Try):
            if isinstance(statement, ast.With):
                for item in statement.items:
                    yield from ast.walk(item)
            yield from _unconditional(statement.body)
        else:
            yield from ast.walk(statement)


def _dropped(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.BoolOp) and _name(value.values[-1]) in {"skip", "fail"}:
        return  # `condition and pytest.skip(...)` acts
    if isinstance(value, ast.BoolOp):
        yield "a condition without assert"
    elif isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not):
        yield "a negation without assert"
    elif isinstance(value, ast.Call) and _name(value) in VERDICTS:
        yield f"{_name(value)}() without assert"


def _always_true(test: ast.expr) -> Iterator[str]:
    if isinstance(test, ast.Constant) and test.value:
        yield "asserts a constant"
    elif isinstance(test, ast.List | ast.Dict | ast.Set):
        yield "asserts a literal, which is true unless empty"
    elif isinstance(test, ast.Lambda | ast.GeneratorExp):
        yield "asserts an object that is always true"
    elif isinstance(test, ast.Attribute) and test.attr in VERDICTS:
        yield f"asserts the method {test.attr} without calling it"
    elif isinstance(test, ast.Call) and _name(test) == "approx":
        yield "asserts approx() compared with nothing"
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        if any(isinstance(v, ast.Constant) and v.value for v in test.values):
            yield "asserts `or` something always true"
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        same = ast.dump(test.left) == ast.dump(test.comparators[0])
        computed = any(isinstance(n, ast.Call | ast.Await) for n in ast.walk(test.left))
        if same and not computed and isinstance(test.ops[0], ast.Eq | ast.Is | ast.LtE | ast.GtE):
            yield "compares a thing with itself"


def _swallows(node: ast.Try) -> bool:
    asserts = any(isinstance(n, ast.Assert) for s in node.body for n in ast.walk(s))
    broad = any(
        handler.type is None
        or _name(handler.type) in {"Exception", "BaseException", "AssertionError"}
        for handler in node.handlers
        if not any(isinstance(n, ast.Raise) for s in handler.body for n in ast.walk(s))
    )
    return asserts and broad


def _without_reason(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call) and _name(decorator) in REASONED:
                yield decorator.lineno, f"{_name(decorator)} without a reason"
    if not isinstance(node, ast.Call) or _name(node) not in REASONED:
        return
    of_pytest = isinstance(node.func, ast.Attribute) and (
        _name(node.func.value) in {"mark", "pytest"}
    )
    has_reason = any(k.arg in {"reason", "msg"} for k in node.keywords)
    if _name(node) == "skip" and node.args:
        has_reason = True
    if of_pytest and not has_reason:
        yield node.lineno, f"{_name(node)} without a reason"
    elif _name(node) == "importorskip" and node.args and isinstance(node.args[0], ast.Constant):
        package = str(node.args[0].value).partition(".")[0]
        if node.args[0].value == "sklearn.callback":  # from 1.9 on, above the floor
            return
        if package in ALWAYS_INSTALLED:
            yield node.lineno, f"{package} is always installed: import it"


def unseeded(source: str) -> list[str]:
    """One sentence for each source of random numbers that has no seed."""
    found = []
    for node in _nodes(source):
        if not isinstance(node, ast.Call):
            continue
        name = _name(node)
        if name in {"default_rng", "RandomState"} and not node.args and not node.keywords:
            found.append(f"line {node.lineno}: {name}() without a seed")
    return found
