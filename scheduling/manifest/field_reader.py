"""Reads one mapping of a manifest field by field. Fields that no reader took are unknown fields."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

from scheduling.manifest.errors import MistakeReason, ValidationReport
from scheduling.manifest.syntax import Syntax
from scheduling.model.quantity import InvalidQuantity, parse_quantity, to_amount

E = TypeVar("E", bound=StrEnum)

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
_INT64_MAX = 2**63 - 1

_AS_A_LIST = "Write a list: [a, b], or a line with a dash for each item."
_AS_FIELDS = "Write fields with their values: {name: value}, or a line for each."


class FieldReader:
    """Reads a mapping. As in Kubernetes, null means absent.

    A wrong value is reported and the default is returned, so that reading continues and finds the other mistakes.
    """

    __slots__ = ("_read", "content", "path", "report")

    def __init__(self, report: ValidationReport, path: str, content: Mapping[str, Any]) -> None:
        self.report = report
        self.path = path
        self.content = content
        self._read: set[str] = set()

    def at(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{key}" if self.path else key

    def error(self, key: str, rule: str, remedy: str = "", reason: MistakeReason = MistakeReason.INVALID) -> None:
        """Report a mistake in a field."""
        self.report.error(self.at(key), self.content.get(key), rule, remedy, reason)

    def warn(self, key: str, text: str) -> None:
        """Report a warning about a field."""
        self.report.warn(self.at(key), text)

    def has(self, key: str) -> bool:
        """Return whether the field is present and not null."""
        return self.content.get(key) is not None

    def take(self, key: str) -> Any:
        """Return the raw value, unchecked."""
        self._read.add(key)
        return self.content.get(key)

    def ignore(self, *keys: str) -> None:
        """Mark fields as known although this reader does not use them."""
        self._read.update(keys)

    def require(self, key: str, remedy: str = "") -> bool:
        """Return whether the field is present; report "Required value" if it is not."""
        if self.has(key):
            return True
        self._read.add(key)
        self.report.error(self.at(key), None, "Required value", remedy or "Add it.", MistakeReason.REQUIRED)
        return False

    def text(
        self,
        key: str,
        default: str = "",
        *,
        required: bool = False,
        max_length: int | None = None,
        syntax: Syntax | None = None,
    ) -> str:
        """Return a string. The empty string counts as absent."""
        value = self.take(key)
        if value is None or value == "":
            if required:
                self.report.error(self.at(key), value, "Required value", "Add it.", MistakeReason.REQUIRED)
            return default
        if not self._is_text(key, value):
            return default
        if max_length is not None and len(value) > max_length:
            self.error(
                key,
                f"must have at most {max_length} characters, has {len(value)}",
                "Shorten it.",
                MistakeReason.TOO_LONG,
            )
            return default
        broken = syntax(value) if syntax else None
        if broken:
            self.error(key, broken)
            return default
        return str(value)

    def choice(self, key: str, default: E, *, among: Iterable[E] | None = None) -> E:
        """Return a member of the default's enum (or of `among`)."""
        choices = list(among) if among is not None else list(type(default))
        return self._token(key, choices) or default

    def optional_choice(self, key: str, choices: Iterable[E]) -> E | None:
        """Return a member of `choices`; None if the field is absent."""
        return self._token(key, list(choices))

    def _token(self, key: str, choices: list[E]) -> E | None:
        value = self.take(key)
        if value is None or value == "":
            return None
        for token in choices:
            if value == token.value:
                return token
        words = [token.value for token in choices]
        self.error(
            key, f"must be one of {', '.join(words)}", suggestion(str(value), words), MistakeReason.NOT_SUPPORTED
        )
        return None

    def boolean(self, key: str, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.take(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.error(key, "must be true or false", "Write true or false, without quotes.", MistakeReason.WRONG_TYPE)
            return default
        return value

    def integer(self, key: str, default: int, *, minimum: int = 0, maximum: int = INT32_MAX) -> int:
        """Return a whole number within bounds."""
        value = self.optional_integer(key, minimum=minimum, maximum=maximum)
        return default if value is None else value

    def optional_integer(self, key: str, *, minimum: int = 0, maximum: int = INT32_MAX) -> int | None:
        """Return a whole number within bounds; None if the field is absent."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.error(key, "must be a whole number", "Write digits only, without quotes.", MistakeReason.WRONG_TYPE)
            return None
        if not minimum <= value <= maximum:
            rule = f"must be at least {minimum}" if value < minimum else f"must be at most {maximum}"
            self.error(key, rule, f"Write a number from {minimum} to {maximum}.")
            return None
        return value

    def quantity(self, key: str, *, negative: bool = False) -> int | None:
        """Return a Kubernetes quantity in nano units; None if the field is absent."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, str | int | float):
            self.error(
                key, "must be a quantity, like 500m, 2 or 10Gi", "Write a number with a unit.", MistakeReason.WRONG_TYPE
            )
            return None
        try:
            nanos = parse_quantity(value)
        except InvalidQuantity as mistake:
            self.error(key, str(mistake))
            return None
        if nanos < 0 and not negative:
            self.error(key, "must not be negative", "Write 0 or more.")
            return None
        return nanos

    def amount(self, key: str, resource: str) -> int | None:
        """Return a quantity of the resource as an integer in its base units; None if the field is absent."""
        nanos = self.quantity(key)
        if nanos is None:
            return None
        amount = to_amount(resource, nanos)
        if amount >= _INT64_MAX:
            self.error(key, "must be below 2^63 in the resource's base unit", "Write a smaller quantity.")
            return None
        return amount

    def mapping(self, key: str) -> dict[str, Any]:
        """Return a mapping, unchecked."""
        value = self.take(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.error(key, "must be a mapping of fields", _AS_FIELDS, MistakeReason.WRONG_TYPE)
            return {}
        return dict(value)

    def fields(self, key: str) -> FieldReader | None:
        """Return a reader for the mapping under a key; None if it is absent or not a mapping."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.error(key, "must be a mapping of fields", _AS_FIELDS, MistakeReason.WRONG_TYPE)
            return None
        return FieldReader(self.report, self.at(key), value)

    def required_fields(self, key: str) -> FieldReader:
        """Return a required mapping as `fields` does; an absent one reads as empty."""
        if not self.require(key):
            return FieldReader(ValidationReport(), self.at(key), {})
        return self.fields(key) or FieldReader(ValidationReport(), self.at(key), {})

    def sequence(self, key: str, *, min_items: int = 0, max_items: int | None = None) -> list[Any]:
        """Return a list whose length is within bounds."""
        value = self.take(key)
        if value is None:
            value = []
        if not isinstance(value, list):
            self.error(key, "must be a list", _AS_A_LIST, MistakeReason.WRONG_TYPE)
            return []
        if len(value) < min_items:
            rule = f"must have at least {min_items} item{'' if min_items == 1 else 's'}"
            self.error(key, rule, f"Add {min_items - len(value)}.", MistakeReason.REQUIRED)
        if max_items is not None and len(value) > max_items:
            self.report.error(
                self.at(key),
                len(value),
                f"must have at most {max_items} items, has {len(value)}",
                f"Remove {len(value) - max_items}.",
                MistakeReason.TOO_MANY,
            )
        return value

    def items(self, key: str, *, min_items: int = 0, max_items: int | None = None) -> list[FieldReader]:
        """Readers for a list of mappings."""
        found = []
        for index, item in enumerate(self.sequence(key, min_items=min_items, max_items=max_items)):
            path = f"{self.at(key)}[{index}]"
            if isinstance(item, Mapping):
                found.append(FieldReader(self.report, path, item))
            else:
                self.report.error(path, item, "must be a mapping of fields", _AS_FIELDS, MistakeReason.WRONG_TYPE)
        return found

    def texts(
        self,
        key: str,
        *,
        min_items: int = 0,
        max_items: int | None = None,
        syntax: Syntax | None = None,
        unique: bool = True,
    ) -> list[str]:
        found: list[str] = []
        for index, item in enumerate(self.sequence(key, min_items=min_items, max_items=max_items)):
            path = f"{self.at(key)}[{index}]"
            if not isinstance(item, str):
                self.report.error(path, item, "must be a string", quoting(item), MistakeReason.WRONG_TYPE)
                continue
            broken = syntax(item) if syntax else None
            if broken:
                self.report.error(path, item, broken)
            elif unique and item in found:
                self.report.error(path, item, "Duplicate value", "Remove one.", MistakeReason.DUPLICATE)
            else:
                found.append(item)
        return found

    def text_map(
        self,
        key: str,
        *,
        max_entries: int | None = None,
        key_syntax: Syntax | None = None,
        value_syntax: Syntax | None = None,
    ) -> dict[str, str]:
        """Return a mapping of strings to strings, such as labels."""
        content = self.mapping(key)
        if max_entries is not None and len(content) > max_entries:
            self.report.error(
                self.at(key),
                len(content),
                f"must have at most {max_entries} entries, has {len(content)}",
                f"Remove {len(content) - max_entries}.",
                MistakeReason.TOO_MANY,
            )
        found: dict[str, str] = {}
        for name, value in content.items():
            path = f"{self.at(key)}[{name}]"
            if not isinstance(value, str):
                self.report.error(path, value, "must be a string", quoting(value), MistakeReason.WRONG_TYPE)
                continue
            broken_key = key_syntax(name) if key_syntax else None
            broken_value = value_syntax(value) if value_syntax else None
            if broken_key:
                self.report.error(path, name, f"as a key {broken_key}")
            elif broken_value:
                self.report.error(path, value, broken_value)
            else:
                found[name] = value
        return found

    def close(self) -> None:
        """Report each field that was not read as unknown."""
        if self.content.keys() <= self._read:
            return
        for key in self.content:
            if key not in self._read:
                self.error(key, "unknown field", suggestion(key, self._read), MistakeReason.UNKNOWN_FIELD)

    def _is_text(self, key: str, value: Any) -> bool:
        if isinstance(value, str):
            return True
        self.error(key, "must be a string", quoting(value), MistakeReason.WRONG_TYPE)
        return False


def suggestion(word: str, known: Iterable[str]) -> str:
    """`Did you mean ...?` with the closest known word, or else all known words."""
    words = sorted(known)
    lowered = {known_word.lower(): known_word for known_word in words}
    close = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    if close:
        return f'Did you mean "{lowered[close[0]]}"?'
    return f"Supported: {', '.join(words)}." if words else ""


def quoting(value: Any) -> str:
    """Show how to write a value as a string that YAML read as another type."""
    if isinstance(value, bool):
        return f'YAML reads {str(value).lower()}, yes, no, on and off as true or false: put it in quotes, as in "on".'
    if isinstance(value, int | float):
        return f'Put it in quotes: "{value}".'
    return ""
