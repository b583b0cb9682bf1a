"""Reads a CEL expression into a tree of tuples: ("call", name, target, arguments), ("key", ...), ("value", ...).

The common packages were tried: one lacks cel.bind and Kubernetes' functions and brings a terminal toolkit, the other
brings a parser generator and a time library; neither is pure (docs/decisions/0029-claims-of-devices.md).
"""

from __future__ import annotations

import re
from typing import Any, Final

Tree = tuple[Any, ...]

MAX_LENGTH: Final = 10 * 1024
"""Kubernetes' limit of a selector, in characters."""
MAX_DEPTH: Final = 64
"""How deep parentheses, brackets and arguments may be within each other."""
MAX_TREE_DEPTH: Final = 128
"""The maximum depth of the tree, including chains of operators and fields, because functions that walk it recurse this
deep."""
MAX_NODES: Final = 4_000
_MAX_DIGITS: Final = 64
MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1

_TOKEN: Final = re.compile(
    r"""\s*(?://[^\n]*(?:\n\s*|\Z))*(?:
    (?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<int>0[xX][0-9a-fA-F]+|[0-9]+)[uU]?
    |(?P<text>[rR]?(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]{}])
    |(?P<end>\Z))""",
    re.VERBOSE,
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_LEVELS: Final = (
    ("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
"""Binary operators, the loosest first."""
_LEVEL_OF: Final = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
MACROS: Final = frozenset({"all", "exists", "exists_one", "filter", "map"})


class CelSyntaxError(ValueError):
    """The expression cannot be parsed. The message names the position."""


def parse(expression: str) -> Tree:
    """Return the expression as a tree. Raises CelSyntaxError."""
    if len(expression) > MAX_LENGTH:
        raise CelSyntaxError(f"is longer than {MAX_LENGTH} characters")
    reader = _Reader(_tokens(expression))
    tree = reader.expression()
    reader.expect("")
    nodes, depth = extent(tree)
    if depth > MAX_TREE_DEPTH:
        raise CelSyntaxError(f"is nested deeper than {MAX_TREE_DEPTH}, or joins more than that many by one operator")
    if nodes > MAX_NODES:
        raise CelSyntaxError(f"has more than {MAX_NODES} parts")
    return tree


def extent(tree: Tree) -> tuple[int, int]:
    """Return the number of nodes in a tree, and its depth. The function is iterative, because the tree may be too deep
    for recursion."""
    nodes = deepest = 0
    waiting: list[tuple[Any, int]] = [(tree, 1)]
    while waiting:
        found, depth = waiting.pop()
        if isinstance(found, tuple):
            nodes += 1
            deepest = max(deepest, depth)
            depth += 1
        waiting.extend((each, depth) for each in found if isinstance(each, tuple | list))
    return nodes, deepest


def _tokens(expression: str) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    place = 0
    while True:
        match = _TOKEN.match(expression, place)
        if match is None:
            raise CelSyntaxError(
                f"has an unexpected character at {place + 1}: {expression[place : place + 10].strip()}"
            )
        kind = match.lastgroup or "end"
        found.append((kind, match[kind], match.start(kind) + 1))
        if kind == "end":
            return found
        place = match.end()


def _text(literal: str) -> str:
    if literal[0] in "rR":
        return literal[2:-1]

    def escaped(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code and 0xD800 <= int(code, 16) < 0xE000:
            raise CelSyntaxError(f"has \\u{code}, which is not a character")
        return chr(int(code, 16)) if code else _ESCAPES.get(match[3], match[3])

    return _ESCAPE.sub(escaped, literal[1:-1])


def _integer(literal: str) -> int:
    """Read a literal without its sign. The least integer is one more than the largest: its sign comes later."""
    found = MAX_INT + 2
    if len(literal) <= _MAX_DIGITS:
        found = int(literal, 16 if literal[:2] in ("0x", "0X") else 10)
    if found > MAX_INT + 1:
        raise CelSyntaxError(f"has an integer of more than 64 bits: {literal[:_MAX_DIGITS]}")
    return found


class _Reader:
    """A recursive descent over the tokens."""

    def __init__(self, tokens: list[tuple[str, str, int]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def _takes(self, *signs: str) -> str:
        """Return the next token if it is one of these signs or words; otherwise None."""
        kind, text, _ = self._tokens[self._at]
        if kind in ("sign", "word") and text in signs:
            self._at += 1
            return text
        return ""

    def expect(self, sign: str) -> None:
        kind, text, place = self._tokens[self._at]
        if (kind == "end" and not sign) or (kind == "sign" and text == sign):
            self._at += 1
            return
        wanted = f'"{sign}"' if sign else "an operator or the end"
        raise CelSyntaxError(f"needs {wanted} at {place}" + (f', not "{text}"' if text else ""))

    def expression(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelSyntaxError(f"is nested deeper than {MAX_DEPTH}")
        tree = self._binary(0)
        if self._takes("?"):
            first = self._binary(0)
            self.expect(":")
            tree = ("if", tree, first, self.expression())
        self._depth -= 1
        return tree

    def _binary(self, loosest: int) -> Tree:
        """Return a chain of operators, none looser than that level."""
        tree = self._unary()
        while (level := self._level()) >= loosest:
            sign = self._tokens[self._at][1]
            if sign in ("||", "&&"):
                tree = ("either", sign, self._sides(level, tree))
                continue
            self._at += 1
            tree = ("binary", sign, tree, self._binary(level + 1))
        return tree

    def _level(self) -> int:
        kind, text, _ = self._tokens[self._at]
        return _LEVEL_OF.get(text, -1) if kind in ("sign", "word") else -1

    def _sides(self, level: int, first: Tree) -> list[Tree]:
        """Parse the operands of && or ||: selectors may have many, so they are one node."""
        sides = [first]
        while self._takes(*_LEVELS[level]):
            sides.append(self._binary(level + 1))
        return sides

    def _unary(self) -> Tree:
        signs = []
        while sign := self._takes("!", "-"):
            signs.append(sign)
        kind, text, _ = self._tokens[self._at]
        if kind == "int" and _integer(text) > MAX_INT:
            if not signs or signs.pop() != "-":
                raise CelSyntaxError(f"has an integer of more than 64 bits: {text}")
            self._at += 1
            tree = self._member(("value", MIN_INT))
        else:
            tree = self._member(self._primary())
        for sign in reversed(signs):
            tree = ("unary", sign, tree)
        return tree

    def _member(self, tree: Tree) -> Tree:
        while sign := self._takes(".", ".?", "[", "[?"):
            if sign in ("[", "[?"):
                tree = ("key" if sign == "[" else "optional", tree, self.expression())
                self.expect("]")
                continue
            name = self._word()
            if sign == "." and self._takes("("):
                tree = ("call", name, tree, self._list(")"))
            else:
                tree = ("key" if sign == "." else "optional", tree, ("value", name))
        return tree

    def _word(self) -> str:
        kind, text, place = self._tokens[self._at]
        if kind != "word":
            raise CelSyntaxError(f"needs a name at {place}")
        self._at += 1
        return text

    def _primary(self) -> Tree:
        kind, text, place = self._tokens[self._at]
        self._at += 1
        if kind == "int":
            return ("value", _integer(text))
        if kind == "double":
            return ("value", float(text))
        if kind == "text":
            return ("value", _text(text))
        if kind == "word":
            return self._named(text)
        if text == "(":
            tree = self.expression()
            self.expect(")")
            return tree
        if text == "[":
            return ("list", self._list("]"))
        if text == "{":
            return ("map", self._entries())
        raise CelSyntaxError(f"needs a value at {place}" + (f', not "{text}"' if text else ""))

    def _named(self, name: str) -> Tree:
        if name in _CONSTANTS:
            return ("value", _CONSTANTS[name])
        return ("call", name, None, self._list(")")) if self._takes("(") else ("name", name)

    def _list(self, end: str) -> list[Tree]:
        found: list[Tree] = []
        while not self._takes(end):
            if found:
                self.expect(",")
            found.append(self.expression())
        return found

    def _entries(self) -> list[tuple[Tree, Tree]]:
        found: list[tuple[Tree, Tree]] = []
        while not self._takes("}"):
            if found:
                self.expect(",")
            key = self.expression()
            self.expect(":")
            found.append((key, self.expression()))
        return found
