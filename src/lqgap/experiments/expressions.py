"""Formulas in studies: a small language of numbers and named parameters, of which nothing is ever executed.

    sum     = product { ("+" | "-") product }             number, name: as in Python, without "_" in numbers
    product = signed { ("*" | "/") signed }               constant: pi
    signed  = ("+" | "-") signed | power                  function: abs cos exp log max min sin sqrt tan
    power   = atom [ "**" signed ]
    atom    = number | name | constant | function "(" sum { "," sum } ")" | "(" sum ")"

They mean what they mean in Python. A text is read once, to a tree of `Node`s, whose value is computed by JAX:
it can be traced, mapped and differentiated, and is NaN or infinite where Python would raise.
"""

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union

from lqgap.errors import did_you_mean

MAX_LENGTH, MAX_DEPTH = 200, 40  # characters of a formula; parts inside of each other
CONSTANTS = {"pi": math.pi}
UNARY = {"abs", "cos", "exp", "log", "sin", "sqrt", "tan"}
FUNCTIONS = {*UNARY, "max", "min"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
TOKEN = re.compile(rf"({NUMBER}|{NAME.pattern}|\*\*|[-+*/(),])|[^ \t]")
OPERATIONS = {  # what JAX calls them; functions of one argument have the same name
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "**": "power",
    "negate": "negative",
    "max": "maximum",
    "min": "minimum",
}

Formula = Union[float, str, "Node"]  # a number, the name of a parameter, or what is made of them


@dataclass(frozen=True)
class Node:
    """An operation or function and what it is applied to."""

    operation: str
    parts: tuple[Formula, ...]


def read_formula(text: str) -> Formula:
    """The tree of a formula; raises ValueError with the character at which it goes wrong."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a formula has at most {MAX_LENGTH} characters, and this one {len(text)}")
    return _Reader(text).whole()


def names_in(formula: Formula) -> set[str]:
    """The parameters that a formula depends on."""
    if isinstance(formula, Node):
        return set[str]().union(*map(names_in, formula.parts))
    return {formula} if isinstance(formula, str) else set()


def value_of(formula: Formula, values: Mapping[str, Any]) -> Any:
    """The value of a formula at these values of its parameters."""
    import jax.numpy as jnp

    if isinstance(formula, str):
        return jnp.asarray(values[formula], dtype=float)  # integers would overflow, and have no inverse
    if not isinstance(formula, Node):
        return formula
    function = getattr(jnp, OPERATIONS.get(formula.operation, formula.operation))
    parts = [value_of(part, values) for part in formula.parts]
    return function(*parts) if len(parts) == 1 else functools.reduce(function, parts)


def require_free_name(name: str) -> None:
    """Raise for a parameter whose name means something else in formulas, or cannot stand in one."""
    if name in FUNCTIONS or name in CONSTANTS:
        raise ValueError(f"in formulas {name} means something else: give the parameter another name")
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot stand in a formula: expected letters, digits and underscores")


class _Reader:
    """One pass over a text; `index` is that of the next word."""

    def __init__(self, text: str):
        self.index, self.depth = 0, 0
        self.words: list[str] = []
        self.places: list[int] = []
        for match in TOKEN.finditer(text):
            if match[1] is None:
                raise _error(match.start(), f"{match[0]!r} has no meaning in formulas")
            self.words.append(match[1])
            self.places.append(match.start())
        self.words.append("")  # the end
        self.places.append(len(text))

    @property
    def word(self) -> str:
        return self.words[self.index]

    def take(self, *wanted: str) -> str | None:
        """The next word, if it is one of those wanted."""
        if self.word not in wanted:
            return None
        self.index += 1
        return self.words[self.index - 1]

    def require(self, wanted: str) -> None:
        if self.take(wanted) is None:
            raise self.unexpected(repr(wanted))

    def whole(self) -> Formula:
        found = self.sum()
        if self.word:
            raise self.unexpected("an operator or the end")
        return found

    def sum(self) -> Formula:
        found = self.product()
        while sign := self.take("+", "-"):
            found = Node(sign, (found, self.product()))
        return found

    def product(self) -> Formula:
        found = self.signed()
        while sign := self.take("*", "/"):
            found = Node(sign, (found, self.signed()))
        return found

    def signed(self) -> Formula:
        self.depth += 1  # whatever is nested passes here
        if self.depth > MAX_DEPTH:
            raise _error(self.places[self.index], f"more than {MAX_DEPTH} parts inside of each other")
        sign = self.take("+", "-")
        found = self.signed() if sign else self.power()
        self.depth -= 1
        return Node("negate", (found,)) if sign == "-" else found

    def power(self) -> Formula:
        base = self.atom()
        return Node("**", (base, self.signed())) if self.take("**") else base

    def atom(self) -> Formula:
        word = self.word
        if self.take("("):
            found = self.sum()
            self.require(")")
            return found
        if NAME.fullmatch(word):
            self.index += 1
            return self.call(word) if self.word == "(" else self.name(word)
        if not word or word in OPERATIONS or word in "),":
            raise self.unexpected("a number, a name or '('")
        self.index += 1
        return float(word)

    def name(self, word: str) -> Formula:
        if word in FUNCTIONS:
            raise self.unexpected(f"'(' after the function {word}")
        return CONSTANTS.get(word, word)

    def call(self, function: str) -> Formula:
        place = self.places[self.index - 1]
        if function not in FUNCTIONS:
            known = f"; there are {', '.join(sorted(FUNCTIONS))}"
            hint = did_you_mean(function, FUNCTIONS) or known
            raise _error(place, f"there is no function {function}{hint}")
        self.require("(")
        parts = [self.sum()]
        while self.take(","):
            parts.append(self.sum())
        self.require(")")
        if (len(parts) == 1) != (function in UNARY):
            wanted = "one argument" if function in UNARY else "two arguments or more"
            raise _error(place, f"{function} has {len(parts)}, expected {wanted}")
        return Node(function, tuple(parts))

    def unexpected(self, wanted: str) -> ValueError:
        found = repr(self.word) if self.word else "the end"
        return _error(self.places[self.index], f"expected {wanted}, found {found}")


def _error(place: int, message: str) -> ValueError:
    return ValueError(f"character {place + 1}: {message}")
