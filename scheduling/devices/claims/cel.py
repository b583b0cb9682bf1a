"""CEL selectors of devices, as far as Kubernetes' examples and drivers use the language.

Understood: literals, lists and maps; == != < <= > >= in, && || !, + - * / %, ?: ; fields, keys and optional ones with
orValue and hasValue; has, all, exists, exists_one, filter, map, cel.bind; size, string, int, double, startsWith,
endsWith, contains, matches, lowerAscii, upperAscii; quantity and semver with their comparisons. An expression with
anything else does not compile, and says what it is.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from scheduling.devices.claims.cel_syntax import MACROS, CelSyntaxError, Tree, parse
from scheduling.model.quantity import InvalidQuantity, parse_quantity


class CelError(ValueError):
    """An expression that cannot be compiled, or not be evaluated for a device."""


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


class _Optional(NamedTuple):
    is_there: bool
    value: Any


MAX_STEPS: Final = 10_000
"""How many members the macros of one expression may look at, for one device."""
MAX_TEXT: Final = 64 * 1024
_STEPS: Final = "#"
MAX_REPETITIONS: Final = 3
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]|\(\?[^:]|\\[1-9]")
_REPETITION: Final = re.compile(r"[*+{]")

Names = Mapping[str, Any]
Program = Callable[[Names], Any]

_SEMVER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)


def semver(text: str) -> Semver:
    """Raises CelError for what is not a semantic version."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise CelError(f'"{text}" is not a semantic version')
    before = [part for part in (match[4] or "").split(".") if part]
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in before)
    return Semver(tuple(int(match[number]) for number in (1, 2, 3)), not before, parts)


def quantity(text: str) -> Quantity:
    """Raises CelError for what is not a quantity."""
    try:
        return Quantity(parse_quantity(text))
    except InvalidQuantity as error:
        raise CelError(str(error)) from error


@lru_cache(maxsize=1024)
def compile_selector(expression: str) -> Program:
    """The selector as a function of its variables, which gives true or false. Raises CelError."""
    try:
        program = _program(parse(expression), frozenset({"device"}))
    except CelSyntaxError as error:
        raise CelError(str(error)) from error

    def selects(names: Names) -> bool:
        found = program({**names, _STEPS: [MAX_STEPS]})
        if not isinstance(found, bool):
            raise CelError(f"gives {_type(found)}, not a bool")
        return found

    return selects


def _program(tree: Tree, known: frozenset[str]) -> Program:
    return _BUILDERS[tree[0]](tree, known)


def _value(tree: Tree, known: frozenset[str]) -> Program:
    value = tree[1]
    return lambda _names: value


def _name(tree: Tree, known: frozenset[str]) -> Program:
    name = tree[1]
    if name not in known:
        raise CelError(f"undeclared reference to '{name}'")
    return operator.itemgetter(name)


def _list(tree: Tree, known: frozenset[str]) -> Program:
    members = [_program(each, known) for each in tree[1]]
    return lambda names: [member(names) for member in members]


def _map(tree: Tree, known: frozenset[str]) -> Program:
    entries = [(_program(key, known), _program(value, known)) for key, value in tree[1]]
    return lambda names: {key(names): value(names) for key, value in entries}


def _if(tree: Tree, known: frozenset[str]) -> Program:
    condition, yes, no = (_program(each, known) for each in tree[1:])
    return lambda names: yes(names) if _truth(condition(names)) else no(names)


def _unary(tree: Tree, known: frozenset[str]) -> Program:
    inner = _program(tree[2], known)
    if tree[1] == "!":
        return lambda names: not _truth(inner(names))
    return lambda names: -_number(inner(names))


def _key(tree: Tree, known: frozenset[str]) -> Program:
    holder, key = _program(tree[1], known), _program(tree[2], known)
    return lambda names: _looked_up(holder(names), key(names))


def _optional(tree: Tree, known: frozenset[str]) -> Program:
    holder, key = _program(tree[1], known), _program(tree[2], known)

    def found(names: Names) -> _Optional:
        there = holder(names)
        try:
            return _Optional(True, _looked_up(there, key(names)))
        except CelError:
            return _Optional(False, None)

    return found


def _looked_up(holder: Any, key: Any) -> Any:
    if isinstance(holder, _Optional):
        return _Optional(True, _looked_up(holder.value, key)) if holder.is_there else holder
    if isinstance(holder, list):
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(holder):
            return holder[key]
        raise CelError(f"index out of bounds: {key}")
    if not isinstance(holder, dict):
        raise CelError(f"{_type(holder)} has no fields")
    try:
        return holder[key]
    except (KeyError, TypeError) as error:
        raise CelError(f"no such key: {key}") from error


def _binary(tree: Tree, known: frozenset[str]) -> Program:
    sign = tree[1]
    left, right = _program(tree[2], known), _program(tree[3], known)
    if sign in ("&&", "||"):
        return _either(left, right, decides=sign == "||")
    compute = _OPERATORS[sign]
    return lambda names: compute(left(names), right(names))


def _either(left: Program, right: Program, *, decides: bool) -> Program:
    """A side that decides alone makes the other's error vanish, whichever comes first."""

    def joined(names: Names) -> bool:
        try:
            if _truth(left(names)) is decides:
                return decides
        except CelError:
            if _truth(right(names)) is decides:
                return decides
            raise
        return _truth(right(names))

    return joined


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelError(f"no such overload: {_type(value)} is not a bool")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CelError(f"no such overload: {_type(value)} is not a number")
    return value


def _type(value: Any) -> str:
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return "null"


_TYPES: Final = (
    (bool, "bool"), (int, "int"), (float, "double"), (str, "string"), (list, "list"), (dict, "map"),
    (Quantity, "Quantity"), (Semver, "Semver"), (_Optional, "optional"),
)  # fmt: skip
_NUMBERS: Final = ("int", "double")


def _equal(left: Any, right: Any) -> bool:
    kinds = _type(left), _type(right)
    return (kinds[0] == kinds[1] or set(kinds) <= set(_NUMBERS)) and bool(left == right)


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compared(left: Any, right: Any) -> bool:
        kinds = _type(left), _type(right)
        if (kinds[0] != kinds[1] or kinds[0] not in ("string", "bool")) and not set(kinds) <= set(_NUMBERS):
            raise CelError(f"no such overload: {kinds[0]} and {kinds[1]} have no order")
        return compare(left, right)

    return compared


def _calculated(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def calculated(left: Any, right: Any) -> Any:
        kinds = _type(left), _type(right)
        if compute is operator.add and kinds[0] == kinds[1] and kinds[0] in ("string", "list"):
            if len(left) + len(right) > MAX_TEXT:
                raise CelError(f"makes more than {MAX_TEXT} characters or members")
            return left + right
        if kinds[0] != kinds[1] or kinds[0] not in _NUMBERS:
            raise CelError(f"no such overload: {kinds[0]} and {kinds[1]}")
        try:
            return compute(left, right)
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


def _in(member: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        return isinstance(member, str | int | bool) and member in holder
    if isinstance(holder, list):
        return any(_equal(member, each) for each in holder)
    raise CelError(f"no such overload: in {_type(holder)}")


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
    "in": _in,
    "+": _calculated(operator.add),
    "-": _calculated(operator.sub),
    "*": _calculated(operator.mul),
    "/": _calculated(_divided),
    "%": _calculated(_remainder),
}


# -- Calls


def _call(tree: Tree, known: frozenset[str]) -> Program:
    _, name, target, arguments = tree
    if name == "has" and target is None:
        return _has(arguments, known)
    if target == ("name", "cel") and name == "bind":
        return _bind(arguments, known)
    if name in MACROS and target is not None:
        return _macro(name, target, arguments, known)
    signature = (name, target is not None, len(arguments))
    if signature not in _FUNCTIONS:
        raise CelError(f"undeclared reference to '{name}', or other arguments than it takes")
    function = _FUNCTIONS[signature]
    inputs = [_program(each, known) for each in ([] if target is None else [target]) + arguments]

    def call(names: Names) -> Any:
        given = [each(names) for each in inputs]
        try:
            return function(*given)
        except (TypeError, AttributeError, ValueError, re.error) as error:
            if isinstance(error, CelError):
                raise
            raise CelError(f"no such overload: {name}({', '.join(map(_type, given))})") from error

    return call


def _has(arguments: list[Tree], known: frozenset[str]) -> Program:
    if len(arguments) != 1 or arguments[0][0] != "key":
        raise CelError("invalid argument to has(): it takes a field")
    holder, key = _program(arguments[0][1], known), _program(arguments[0][2], known)
    return lambda names: _in(key(names), holder(names))


def _variable(tree: Tree) -> str:
    if tree[0] != "name":
        raise CelError("a macro needs the name of a variable")
    return str(tree[1])


def _bind(arguments: list[Tree], known: frozenset[str]) -> Program:
    if len(arguments) != 3:
        raise CelError("cel.bind takes a name, a value and an expression")
    name, value = _variable(arguments[0]), _program(arguments[1], known)
    inner = _program(arguments[2], known | {name})
    return lambda names: inner({**names, name: value(names)})


def _macro(name: str, target: Tree, arguments: list[Tree], known: frozenset[str]) -> Program:
    if len(arguments) != 2:
        raise CelError(f"{name} takes the name of a variable and an expression")
    variable, members = _variable(arguments[0]), _program(target, known)
    inner = _program(arguments[1], known | {variable})

    def run(names: Names) -> Any:
        found = members(names)
        if not isinstance(found, list | dict):
            raise CelError(f"no such overload: {name} of {_type(found)}")
        names[_STEPS][0] -= len(found)
        if names[_STEPS][0] < 0:
            raise CelError(f"looks at more than {MAX_STEPS} members")
        members_then = [(each, inner({**names, variable: each})) for each in found]
        if name == "map":
            return [value for _, value in members_then]
        if name == "filter":
            return [each for each, value in members_then if _truth(value)]
        chosen = sum(_truth(value) for _, value in members_then)
        return chosen == len(members_then) if name == "all" else chosen == 1 if name == "exists_one" else chosen > 0

    return run


def _same(left: Any, right: Any) -> None:
    if type(left) is not type(right) or not isinstance(left, Quantity | Semver):
        raise TypeError


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def ordered(left: Any, right: Any) -> Any:
        _same(left, right)
        return compare(left, right)

    return ordered


def _text(function: Callable[..., Any]) -> Callable[..., Any]:
    def on_texts(*given: Any) -> Any:
        if not all(isinstance(each, str) for each in given):
            raise TypeError
        return function(*given)

    return on_texts


def _is(read: Callable[[str], Any]) -> Callable[[Any], bool]:
    def is_one(text: Any) -> bool:
        try:
            read(text)
        except CelError:
            return False
        return True

    return _text(is_one)


def _matches(text: str, pattern: str) -> bool:
    """Patterns whose time Python bounds: no repeated groups, three repetitions, nothing that RE2 does not have."""
    if _REPEATED_GROUP.search(pattern) or len(_REPETITION.findall(pattern)) > MAX_REPETITIONS:
        raise CelError(f'the pattern "{pattern}" repeats a group or has more than {MAX_REPETITIONS} repetitions')
    return re.search(pattern, text) is not None


def _or_value(optional: Any, value: Any) -> Any:
    return optional.value if optional.is_there else value


def _integer(value: Any) -> int:
    return int(_number(value) if not isinstance(value, str) else value)


_FUNCTIONS: Final[Mapping[tuple[str, bool, int], Callable[..., Any]]] = {
    ("size", False, 1): len,
    ("size", True, 0): len,
    ("string", False, 1): lambda value: value if isinstance(value, str) else str(_number(value)),
    ("int", False, 1): _integer,
    ("double", False, 1): lambda value: float(value if isinstance(value, str) else _number(value)),
    ("startsWith", True, 1): _text(str.startswith),
    ("endsWith", True, 1): _text(str.endswith),
    ("contains", True, 1): _text(operator.contains),
    ("matches", True, 1): _text(_matches),
    ("matches", False, 2): _text(_matches),
    ("lowerAscii", True, 0): _text(str.lower),
    ("upperAscii", True, 0): _text(str.upper),
    ("quantity", False, 1): _text(quantity),
    ("isQuantity", False, 1): _is(quantity),
    ("semver", False, 1): _text(semver),
    ("isSemver", False, 1): _is(semver),
    ("compareTo", True, 1): _ordered(lambda left, right: (left > right) - (left < right)),
    ("isGreaterThan", True, 1): _ordered(operator.gt),
    ("isLessThan", True, 1): _ordered(operator.lt),
    ("orValue", True, 1): _or_value,
    ("hasValue", True, 0): lambda optional: optional.is_there,
}
_BUILDERS: Final[Mapping[str, Callable[[Tree, frozenset[str]], Program]]] = {
    "value": _value,
    "name": _name,
    "list": _list,
    "map": _map,
    "if": _if,
    "unary": _unary,
    "binary": _binary,
    "key": _key,
    "optional": _optional,
    "call": _call,
}
