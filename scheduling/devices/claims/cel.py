"""CEL selectors of devices, as far as Kubernetes' examples and drivers use the language.

Understood: literals, lists and maps; == != < <= > >= in, && || !, + - * / %, ?: ; fields, keys and optional ones with
orValue and hasValue; has, all, exists, exists_one, filter, map, cel.bind; size, string, int, double, startsWith,
endsWith, contains, matches, lowerAscii, upperAscii; quantity and semver with their comparisons. An expression with any
other construct does not compile; the error names the construct.

Tenants write selectors, and the scheduler evaluates them between two decisions: their depth, their run time and the
size of their results are bounded, and every failure is a CelError.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

from scheduling.devices.claims.cel_syntax import MACROS, CelSyntaxError, Tree, extent, parse
from scheduling.devices.claims.cel_values import (
    MAX_READ,
    OPERATORS,
    SIZED,
    CelError,
    CelTooCostly,
    Optional,
    Quantity,
    Semver,
    bounded,
    contains,
    number,
    quantity,
    semver,
    short,
    truth,
    type_name,
)

MAX_STEPS: Final = 40_000
"""The steps of one evaluation for one device. A step is a part of the expression, a member or 64 examined characters,
about a hundred nanoseconds; all of them are a few milliseconds."""
_STEPS: Final = "#"
_CHARACTERS_PER_STEP: Final = 64
_STEPS_OF_ERROR: Final = 20
_STEPS_OF_MEMBER: Final = 5
_STEPS_OF_READING: Final = 100
_READING: Final = frozenset({"quantity", "isQuantity", "semver", "isSemver", "int", "double"})
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]|\(\?[^:]|\\[1-9]")
_IN_PATTERN: Final = re.compile(
    r"""\\.|\[\^?\]?(?:\\.|[^\]\\])*\]  # one character, whichever
    |\(\?:|\{(?P<count>\d+)\}|\{[\d,]*\}|[*+?|()]""",
    re.DOTALL | re.VERBOSE | re.ASCII,
)

Names = Mapping[str, Any]
Program = Callable[[Names], Any]


@dataclass(slots=True)
class Meter:
    """Adds up the steps of evaluations."""

    steps: int = 0


class Selector(Protocol):
    """A compiled selector. Evaluates to true or false for its variables, or raises CelError; the meter counts either
    way.
    """

    def __call__(self, names: Names, meter: Meter | None = None, /) -> bool: ...


def compile_selector(expression: str) -> Selector:
    """Compile a selector; an expression is compiled once. Raises CelError."""
    found = _compiled(expression)
    if isinstance(found, str):
        raise CelError(found)
    return found


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Selector | str:
    """Return the function, or the reason why it does not compile: the reason is cached, too, because it is needed for
    each device."""
    try:
        tree = parse(expression)
        parts, _ = extent(tree)
        program = _program(tree, frozenset({"device"}))
    except (CelError, CelSyntaxError) as error:
        return str(error)
    except _UNFORESEEN as error:
        return f"cannot be compiled: {type(error).__name__}"

    def selects(names: Names, meter: Meter | None = None, /) -> bool:
        left = [MAX_STEPS - parts]
        try:
            found = program({**names, _STEPS: left})
        except CelError:
            raise
        except _UNFORESEEN as error:
            raise CelError(f"cannot be evaluated: {type(error).__name__}") from error
        finally:
            if meter is not None:
                meter.steps += MAX_STEPS - left[0]
        if not isinstance(found, bool):
            raise CelError(f"must evaluate to bool, got {type_name(found)}")
        return found

    return selects


_UNFORESEEN: Final = (RecursionError, ArithmeticError, ValueError, TypeError, AttributeError, LookupError, MemoryError)
"""Errors that no known expression raises, but that must not end the scheduler's run if one does."""


def _spend(names: Names, steps: int) -> None:
    left = names[_STEPS]
    left[0] -= steps
    if left[0] < 0:
        raise CelTooCostly(f"takes more than {MAX_STEPS} steps")


def _spend_on(names: Names, value: Any) -> None:
    """The steps for reading a whole value. A list that contains another one twice counts as if it contained two
    lists.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            _spend(names, 1 + len(each) // _CHARACTERS_PER_STEP)
        elif isinstance(each, list | dict):
            _spend(names, 1 + len(each))
            members = each.values() if isinstance(each, dict) else each
            waiting.extend(member for member in members if isinstance(member, SIZED))
        elif isinstance(each, Optional):
            _spend(names, 1)
            waiting.append(each.value)


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
    return lambda names: {_as_key(key(names)): value(names) for key, value in entries}


def _as_key(value: Any) -> Any:
    if not isinstance(value, str | int | bool):
        raise CelError(f"unsupported key type: {type_name(value)}")
    return value


def _shown(key: Any) -> str:
    """Return a key in a message. A list may hold itself many times over, and is not written out."""
    return str(key)[:_CHARACTERS_PER_STEP] if isinstance(key, str | int | float) else type_name(key)


def _if(tree: Tree, known: frozenset[str]) -> Program:
    condition, yes, no = (_program(each, known) for each in tree[1:])
    return lambda names: yes(names) if truth(condition(names)) else no(names)


def _unary(tree: Tree, known: frozenset[str]) -> Program:
    inner = _program(tree[2], known)
    if tree[1] == "!":
        return lambda names: not truth(inner(names))
    return lambda names: bounded(-number(inner(names)))


def _key(tree: Tree, known: frozenset[str]) -> Program:
    holder, key = _program(tree[1], known), _program(tree[2], known)
    return lambda names: _looked_up(holder(names), key(names))


def _optional(tree: Tree, known: frozenset[str]) -> Program:
    holder, key = _program(tree[1], known), _program(tree[2], known)

    def found(names: Names) -> Optional:
        there = holder(names)
        try:
            return Optional(True, _looked_up(there, key(names)))
        except CelTooCostly:
            raise
        except CelError:
            _spend(names, _STEPS_OF_ERROR)
            return Optional(False, None)

    return found


def _looked_up(holder: Any, key: Any) -> Any:
    if isinstance(holder, Optional):
        return Optional(True, _looked_up(holder.value, key)) if holder.is_there else holder
    if isinstance(holder, list):
        if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(holder):
            return holder[key]
        raise CelError(f"index out of bounds: {_shown(key)}")
    if not isinstance(holder, dict):
        raise CelError(f"{type_name(holder)} has no fields")
    try:
        return holder[key]
    except (KeyError, TypeError) as error:
        raise CelError(f"no such key: {_shown(key)}") from error


def _binary(tree: Tree, known: frozenset[str]) -> Program:
    sign = tree[1]
    left, right = _program(tree[2], known), _program(tree[3], known)
    compute = OPERATORS[sign]

    def computed(names: Names) -> Any:
        first, second = left(names), right(names)
        if isinstance(second, SIZED) and (sign == "in" or isinstance(first, SIZED)):
            _spend_on(names, second if sign == "in" else first)
            if sign == "+":
                _spend_on(names, second)
        return compute(first, second)

    return computed


def _either(tree: Tree, known: frozenset[str]) -> Program:
    """If one side decides on its own, errors of the other side are ignored, whichever comes first."""
    decides = tree[1] == "||"
    sides = [_program(each, known) for each in tree[2]]

    def joined(names: Names) -> bool:
        problem = ""
        for side in sides:
            try:
                if truth(side(names)) is decides:
                    return decides
            except CelTooCostly:
                raise
            except CelError as error:
                problem = problem or str(error)
                _spend(names, _STEPS_OF_ERROR)
        if problem:
            raise CelError(problem)
        return not decides

    return joined


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
        raise CelError(f"undeclared reference to '{name}', or wrong arguments")
    function = _FUNCTIONS[signature]
    inputs = [_program(each, known) for each in ([] if target is None else [target]) + arguments]

    def call(names: Names) -> Any:
        given = [each(names) for each in inputs]
        _spend(names, _cost(name, given))
        try:
            return function(*given)
        except (TypeError, AttributeError, ValueError, OverflowError, re.error) as error:
            if isinstance(error, CelError):
                raise
            raise CelError(f"no such overload: {name}({', '.join(map(type_name, given))})") from error

    return call


def _cost(name: str, given: list[Any]) -> int:
    """Return the steps of a function in addition to those of its operands."""
    texts = [each for each in given if isinstance(each, str)]
    if name == "contains" and len(texts) == 2:
        # A search may restart at each character, and examine some of the text each time.
        return len(texts[0]) * (1 + min(len(texts[1]), 128)) // (4 * _CHARACTERS_PER_STEP)
    if name == "matches" and len(texts) == 2:
        return _cost_of_match(*texts)
    if name in _READING:
        return _STEPS_OF_READING + sum(map(len, texts))
    return sum(map(len, texts)) // _CHARACTERS_PER_STEP


def _has(arguments: list[Tree], known: frozenset[str]) -> Program:
    if len(arguments) != 1 or arguments[0][0] != "key":
        raise CelError("invalid argument to has(): it must be a field")
    holder, key = _program(arguments[0][1], known), _program(arguments[0][2], known)

    def has(names: Names) -> bool:
        found = holder(names)
        if not isinstance(found, dict):
            raise CelError(f"no such overload: has of {type_name(found)}")
        return contains(key(names), found)

    return has


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
    parts = extent(arguments[1])[0] + len(known) + _STEPS_OF_MEMBER

    def run(names: Names) -> Any:
        found = members(names)
        if not isinstance(found, list | dict):
            raise CelError(f"no such overload: {name} of {type_name(found)}")
        _spend(names, len(found) * parts)
        members_then = [(each, inner({**names, variable: each})) for each in found]
        if name == "map":
            return [value for _, value in members_then]
        if name == "filter":
            return [each for each, value in members_then if truth(value)]
        chosen = sum(truth(value) for _, value in members_then)
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
    return re.search(pattern, text) is not None


def _cost_of_match(text: str, pattern: str) -> int:
    """Return the most steps that Python may take for a pattern, which tries each way to divide the text among
    repetitions.

    Groups cannot be repeated, and constructs that RE2 lacks are refused, so the ways can be counted. Characters beyond
    ASCII are not counted: Python takes milliseconds to compile a range of them.
    """
    if _REPEATED_GROUP.search(short(pattern)) or not pattern.isascii() or re.search(r"\\[uUN]", pattern):
        raise CelError(f'the pattern "{pattern}" repeats a group, or uses unsupported syntax')
    repetitions, choices, length = 0, 1, len(pattern)
    sides = [1]
    for found in _IN_PATTERN.finditer(pattern):
        sign = found[0]
        if sign in ("(", "(?:"):
            sides.append(1)
        elif sign == ")" and len(sides) > 1:
            choices *= sides.pop()
        elif sign == "|":
            sides[-1] += 1
        elif sign == "?":
            choices *= 2
        elif found["count"]:
            length += min(int(found["count"]), MAX_READ)
        elif sign in "*+" or sign[0] == "{":
            repetitions += 1
    places = repetitions + (0 if pattern.startswith("^") and sides == [1] else 1)
    ways = math.comb(len(short(text)) + places, places) * choices * math.prod(sides)
    steps = ways * (4 + length) // 50 + 20 * len(pattern)
    if steps > MAX_STEPS:
        raise CelError(f'the pattern "{pattern}" takes more than {MAX_STEPS} steps on {len(text)} characters')
    return steps


def _or_value(optional: Any, value: Any) -> Any:
    return optional.value if optional.is_there else value


def _integer(value: Any) -> int:
    return int(bounded(int(number(value) if not isinstance(value, str) else short(value))))


def _double(value: Any) -> float:
    return float(short(value) if isinstance(value, str) else number(value))


_FUNCTIONS: Final[Mapping[tuple[str, bool, int], Callable[..., Any]]] = {
    ("size", False, 1): len,
    ("size", True, 0): len,
    ("string", False, 1): lambda value: value if isinstance(value, str) else str(number(value)),
    ("int", False, 1): _integer,
    ("double", False, 1): _double,
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
    "either": _either,
    "key": _key,
    "optional": _optional,
    "call": _call,
}
