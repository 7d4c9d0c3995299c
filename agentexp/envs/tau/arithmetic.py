"""The tool `calculate`. Both releases run `eval` on the model's text; here it is parsed and worked out, so no
text of a model is ever run, and none can keep the machine busy.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

_LETTERS = frozenset("0123456789+-*/(). ")
_LONGEST = 300  # characters
_LARGEST_POWER = 1000  # binary digits
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def calculate(expression: str) -> str:
    """The value, rounded to cents. ValueError says what is wrong.

    >>> calculate("(2 + 3) * 1.5 / 4")
    '1.88'
    """
    if not isinstance(expression, str) or not _LETTERS.issuperset(expression):
        raise ValueError("Invalid characters in expression")
    if len(expression) > _LONGEST:
        raise ValueError(f"The expression has {len(expression)} characters; at most {_LONGEST} are allowed")
    try:
        return str(round(float(_value(ast.parse(expression.strip(), mode="eval").body)), 2))
    except SyntaxError as error:
        raise ValueError(f"The expression cannot be read: {error.msg}") from error
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"The expression has no value: {error}") from error


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=op, operand=inner) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(inner))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError("The expression cannot be read: only numbers, + - * / and parentheses are allowed")


def _power(base: float, exponent: float) -> float:
    if math.log2(abs(base) + 1) * abs(exponent) > _LARGEST_POWER:
        raise ValueError("The expression has too large a power")
    if base < 0 and exponent != int(exponent):
        raise ValueError("The expression has no value: a root of a negative number")
    value: float = base**exponent
    return value
