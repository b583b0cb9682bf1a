"""Types of fields: how a value is read, written, shown in our JSON and passed to the scheduling rules."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from kinds import openapi
from kinds.openapi import Schema
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import INT32_MAX, INT32_MIN
from scheduling.manifest.syntax import Syntax, qualified_name
from scheduling.model.quantity import NANOS
from scheduling.model.times import parse_rfc3339, rfc3339

if TYPE_CHECKING:
    from kinds.declaration import Reading

Json = Any


@dataclass(frozen=True)
class FieldType(ABC):
    """A type of fields. Its value is that of the row's column."""

    @property
    @abstractmethod
    def default(self) -> Any:
        """The value of a field that is left out."""

    @abstractmethod
    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> Any:
        """Return the value under a key. An invalid value is reported, and the default is returned."""

    @abstractmethod
    def schema(self) -> Schema:
        """Return the OpenAPI schema of the field in a manifest, without its description."""

    def beside(self, version: str) -> dict[str, Schema]:
        """Return the additional keys in manifests of a version that state the field's value: key -> schema."""
        return {}

    def of_row(self, row: Any, column: str) -> Any:
        """Return the value that a row has."""
        return getattr(row, column)

    def write(self, value: Any) -> Json:
        """Write the value in a manifest."""
        return value

    def to_json(self, value: Any) -> Json:
        """Return the value in our JSON."""
        return value

    def core(self, value: Any) -> Any:
        """Return the value for the scheduling rules; None leaves it to their default."""
        return value


@dataclass(frozen=True)
class Text(FieldType):
    syntax: Syntax | None = None
    max_length: int | None = None

    @property
    def default(self) -> str:
        return ""

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> str:
        return holder.text(key, required=required, max_length=self.max_length, syntax=self.syntax)

    def schema(self) -> Schema:
        return {**openapi.text(), **({"maxLength": self.max_length} if self.max_length else {})}

    def core(self, value: str) -> str | None:
        return value or None


@dataclass(frozen=True)
class Choice(FieldType):
    """A value of an enum. It is optional if `initial` is None. `synonyms` are values of older versions."""

    enum: type[StrEnum]
    initial: StrEnum | None = None
    synonyms: Mapping[str, StrEnum] = field(default_factory=dict)

    @property
    def default(self) -> str:
        return self.initial.value if self.initial else ""

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> str:
        given = holder.content.get(key)
        if isinstance(given, str) and given in self.synonyms:
            holder.ignore(key)
            return self.synonyms[given].value
        word = holder.optional_choice(key, list(self.enum))
        return word.value if word else self.default

    def schema(self) -> Schema:
        initial = {"default": self.initial.value} if self.initial else {}
        return {**openapi.text(), "enum": [word.value for word in self.enum], **initial}

    def core(self, value: str) -> StrEnum | None:
        return self.enum(value) if value else None


class AnnotationType(FieldType):
    """A type whose value an annotation can state."""

    @abstractmethod
    def read_annotation(self, text: str) -> Any:
        """Parse the value of an annotation. Raises ValueError with the rule for it."""

    def write_annotation(self, value: Any) -> str:
        """Return the annotation for the value."""
        return str(value).lower()


@dataclass(frozen=True)
class AnnotatedChoice(Choice, AnnotationType):
    """A value of an enum that an annotation states."""

    def read_annotation(self, text: str) -> str:
        if text not in list(self.enum):
            raise ValueError(f"Unsupported value: supported values: {', '.join(self.enum)}")
        return text

    def write_annotation(self, value: str) -> str:
        return value


@dataclass(frozen=True)
class Integer(AnnotationType):
    """A whole number; without `initial` it may be left out."""

    initial: int | None = None
    minimum: int = INT32_MIN
    maximum: int = INT32_MAX

    @property
    def default(self) -> int | None:
        return self.initial

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> int | None:
        if required and not holder.require(key):
            return self.default
        found = holder.optional_integer(key, minimum=self.minimum, maximum=self.maximum)
        return self.default if found is None else found

    def schema(self) -> Schema:
        initial = {} if self.initial is None else {"default": self.initial}
        lowest = {} if self.minimum == INT32_MIN else {"minimum": self.minimum}
        return {**openapi.integer(), **lowest, **initial}

    def read_annotation(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) <= self.maximum):
            raise ValueError(f"must be a whole number of at most {self.maximum}, in quotes")
        return int(text)


@dataclass(frozen=True)
class Boolean(AnnotationType):
    """true or false."""

    @property
    def default(self) -> bool:
        return False

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> bool:
        return holder.boolean(key)

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def read_annotation(self, text: str) -> bool:
        if text not in ("true", "false"):
            raise ValueError('must be "true" or "false"')
        return text == "true"


@dataclass(frozen=True)
class TextMap(FieldType):
    """A mapping of strings to strings, such as labels."""

    max_entries: int | None = None
    key_syntax: Syntax | None = None
    value_syntax: Syntax | None = None

    @property
    def default(self) -> dict[str, str]:
        return {}

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> dict[str, str]:
        return holder.text_map(
            key, max_entries=self.max_entries, key_syntax=self.key_syntax, value_syntax=self.value_syntax
        )

    def schema(self) -> Schema:
        return openapi.mapping(openapi.text())


@dataclass(frozen=True)
class Quantities(FieldType):
    """Resources with quantities, stored as written."""

    @property
    def default(self) -> dict[str, str]:
        return {}

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> dict[str, str]:
        return read_quantities(holder, key)

    def schema(self) -> Schema:
        return openapi.mapping(openapi.quantity())


@dataclass(frozen=True)
class Structure(FieldType):
    """A part of one of Kubernetes' own objects: its keys are the same in a manifest, in a row and in our JSON."""

    reader: Callable[[FieldReader, str], Any]
    empty: Callable[[], Any]
    """Makes the value of a field that is left out: dict, list, or one that returns None."""
    to_core: Callable[[Any], Any] = lambda value: value
    writer: Callable[[Any], Any] = lambda value: value
    of_texts: bool = False
    """Whether our JSON of it is a list of strings."""
    shape: Schema = field(default_factory=openapi.anything)
    """Its OpenAPI schema in a manifest."""

    @property
    def default(self) -> Any:
        return self.empty()

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> Any:
        if not holder.has(key) and not required:
            holder.ignore(key)
            return self.default
        return self.reader(holder, key)

    def schema(self) -> Schema:
        return self.shape

    def write(self, value: Any) -> Json:
        return self.writer(value)

    def core(self, value: Any) -> Any:
        return None if value is None else self.to_core(value)


NO_MOMENT: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a time that is missing or wrong. A row never has it."""
_LATEST_MOMENT: Final = datetime(9000, 1, 1, tzinfo=UTC)
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
"""A time without a zone would be read in the zone of the process."""


@dataclass(frozen=True)
class Moment(FieldType):
    """A time, written as RFC 3339 in manifests and in our JSON. `optional`: None if it is left out."""

    optional: bool = False

    @property
    def default(self) -> datetime | None:
        return None if self.optional else NO_MOMENT

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> datetime | None:
        text = holder.text(key, required=required)
        if not text:
            return self.default
        try:
            found = datetime.fromtimestamp(parse_rfc3339(text), UTC) if _RFC3339.fullmatch(text) else None
        except (ValueError, OverflowError, OSError):
            found = None
        if found is None or not NO_MOMENT < found < _LATEST_MOMENT:
            holder.error(key, "must be an RFC 3339 time, like 2026-01-31T12:00:00Z")
            return self.default
        return found

    def schema(self) -> Schema:
        return {**openapi.text(), "format": "date-time"}

    def write(self, value: datetime) -> str:
        return rfc3339(value)

    def to_json(self, value: datetime | None) -> str | None:
        return None if value is None else rfc3339(value)

    def core(self, value: datetime | None) -> float | None:
        return None if value is None else value.timestamp()


_SMALLEST_NANOS: Final = 1
_MAX_WEIGHT: Final = 10**12


@dataclass(frozen=True)
class Weight(FieldType):
    """A weight of fair sharing: at least 0, and either 0 or above 1e-9."""

    @property
    def default(self) -> Decimal:
        return Decimal(1)

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> Decimal:
        nanos = holder.quantity(key)
        if nanos is None:
            return self.default
        if 0 < nanos <= _SMALLEST_NANOS:
            holder.error(key, "must be 0 or above 1e-9", "Scale all weights up: only their ratios count.")
        if nanos > _MAX_WEIGHT * NANOS:
            holder.error(key, f"must be at most {_MAX_WEIGHT:g}", "Scale all weights down: only their ratios count.")
            return self.default
        return Decimal(nanos) / NANOS

    def schema(self) -> Schema:
        return {**openapi.quantity(), "default": "1"}

    def write(self, value: Decimal) -> str:
        nanos = int(value * NANOS)
        if nanos % NANOS == 0:
            return str(nanos // NANOS)
        return f"{nanos // 10**6}m" if nanos % 10**6 == 0 else f"{nanos}n"

    def to_json(self, value: Decimal) -> str:
        return f"{value.normalize():f}"

    def core(self, value: Decimal) -> float:
        return float(value)


def read_quantities(holder: FieldReader, key: str) -> dict[str, str]:
    """Read resource name -> quantity as text. Every mistake is reported, and its entry is left out."""
    listed = holder.fields(key)
    if listed is None:
        return {}
    found: dict[str, str] = {}
    for name in listed.content:
        broken = qualified_name(name)
        if broken:
            listed.error(name, f"is a resource name: {broken}")
        elif listed.quantity(name) is not None:
            found[name] = str(listed.content[name])
        elif not listed.has(name):
            listed.error(name, "must be a quantity, like 500m, 2 or 10Gi", "Add one.", MistakeReason.REQUIRED)
    return found
