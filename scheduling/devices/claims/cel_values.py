"""The values of CEL selectors: their types, their operators, and the errors of expressions.

Values are Python's, but for quantities, semantic versions, optional values and domains.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from scheduling.devices.claims.cel_syntax import MAX_INT, MIN_INT
from scheduling.model.quantity import InvalidQuantity, parse_quantity

MAX_TEXT: Final = 64 * 1024
MAX_READ: Final = 256
"""How many characters a text may have that is matched, or read as a number, a quantity or a version, and a pattern."""
_NO_TEXT: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class CelError(ValueError):
    """An expression that cannot be compiled, or cannot be evaluated for a device."""

    def __init__(self, message: str) -> None:
        """Escape characters that databases and pages refuse: the message may quote a tenant's texts."""
        super().__init__(_NO_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", message))


class CelTooCostly(CelError):
    """An evaluation that has used all its steps. No part of the expression can recover from it."""


class Quantity(NamedTuple):
    """A Kubernetes quantity, in nano units."""

    nanos: int


class Semver(NamedTuple):
    """A semantic version: numbers, whether it is a release, and the parts of a pre-release in their order."""

    numbers: tuple[int, ...]
    is_release: bool
    parts: tuple[tuple[int, int, str], ...]


class Domains(dict[str, Any]):
    """Attributes or capacities by domain. One that a device lacks is empty."""

    def __missing__(self, _key: str) -> dict[str, Any]:
        return {}


class Optional(NamedTuple):
    """The value of an optional field or key, if it is there."""

    is_there: bool
    value: Any


_SEMVER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


def semver(text: str) -> Semver:
    """Raises CelError if the text is not a semantic version."""
    match = _SEMVER.fullmatch(short(text))
    if match is None:
        raise CelError(f'"{text}" is not a semantic version')
    before = [part for part in (match[4] or "").split(".") if part]
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in before)
    return Semver(tuple(int(match[group]) for group in (1, 2, 3)), not before, parts)


def quantity(text: str) -> Quantity:
    """Raises CelError if the text is not a quantity."""
    try:
        return Quantity(parse_quantity(short(text)))
    except InvalidQuantity as error:
        raise CelError(str(error)) from error


def short(text: str) -> str:
    """Return the text. Raises CelError if it is too long to be read."""
    if len(text) > MAX_READ:
        raise CelError(f'"{text[:16]}..." has more than {MAX_READ} characters')
    return text


def truth(value: Any) -> bool:
    """Return a bool. Raises CelError for another type."""
    if not isinstance(value, bool):
        raise CelError(f"no such overload: {type_name(value)} is not a bool")
    return value


def number(value: Any) -> Any:
    """Return an int or a double. Raises CelError for another type."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CelError(f"no such overload: {type_name(value)} is not a number")
    return value


def bounded(value: Any) -> Any:
    """Return the value. Raises CelError for an integer beyond 64 bits, the size of CEL's integers."""
    if isinstance(value, int) and not MIN_INT <= value <= MAX_INT:
        raise CelError("integer overflow")
    return value


def type_name(value: Any) -> str:
    """Return CEL's name of the value's type."""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return "null"


_TYPES: Final = (
    (bool, "bool"), (int, "int"), (float, "double"), (str, "string"), (list, "list"), (dict, "map"),
    (Quantity, "Quantity"), (Semver, "Semver"), (Optional, "optional"),
)  # fmt: skip
_NUMBERS: Final = ("int", "double")
SIZED: Final = (str, list, dict, Optional)


def equal(left: Any, right: Any) -> bool:
    kinds = type_name(left), type_name(right)
    return (kinds[0] == kinds[1] or set(kinds) <= set(_NUMBERS)) and bool(left == right)


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(left: Any, right: Any) -> bool:
        kinds = type_name(left), type_name(right)
        if (kinds[0] != kinds[1] or kinds[0] not in ("string", "bool")) and not set(kinds) <= set(_NUMBERS):
            raise CelError(f"no such overload: {kinds[0]} and {kinds[1]} cannot be ordered")
        return compare(left, right)

    return compared


def _calculated(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def calculated(left: Any, right: Any) -> Any:
        kinds = type_name(left), type_name(right)
        if compute is operator.add and kinds[0] == kinds[1] and kinds[0] in ("string", "list"):
            if len(left) + len(right) > MAX_TEXT:
                raise CelError(f"produces more than {MAX_TEXT} characters or members")
            return left + right
        if kinds[0] != kinds[1] or kinds[0] not in _NUMBERS:
            raise CelError(f"no such overload: {kinds[0]} and {kinds[1]}")
        try:
            return bounded(compute(left, right))
        except ZeroDivisionError as error:
            raise CelError("division by zero") from error

    return calculated


def _divided(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return left / right
    share = abs(left) // abs(right)
    return share if (left < 0) is (right < 0) else -share


def _remainder(left: Any, right: Any) -> Any:
    return left - right * _divided(left, right)


def contains(member: Any, holder: Any) -> bool:
    """Evaluate CEL's `in`: whether a list has the member, or a map the key."""
    if isinstance(holder, dict):
        return isinstance(member, str | int | bool) and member in holder
    if isinstance(holder, list):
        return any(equal(member, each) for each in holder)
    raise CelError(f"no such overload: in {type_name(holder)}")


OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "in": contains,
    "+": _calculated(operator.add),
    "-": _calculated(operator.sub),
    "*": _calculated(operator.mul),
    "/": _calculated(_divided),
    "%": _calculated(_remainder),
}
