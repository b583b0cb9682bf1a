"""CEL selectors: what they say of a device, and which are refused."""

from __future__ import annotations

import re

import pytest

from scheduling.devices.claims.cel import CelError, compile_selector
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
        ("device.driver.startsWith()", "other arguments than it takes"),
        ("has(device)", "invalid argument to has()"),
        ("(" * 100 + "true" + ")" * 100, "nested deeper"),
        ("true || " * 2000 + "true", "longer than"),
    ],
)
def test_what_does_not_compile(expression: str, why: str) -> None:
    with pytest.raises(CelError, match=re.escape(why)):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (f"{OWN}.missing == 1", "no such key: missing"),
        ("device.driver", "gives string, not a bool"),
        (f"{OWN}.index < 'a'", "no order"),
        ("device.driver && true", "not a bool"),
        ("1 / 0 == 1", "division by zero"),
        (f"{OWN}.model.isGreaterThan(quantity('1'))", "no such overload"),
        ("quantity('many') == quantity('1')", "is not a quantity"),
        ("semver('1') == semver('1.0.0')", "is not a semantic version"),
        ("[1][2] == 1", "index out of bounds"),
        ('device.driver.matches("(a+)+b")', "repeats a group"),
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
    with pytest.raises(CelError, match="looks at more than"):
        holds(nested)


def test_texts_do_not_grow_without_end() -> None:
    grown = '"x" == a'
    for _ in range(30):
        grown = f"cel.bind(a, a + a, {grown})"
    with pytest.raises(CelError, match="makes more than"):
        holds(f'cel.bind(a, "0123456789", {grown})')
