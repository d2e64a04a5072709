"""Lists functions, classes and parameters of src that nothing but tests uses; exits with 1 if any.

    python .ci/unreached.py

A name is used where src, examples, benchmarks, a template or the documentation's code says it
outside its own definition; a parameter with a default, where a call of that name passes it, or a
call of something else than what src defines (a class in a variable), or one passes more than can
be seen (``**options``). Private functions are pyright's to find. Parameters of what ``apbjudge``
exports, of ``apbjudge.statistics``, and of what the documentation names are the users' to pass.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src/apbjudge"
CALLED_BY_OTHERS = ("validator", "serializer", "command", "callback", "override", "property")
"""Decorators of what a library calls."""
BY_LIBRARIES = {"a_measure", "format_options", "model_validate_json"}
"""Methods that stand in for a library's."""
STOOD_IN_FOR = {"client", "clock", "events", "poll_s", "kinds", "rows", "size", "same_text"}
"""Parameters by which a program or a test stands in for a model, the time, a terminal, or asks for
one part of what there is."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def called(node: ast.AST) -> str:
    """The last part of a name, or nothing."""
    return getattr(node, "attr", getattr(node, "id", ""))


def definitions(tree: ast.AST, of: str = "") -> Iterator[tuple[str, str, ast.ClassDef | Function]]:
    """Each definition with its class and the name that a call of it says."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield of, node.name, node
            yield from definitions(node, node.name)
        elif isinstance(node, Function):
            yield of, of if node.name == "__init__" else node.name, node
        elif isinstance(node, ast.stmt):
            yield from definitions(node, of)


class Uses:
    """What the project's own code and documents say."""

    def __init__(self) -> None:
        self.names = Counter[str]()
        self.passed: defaultdict[str, set[str]] = defaultdict(set)
        self.n_positional = Counter[str]()
        self.documented = set[str]()
        self.defined = {
            name
            for path in SRC.rglob("*.py")
            for _, name, _ in definitions(ast.parse(path.read_text(encoding="utf-8")))
        }
        for folder in ("src", "examples", "benchmarks", ".ci"):
            for path in (ROOT / folder).rglob("*.py"):
                self._read(ast.parse(path.read_text(encoding="utf-8")))
        pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
        for page in pages:
            text = page.read_text(encoding="utf-8")
            self.documented.update(re.findall(r"`(\w+)[`(]", text))
            for code in re.findall(r"```python\n(.*?)```", text, re.S):
                try:
                    self._read(ast.parse(code))
                except SyntaxError:
                    continue  # shows a shape
        for template in SRC.rglob("*.j2"):
            self.names.update(re.findall(r"\w+", template.read_text(encoding="utf-8")))

    def _read(self, tree: ast.AST) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                self.names[called(node)] += 1
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.names.update(re.findall(r"\w+", node.value) if len(node.value) < 80 else ())
            elif isinstance(node, ast.Call):
                function, arguments = called(node.func), node.args
                if function == "partial" and arguments:
                    function, arguments = called(arguments[0]), arguments[1:]
                function = function if function in self.defined else ""
                self.passed[function] |= {each.arg or "**" for each in node.keywords}
                n = 99 if any(isinstance(a, ast.Starred) for a in arguments) else len(arguments)
                self.n_positional[function] = max(self.n_positional[function], n)


def idle(uses: Uses, exported: set[str]) -> Iterator[str]:
    """A line for each definition or parameter without use."""
    for path in sorted(SRC.rglob("*.py")):
        for of, name, node in definitions(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(ROOT)}:{node.lineno}: "
            by_others = any(
                word in ast.unparse(each)
                for each in node.decorator_list
                for word in CALLED_BY_OTHERS
            )
            if by_others or name.startswith(("_", "pytest_")) or node.name in BY_LIBRARIES:
                continue
            if not uses.names[name] and not {of, name} & exported:
                yield f"{place}{name} is used nowhere"
            is_users = "statistics" in path.parts or name in exported | uses.documented
            if isinstance(node, Function) and not is_users:
                for parameter in unpassed(uses, name, node, of):
                    yield f"{place}{name}: no call passes {parameter}"


def unpassed(uses: Uses, name: str, function: Function, of: str) -> Iterator[str]:
    """Parameters with a default that no call passes."""
    arguments, passed = function.args, uses.passed[name] | uses.passed[""] - {"**"}
    is_static = any(called(each) == "staticmethod" for each in function.decorator_list)
    by_place = [*arguments.posonlyargs, *arguments.args][bool(of) and not is_static :]
    first = len(by_place) - len(arguments.defaults)
    optional = [a.arg for a in by_place[max(first, uses.n_positional[name]) :]]
    optional += [
        a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d
    ]
    if "**" not in passed:
        yield from (each for each in optional if each not in passed | STOOD_IN_FOR)


def main() -> None:
    """Prints the list."""
    exported = {
        alias.asname or alias.name
        for stub in (SRC / "__init__.pyi", SRC / "statistics/__init__.pyi")
        for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lines = [*idle(Uses(), exported)]
    print(*lines, sep="\n")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
