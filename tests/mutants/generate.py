"""The mutants of a source file: mutmut's mutations, and three of our own that it lacks.

mutmut's own runner is not used: it leaves out decorated functions and everything outside of functions,
which is most of ``rules/lint/checks``.
"""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import libcst as cst
import libcst.matchers as m
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_assignment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Not mutated: types, imports, docstrings, and what only serves type checking or the log.
_SKIPPED: Final = m.OneOf(
    m.Annotation(),
    m.Import(),
    m.ImportFrom(),
    m.Expr(m.OneOf(m.SimpleString(), m.ConcatenatedString())),
    m.If(test=m.Name("TYPE_CHECKING")),
    m.Assign(targets=[m.AssignTarget(m.Name("__all__"))]),
    m.Expr(m.Call(func=m.Attribute(value=m.OneOf(m.Name("logger"), m.Name("_log"))))),
    m.Call(func=m.Attribute(attr=m.Name("getLogger"))),
    m.Arg(keyword=m.Name("strict")),
    m.Call(func=m.OneOf(m.Name("TypeVar"), m.Name("ParamSpec"))),
    # Whether dataclasses are frozen or have slots is a matter of types and memory.
    m.Decorator(m.OneOf(m.Name("dataclass"), m.Call(func=m.Name("dataclass")))),
)
#: Calls whose arguments are not left out: it always fails (len), or only matters to mypy (cast).
_KEEPS_ARGUMENTS: Final = m.OneOf(*(m.Name(name) for name in ("len", "isinstance", "cast", "issubclass")))
#: Methods that return their object, or something like it: the call is left out.
_CHAINED: Final = m.OneOf(
    *(
        m.Name(name)
        for name in (
            *("select_for_update", "filter", "exclude", "order_by", "distinct", "defer", "only"),
            *("lower", "upper", "casefold", "strip", "lstrip", "rstrip", "rstrip", "copy", "replace"),
        )
    )
)
#: Statements that are left out.
_REMOVED: Final = m.Expr(m.OneOf(m.Call(), m.Yield())) | m.Raise()
#: Conditions that other mutations change; all others are negated.
_MUTATED_TESTS: Final = m.OneOf(m.Comparison(), m.UnaryOperation(), m.BooleanOperation())
#: Characters around a change by which it is known.
_CONTEXT: Final = 40


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. ``lines`` are those of the changed statement."""

    file: str
    function: str
    lines: range
    diff: str
    source: str

    @property
    def name(self) -> str:
        """The same as long as the function and the changed line are: ``tests/mutants.toml``."""
        old, new = (
            " ".join(line[1:].strip() for line in self.diff.splitlines() if line.startswith(sign))
            for sign in "-+"
        )
        before = max(0, _shared(old, new) - _CONTEXT)
        after = max(0, _shared(old[before:][::-1], new[before:][::-1]) - _CONTEXT)
        old, new = old[before : len(old) - after], new[before : len(new) - after]
        return f"{self.function}: {old} => {new}"

    @property
    def is_in_function(self) -> bool:
        """Return True if only the code of a function differs, not what runs on import."""
        return not self.function.endswith(">")


def generate_mutants(path: Path, file: str) -> list[Mutant]:
    """Return all mutants of the file that differ from it and from each other."""
    source = path.read_text(encoding="utf-8")
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Visitor(wrapper.module, source.encode())
    wrapper.visit(visitor)
    seen = {ast.dump(ast.parse(source))}
    mutants = []
    for function, lines, mutated in visitor.found:
        try:
            dumped = ast.dump(ast.parse(mutated))
        except SyntaxError:
            continue
        if dumped not in seen:
            seen.add(dumped)
            mutants.append(Mutant(file, function, lines, _diff(source, mutated), mutated))
    return mutants


def _shared(old: str, new: str) -> int:
    """Characters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _diff(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    return "\n".join(list(lines)[2:])


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider, ByteSpanPositionProvider)

    def __init__(self, module: cst.Module, source: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, range, str]] = []
        self._module = module
        self._source = source
        self._types: list[cst.CSTNode] = []
        self._classes: list[str] = []
        self._functions: list[cst.FunctionDef] = []
        self._in_body = False
        self._statements: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if m.matches(node, _SKIPPED) or _is_text(node) or node in self._types:
            return False
        if m.matches(node, m.Call(func=m.Name("cast"))):
            self._types.append(cst.ensure_type(node, cst.Call).args[0])
        if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            self._statements.append(node)
        if isinstance(node, cst.ClassDef) and not self._functions:
            self._classes.append(node.name.value)
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node)
        for old, new in self._mutate(node):
            self.found.append((self._where(), self._lines(), self._replace(old, new)))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if self._statements and self._statements[-1] is original_node:
            self._statements.pop()
        if isinstance(original_node, cst.ClassDef) and not self._functions:
            self._classes.pop()
        if isinstance(original_node, cst.FunctionDef):
            self._functions.pop()
            self._in_body = bool(self._functions)

    def visit_FunctionDef_body(self, node: cst.FunctionDef) -> None:  # noqa: N802
        self._in_body = True

    def leave_FunctionDef_body(self, node: cst.FunctionDef) -> None:  # noqa: N802
        self._in_body = len(self._functions) > 1 or node is not self._functions[0]

    def _replace(self, old: cst.CSTNode, new: cst.CSTNode) -> str:
        if isinstance(old, cst.BaseCompoundStatement):
            return cst.ensure_type(self._module.deep_replace(old, new), cst.Module).code
        # Much faster. Parentheses are not part of the span.
        span = self.get_metadata(ByteSpanPositionProvider, old)
        if (
            isinstance(new, cst.BaseExpression)
            and isinstance(old, cst.BaseExpression)
            and new.lpar is old.lpar
        ):
            new = new.with_changes(lpar=(), rpar=())
        before = self._source[span.start : span.start + span.length].decode()
        indent, tail = before[: -len(before.lstrip())], before[len(before.rstrip()) :]
        code = indent + self._module.code_for_node(new).strip() + tail
        return (
            self._source[: span.start] + code.encode() + self._source[span.start + span.length :]
        ).decode()

    # What runs when a function is defined, defaults and decorators, is not in its body.
    def _where(self) -> str:
        if self._functions and self._in_body:
            return ".".join([*self._classes, self._functions[0].name.value])
        return ".".join([*self._classes, "<module>"])

    def _lines(self) -> range:
        statement = self._statements[-1]
        position = self.get_metadata(PositionProvider, statement)
        body = getattr(statement, "body", None)
        end = position.end.line
        if isinstance(body, cst.IndentedBlock):
            end = max(position.start.line, self.get_metadata(PositionProvider, body.body[0]).start.line - 1)
        return range(position.start.line, end + 1)

    def _mutate(self, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
        if isinstance(node, cst.If | cst.While | cst.CompIf) and not m.matches(node.test, _MUTATED_TESTS):
            parenthesised = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            yield node.test, cst.UnaryOperation(cst.Not(), parenthesised)
        for mutated in self._mutate_here(node):
            yield node, mutated

    def _mutate_here(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        if isinstance(node, cst.SimpleString):
            yield from self._mutate_string(node)
            return
        for node_type, operator in mutation_operators:
            if not isinstance(node, node_type):
                continue
            if operator is operator_assignment and not self._in_body:
                continue  # The module would hardly be imported.
            if operator is operator_arg_removal and isinstance(node, cst.Call):
                if not m.matches(node.func, _KEEPS_ARGUMENTS):
                    yield from _mutate_arguments(node)
                continue
            yield from operator(node)
        if m.matches(node, _REMOVED):
            yield cst.Pass()
        if isinstance(node, cst.Call) and m.matches(node.func, m.Attribute(attr=_CHAINED)):
            yield cst.ensure_type(node.func, cst.Attribute).value

    @staticmethod
    def _mutate_string(node: cst.SimpleString) -> Iterator[cst.CSTNode]:
        """Another text; mutmut's variants in upper and lower case tell little more."""
        quote = node.value.index(node.quote) + len(node.quote)
        yield node.with_changes(value=f"{node.value[:quote]}XX{node.value[quote:]}")


def _is_text(node: cst.CSTNode) -> bool:
    """Return True for a message or a piece of SQL: a string with a space.

    A changed message is of no consequence, and changed SQL always fails.
    """
    if isinstance(node, cst.SimpleString):
        return " " in node.value
    if isinstance(node, cst.FormattedString):
        return any(isinstance(part, cst.FormattedStringText) and " " in part.value for part in node.parts)
    return isinstance(node, cst.ConcatenatedString)


def _mutate_arguments(node: cst.Call) -> Iterator[cst.CSTNode]:
    """Leave arguments out or make them None, except messages and ``strict`` of ``zip``, an assertion."""
    kept = {
        id(arg) for arg in node.args if _is_text(arg.value) or (arg.keyword and arg.keyword.value == "strict")
    }
    for mutated in operator_arg_removal(node):
        if kept <= {id(arg) for arg in cst.ensure_type(mutated, cst.Call).args}:
            yield mutated
