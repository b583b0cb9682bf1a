"""CEL selectors: what they say of a device, and which are refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scheduling.devices.claims import cel
from scheduling.devices.claims.cel import compile_selector
from scheduling.devices.claims.cel_syntax import CelSyntaxError
from scheduling.devices.claims.cel_values import OPERATORS as CEL_OPERATORS
from scheduling.devices.claims.cel_values import CelError, CelTooCostly
from scheduling.devices.claims.matching import variables
from scheduling.devices.claims.objects import DeviceId, PublishedDevice

DEVICE = variables(
    PublishedDevice(
        DeviceId("gpu.example.com", "n1", "gpu-0"),
        "n1",
        {
            "model": {"string": "A100"},
            "index": {"int": 3},
            "shared": {"bool": False},
            "driverVersion": {"version": "1.10.2"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        },
        {"memory": {"value": "40Gi"}, "broken": {"value": "a lot"}},
    )
)
FUNCTIONS: dict[Any, Any] = cel._FUNCTIONS  # type: ignore[assignment]
OPERATORS: dict[str, Any] = CEL_OPERATORS  # type: ignore[assignment]
OWN = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'


def holds(expression: str) -> bool:
    return bool(compile_selector(expression)(DEVICE))


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver == 'gpu.example.com'",
        f'{OWN}.model == "A100" && {OWN}.index > 2',
        f"{OWN}['model'].startsWith('A') || {OWN}.missing",
        f"{OWN}.missing == 1 || true",
        f'!{OWN}.shared && "model" in {OWN} && !("zz" in {OWN})',
        f"has({OWN}.model) && !has({OWN}.missing)",
        'device.attributes["resource.kubernetes.io"].pcieRoot.matches("^pci[0-9a-f]+:00$")',
        'has(device.attributes["resource.kubernetes.io"].pcieRoot) && !has(device.attributes["other.com"].x)',
        f'{MEMORY}.compareTo(quantity("40960Mi")) == 0 && {MEMORY}.isGreaterThan(quantity("39Gi"))',
        f'{MEMORY} == quantity("40Gi")',
        f'{OWN}.driverVersion.isGreaterThan(semver("1.9.0")) && {OWN}.driverVersion.isLessThan(semver("2.0.0-rc.1"))',
        f'cel.bind(own, {OWN}, own.model in ["A100", "H100"] && own.index % 2 == 1)',
        f'{OWN}.?missing.orValue("none") == "none" && {OWN}.?model.hasValue()',
        '["a", "b"].exists(each, each + "c" == "bc") && [1, 2].all(n, n > 0) && [1, 2].exists_one(n, n == 2)',
        "[1, 2, 3].filter(n, n > 1).map(n, n * 2) == [4, 6] && size([1]) == 1",
        "-7 / 2 == -3 && -7 % 2 == -1 && 1 + 2 * 3 == 7 && (1 < 2 ? true : false)",
        f'{OWN}.model.lowerAscii() == "a100" && {OWN}.index != "3"',
        '"\\u0041" + r"\\d" == "A\\\\d" && 0x10 == 16 && 1.5 < 2.0  // a comment',
        '!has(device.capacity["gpu.example.com"].broken)',
        'semver("1.0.0-alpha.1").isLessThan(semver("1.0.0-alpha.beta"))',
        'semver("1.0.0-rc").isLessThan(semver("1.0.0"))',
        "false || " * 500 + "true",
        "true && " * 500 + "true",
        "-9223372036854775808 < 0 && 0x7fffffffffffffff == 9223372036854775807 && - 1 == -1",
        'device.attributes["resource.kubernetes.io"].pcieRoot.matches("^pci[0-9a-f]{4}:[0-9a-f]{2}$")',
        '"NVIDIA-H100-80GB-HBM3".matches("^NVIDIA-(A100|H100|H200)-[0-9]+GB.*$")',
        '"NVIDIA H100 80GB HBM3".matches(".*H100.*") && !"NVIDIA A100".matches("H[12]00|L40S?")',
        f'{OWN}.missing == 1 || has({OWN}.missing) || {OWN}.model == "A100"',
    ],
)
def test_what_holds(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "needs a value at 1"),
        ("1 +", "needs a value at 4"),
        ("device.driver = 'x'", "unexpected character"),
        ("device.driver == 'x' 'y'", "needs an operator or the end"),
        ("node.name == 'n1'", "undeclared reference to 'node'"),
        ("device.driver.reverse() == 'x'", "undeclared reference to 'reverse'"),
        ("device.driver.startsWith()", "wrong arguments"),
        ("has(device)", "invalid argument to has()"),
        ("(" * 100 + "true" + ")" * 100, "nested deeper"),
        ("true || " * 2000 + "true", "longer than"),
        ("1" + "+1" * 3000 + " == 3001", "nested deeper"),
        ("!" * 3000 + "true", "nested deeper"),
        ("device" + ".a" * 3000, "nested deeper"),
        ("[" + "1," * 4500 + "1] == []", "parts"),
        ("9223372036854775808 > 0", "more than 64 bits"),
        ("18446744073709551615u > 0u", "more than 64 bits"),
        ("0x8000000000000000 > 0", "more than 64 bits"),
        ("-0x8000000000000001 < 0", "more than 64 bits"),
        ("1" * 5000 + " > 0", "more than 64 bits"),
        ('"\\ud800" == "a"', "not a character"),
    ],
)
def test_what_does_not_compile(expression: str, why: str) -> None:
    with pytest.raises(CelError, match=re.escape(why)):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (f"{OWN}.missing == 1", "no such key: missing"),
        ("device.driver", "must evaluate to bool, got string"),
        (f"{OWN}.index < 'a'", "cannot be ordered"),
        ("device.driver && true", "not a bool"),
        ("1 / 0 == 1", "division by zero"),
        (f"{OWN}.model.isGreaterThan(quantity('1'))", "no such overload"),
        ("quantity('many') == quantity('1')", "is not a quantity"),
        ("semver('1') == semver('1.0.0')", "is not a semantic version"),
        ("[1][2] == 1", "index out of bounds"),
        ('device.driver.matches("(a+)+b")', "repeats a group"),
        ('"é".matches("[à-ÿ]")', "unsupported syntax"),
        ('device.driver.matches("a{99999999999999999999}")', "no such overload"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("-9223372036854775807 - 2 < 0", "integer overflow"),
        ("4294967296 * 4294967296 > 0", "integer overflow"),
        ("-(-9223372036854775808) > 0", "integer overflow"),
        ("-9223372036854775808 / -1 > 0", "integer overflow"),
        ("int('9223372036854775808') > 0", "integer overflow"),
        ("int(1e300) > 0", "integer overflow"),
        ("int(1e400) > 0", "no such overload"),
        ("{[1]: 2} == {}", "unsupported key type: list"),
        ("has(['a'].a)", "has of list"),
        (f'quantity("{"1" * 300}") == quantity("1")', "more than 256 characters"),
        (f'semver("{"1" * 300}.0.0") == semver("1.0.0")', "more than 256 characters"),
        (f'int("{"0" * 300}") == 0', "more than 256 characters"),
        (f'double("{"0" * 300}") == 0.0', "more than 256 characters"),
        (f'"a".matches("{"a" * 300}")', "more than 256 characters"),
        (f'"{"a" * 300}".matches("a")', "more than 256 characters"),
    ],
)
def test_what_cannot_be_evaluated(expression: str, why: str) -> None:
    with pytest.raises(CelError, match=re.escape(why)):
        holds(expression)


def test_macros_within_macros_end() -> None:
    """A tenant writes the selector, and the scheduler evaluates it."""
    ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    nested = "true"
    for name in "abcdef":
        nested = f"{ten}.all({name}, {nested})"
    with pytest.raises(CelError, match="takes more than"):
        holds(nested)


def test_texts_do_not_grow_without_end() -> None:
    grown = '"x" == a'
    for _ in range(30):
        grown = f"cel.bind(a, a + a, {grown})"
    with pytest.raises(CelError, match="produces more than"):
        holds(f'cel.bind(a, "0123456789", {grown})')


@pytest.mark.parametrize(
    ("pattern", "length"),
    [
        ("a*a*a*b", 200),
        ("^a*a*a*b", 200),
        ("a+a{1,}b", 200),
        ("a?" * 30 + "a" * 30, 30),
        ("(a|a)" * 25 + "b", 30),
        ("(?:a|aa)" * 25 + "b", 30),
        (r"[*]*\\**[]*]*a{,9}b", 200),
    ],
)
def test_patterns_that_would_take_too_long_are_not_tried(
    pattern: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python tries each way to divide the text among the repetitions."""

    def tried(*_: object) -> None:
        pytest.fail("the pattern was tried")

    monkeypatch.setitem(FUNCTIONS, ("matches", True, 1), tried)
    with pytest.raises(CelError, match="takes more than"):
        holds(f'"{"a" * length}".matches("{pattern}")')


HUNDRED = f"[{', '.join(map(str, range(100)))}]"


@pytest.mark.parametrize(
    "expression",
    [
        f"{HUNDRED}.map(a, {HUNDRED}.map(b, {HUNDRED}.map(c, c))) != []",
        f"cel.bind(all, {HUNDRED}, all.all(a, all.exists(b, b in all)))",
        f"cel.bind(t, '{'x' * 4000}', {HUNDRED}.all(n, {HUNDRED}.all(m, (t + t).size() > 0)))",
        f"cel.bind(t, '{'x' * 4000}', {HUNDRED}.all(n, {HUNDRED}.all(m, t == '{'x' * 4000}')))",
        f"cel.bind(t, '{'x' * 4000}', {HUNDRED}.all(n, {HUNDRED}.all(m, !t.contains('{'x' * 99}y'))))",
        f"{HUNDRED}.all(n, {HUNDRED}.all(m, '{'x' * 200}'.matches('x*') || true))",
        f"({HUNDRED}.all(n, {HUNDRED}.all(m, n + m + n + m >= 0))) || true",
    ],
)
def test_an_evaluation_has_a_number_of_steps(expression: str) -> None:
    """And no other side of an || makes good for one that took them all."""
    with pytest.raises(CelTooCostly, match="takes more than"):
        holds(expression)


def test_lists_that_hold_a_list_twice_are_compared_by_all_that_they_hold() -> None:
    compared = "a == b"
    for _ in range(20):
        compared = f"cel.bind(a, [a, a], cel.bind(b, [b, b], {compared}))"
    with pytest.raises(CelTooCostly, match="takes more than"):
        holds(f"cel.bind(a, [1], cel.bind(b, [1], {compared}))")


def test_such_a_list_is_not_written_into_a_message() -> None:
    key = "{}[a] == 1"
    for _ in range(15):
        key = f"cel.bind(a, [a, a], {key})"
    with pytest.raises(CelError, match=r"^no such key: list$"):
        holds(f"cel.bind(a, [1], {key})")


def test_a_message_has_only_what_a_database_takes() -> None:
    with pytest.raises(CelError, match=r"^no such key: a\\u0000b$"):
        holds('device["a\\u0000b"] == 1')


@pytest.mark.parametrize("kind", [RecursionError, OverflowError, ValueError, MemoryError, TypeError])
def test_what_nobody_foresaw_is_an_error_of_the_selector(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise kind

    monkeypatch.setitem(OPERATORS, "<", fails)
    with pytest.raises(CelError, match="cannot be evaluated"):
        holds(f"1 < {len(kind.__name__)}")
    monkeypatch.setattr(cel, "parse", fails)
    with pytest.raises(CelError, match="cannot be compiled"):
        compile_selector(f"'not yet compiled' == '{kind.__name__}'")


def test_a_selector_that_does_not_compile_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again with each device."""
    read: list[str] = []

    def fails(text: str) -> None:
        read.append(text)
        raise CelSyntaxError("needs a value")

    monkeypatch.setattr(cel, "parse", fails)
    for _ in range(3):
        with pytest.raises(CelError, match="needs a value"):
            compile_selector("device.read.once ==")
    assert len(read) == 1
