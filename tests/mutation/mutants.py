"""Small mistakes, made in the source of a module one at a time.

The mutation testers at hand do not fit this code: Cosmic Ray's parser knows no `match` statement,
and mutmut leaves out what stands outside functions, and every property, and so the tables that
decide. Hence these, on the parser of the standard library. What a message says is left alone, and
so are annotations.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitAnd,
}
_FUNCTIONS = {"min": "max", "max": "min", "all": "any", "any": "all"}


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake.

    Args:
        line: The line of the mistake, from 1.
        last: The line where what was replaced ended.
        before: What stood there, on one line.
        after: What stands there now, on one line.
        source: The module's whole text with the mistake.
    """

    line: int
    last: int
    before: str
    after: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module's *source*, in the order of its lines."""
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    offsets = [0, *itertools.accumulate(len(line.encode()) for line in lines)]
    data = source.encode()
    mistakes = sorted(
        _mistakes(tree, _members(tree)),
        key=lambda mistake: (mistake[0].lineno, mistake[0].col_offset),
    )
    for node, text in mistakes:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = offsets[node.lineno - 1] + node.col_offset
        end = offsets[node.end_lineno - 1] + node.end_col_offset
        first, last = offsets[node.lineno - 1], offsets[node.end_lineno]
        yield Mutant(
            node.lineno,
            node.end_lineno,
            " ".join(data[first:last].decode().split()),
            " ".join((data[first:start] + text.encode() + data[end:last]).decode().split()),
            (data[:start] + text.encode() + data[end:]).decode(),
        )


_Mistake = tuple[ast.expr | ast.stmt, str]
"""What is replaced, and by what."""


def _mistakes(node: ast.AST, members: dict[str, list[str]]) -> Iterator[_Mistake]:
    if isinstance(node, ast.expr):
        yield from _in_expression(node, members)
    elif isinstance(node, ast.stmt):
        yield from _in_statement(node)
    yield from _in_condition(node)
    if isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield node.type, "()"
    for child in _children(node):
        yield from _mistakes(child, members)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may be mutated within *node*: no annotation, no message."""
    if isinstance(node, ast.JoinedStr):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _in_expression(node: ast.expr, members: dict[str, list[str]]) -> Iterator[_Mistake]:
    match node:
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                for other in _COMPARISONS[type(operator)]:
                    ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                    yield node, _text(ast.Compare(node.left, ops, node.comparators))
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, _text(ast.BoolOp(other, node.values))
        case ast.BinOp(left, operator, right) if type(operator) in _ARITHMETIC:
            yield node, _text(ast.BinOp(left, _ARITHMETIC[type(operator)](), right))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield node, _text(operand)
        case ast.Constant(bool() as value):
            yield node, repr(not value)
        case ast.Constant(int() | float() as value):
            for other in (value + 1, value - 1):
                if other != value:  # as with 1e300
                    yield node, repr(other)
        case ast.Call(ast.Name(name) as function) if name in _FUNCTIONS:
            yield function, _FUNCTIONS[name]
        case ast.Attribute(ast.Name(owner), member) if member in members.get(owner, ()):
            known = members[owner]
            if len(known) > 1:
                yield node, f"{owner}.{known[(known.index(member) + 1) % len(known)]}"
        case _:
            pass


def _in_statement(node: ast.stmt) -> Iterator[_Mistake]:
    match node:
        case ast.Expr(ast.Call()) | ast.Raise() | ast.Assign([ast.Attribute()]):
            yield node, "pass"
        case ast.AugAssign(target, operator, value):
            yield node, "pass"
            other = _ARITHMETIC.get(type(operator))
            if other is not None:
                yield node, ast.unparse(ast.AugAssign(target, other(), value))
        case ast.Continue():
            yield node, "break"
        case ast.Break():
            yield node, "continue"
        case ast.For():
            yield node.iter, "()"
        case _:
            pass


def _in_condition(node: ast.AST) -> Iterator[_Mistake]:
    match node:
        case ast.If(ast.Name(id="TYPE_CHECKING")):
            return  # only type checkers execute it
        case ast.If(test) | ast.IfExp(test) | ast.While(test) | ast.Assert(test):
            conditions = [test]
        case ast.comprehension():
            conditions = node.ifs
        case ast.match_case(guard=ast.expr() as guard):
            conditions = [guard]
        case _:
            return
    for condition in conditions:
        # A comparison alone, or a `not`, is turned round already.
        plain = isinstance(condition, ast.Compare) and len(condition.ops) == 1
        if not plain and not isinstance(condition, ast.UnaryOp):
            yield condition, _text(ast.UnaryOp(ast.Not(), condition))


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _members(tree: ast.AST) -> dict[str, list[str]]:
    """Return the members of enumerations that the module names, by the name of their class."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(owner), member) if (
                owner[0].isupper() and not owner.isupper() and member.isupper()
            ):
                names = found.setdefault(owner, [])
                if member not in names:
                    names.append(member)
            case _:
                pass
    return found
