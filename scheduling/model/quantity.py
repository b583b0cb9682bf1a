"""Kubernetes quantities ("500m", "10Gi") and the integers that the scheduler computes with.

A quantity is an exact integer of nano units (10^-9), the finest step of Kubernetes. An *amount* is the integer in base
units that Kueue's scheduler uses: cpu in milli, all other resources in whole units (memory in bytes), both rounded up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

NANOS = 10**9
UNLIMITED = 2**63 - 1
"""Amounts of this size and above mean "no limit", as in Kueue."""

_SUFFIXES: dict[str, int] = {
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    "": NANOS,
    "k": 10**3 * NANOS,
    "M": 10**6 * NANOS,
    "G": 10**9 * NANOS,
    "T": 10**12 * NANOS,
    "P": 10**15 * NANOS,
    "E": 10**18 * NANOS,
    "Ki": 2**10 * NANOS,
    "Mi": 2**20 * NANOS,
    "Gi": 2**30 * NANOS,
    "Ti": 2**40 * NANOS,
    "Pi": 2**50 * NANOS,
    "Ei": 2**60 * NANOS,
}
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[a-zA-Z]*))"
)
_BINARY = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BYTE_RESOURCES = ("memory", "ephemeral-storage", "storage")
_BYTE_PREFIXES = ("hugepages-",)


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity. The message names the text and the accepted forms."""


@lru_cache(maxsize=65536)
def _parse_text(text: str) -> int:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or not (match["whole"] or match["fraction"]):
        raise InvalidQuantity(
            f'"{text}" is not a quantity: write a number with an optional suffix, like 500m, 2 or 10Gi'
        )
    suffix = match["suffix"] or ""
    if suffix not in _SUFFIXES:
        raise InvalidQuantity(
            f'"{text}" has the unknown suffix "{suffix}": use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei'
        )
    fraction = match["fraction"] or ""
    digits = int((match["whole"] or "") + fraction)
    numerator, denominator = digits * _SUFFIXES[suffix], 10 ** len(fraction)
    exponent = int(match["exponent"] or 0)
    if exponent >= 0:
        numerator *= int(10**exponent)
    else:
        denominator *= int(10**-exponent)
    nanos: int = -(-numerator // denominator)
    return -nanos if match["sign"] == "-" else nanos


def parse_quantity(text: str | float) -> int:
    """Return the quantity in nano units, rounded up to a whole nano; raises `InvalidQuantity`. YAML numbers are
    accepted too."""
    if isinstance(text, bool):
        raise InvalidQuantity(f"{text} is not a quantity: write a number with an optional suffix, like 500m, 2 or 10Gi")
    return _parse_text(text if isinstance(text, str) else repr(text))


def to_amount(resource: str, nanos: int) -> int:
    """Nano units -> base units of the resource: milli for cpu, whole units otherwise, rounded up, at most
    `UNLIMITED`."""
    step = 10**6 if resource == "cpu" else NANOS
    return min(-(-nanos // step), UNLIMITED)


def to_nanos(resource: str, amount: int) -> int:
    """Base units of the resource -> nano units."""
    return amount * (10**6 if resource == "cpu" else NANOS)


@lru_cache(maxsize=65536)
def _parse_amount_text(resource: str, text: str) -> int:
    return to_amount(resource, _parse_text(text))


def parse_amount(resource: str, text: str | float) -> int:
    """Return a quantity as the integer in base units of the resource; raises `InvalidQuantity`."""
    if isinstance(text, str):
        return _parse_amount_text(resource, text)
    return to_amount(resource, parse_quantity(text))


def is_bytes(resource: str) -> bool:
    """Return whether amounts of the resource are bytes, written with binary suffixes."""
    return resource in _BYTE_RESOURCES or resource.startswith(_BYTE_PREFIXES)


def format_amount(resource: str, amount: int) -> str:
    """Return the canonical quantity of an amount: `500m` and `2` for cpu, `10Gi` for bytes, plain numbers otherwise."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if is_bytes(resource) and amount:
        for suffix, factor in _BINARY:
            if amount % factor == 0:
                return f"{amount // factor}{suffix}"
    return str(amount)


def sum_of_quantities(texts: Iterable[str]) -> str:
    """Return the exact sum, as Kubernetes writes it: in the notation (`5G`, `5Gi`, `5e9`) of the first one that is not
    zero.

    Raises `InvalidQuantity`.
    """
    total, notation = 0, ""
    for text in texts:
        if total == 0:
            notation = text
        total += _parse_text(text)
    return _canonical(total, notation)


def _canonical(nanos: int, notation: str) -> str:
    """Kubernetes' canonical form: no fraction, and the largest suffix that leaves none."""
    match = _QUANTITY.fullmatch(notation.strip())
    if match is not None and (match["suffix"] or "").endswith("i") and abs(nanos) >= 1024 * NANOS:
        whole = -(-nanos // NANOS)
        return next((f"{whole // size}{suffix}" for suffix, size in _BINARY if whole % size == 0), str(whole))
    sizes = [(exponent, suffix) for suffix, exponent in _DECIMAL.items() if nanos % 10 ** (exponent + 9) == 0]
    exponent, suffix = max(sizes) if nanos else (0, "")
    if match is not None and match["exponent"] is not None:
        suffix = f"e{exponent}" if exponent else ""
    return f"{nanos // 10 ** (exponent + 9)}{suffix}"


def write_quantity(nanos: int) -> str:
    """Nano units as Kubernetes writes a quantity, with a binary suffix from 1Ki on."""
    is_binary = nanos % (1024 * NANOS) == 0
    return _canonical(nanos, "1Ki" if is_binary else "1")


_UNITS: dict[str, str] = {"gpumem": " MiB", "gpumem-percentage": " %", "gpucores": " %"}
_LARGEST_FIRST = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


def amount_in_words(resource: str, amount: int) -> str:
    """Return an amount with its unit, for sentences: `0.222 cores`, `1.5 GiB`, `30 %`, `8000 MiB`; else the plain
    number.

    The suffixes of HAMi's resource names for memory and cores are the same for most vendors; sums over a pod's devices
    are prefixed with `total-`.
    """
    if resource == "cpu":
        return f"{amount / 1000:g} core{'' if amount == 1000 else 's'}" if amount < 10**9 else f"{amount // 1000} cores"
    if is_bytes(resource):
        for unit, factor in _LARGEST_FIRST:
            if amount >= factor:
                return f"{amount / factor:.2f}".rstrip("0").rstrip(".") + f" {unit}"
        return f"{amount} bytes"
    return f"{amount}{_UNITS.get(resource.rpartition('/')[2].removeprefix('total-'), '')}"


def format_amounts(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts by resource as canonical quantities."""
    return {resource: format_amount(resource, amount) for resource, amount in amounts.items()}
