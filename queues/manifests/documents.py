"""YAML text -> documents of plain JSON values, refusing what a hostile or careless author may write.

The text is read event by event and never composed, so aliases can't expand and depth, number and size are bounded while
reading. Scalars become what Kubernetes' own YAML reader makes of them: no dates, no base-60 numbers, no NaN.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import yaml

from accounts.exceptions import HostileManifest, ManifestErrors, ManifestTooLarge
from scheduling.manifest import LocatedError, MistakeReason

MAX_BYTES: Final = 32 * 2**20

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STRING_TAGS: Final = frozenset({"!", "tag:yaml.org,2002:str"})
_COLLECTION_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_MAY_BE_NO_TEXT: Final = frozenset("-+.0123456789~nNtTfFyYoO")
_WORDS: Final[dict[str, bool | None]] = {
    word: value
    for lower, value in (
        ("", None), ("~", None), ("null", None), ("true", True), ("yes", True), ("on", True), ("false", False),
        ("no", False), ("off", False),
    )
    for word in (lower, lower.capitalize(), lower.upper())
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,30}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,21}|0b[01]{1,64})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?", re.ASCII)


class Limits(NamedTuple):
    """What one call may hold."""

    bytes: int = MAX_BYTES
    documents: int = 50_000
    values: int = 4_000_000
    depth: int = 64


NO_MORE_THAN: Final = Limits()


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a call: its place there, its content and, where it came from a file, the file's name."""

    index: int
    content: dict[str, Any]
    source: str = ""


def read_documents(
    text: str | bytes, *, source: str = "", first_index: int = 0, limits: Limits = NO_MORE_THAN
) -> list[Document]:
    """The documents of a YAML text in order; empty ones are counted but left out.

    Raises `HostileManifest` for aliases, tags and whatever is too large, and `ManifestErrors` for text that is not
    YAML, for a key that stands twice and for a document that is no mapping.
    """
    reader = _Reader(source, first_index, limits)
    if len(text) > limits.bytes:
        rule, remedy = f"must have at most {limits.bytes} bytes in one call", "Send it in several calls."
        mistake = LocatedError(first_index, "", f"{len(text)} bytes", rule, remedy, MistakeReason.HOSTILE, source)
        raise ManifestTooLarge([mistake])
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return list(reader.read(decoded))
    except UnicodeError as mistake:
        raise reader.malformed("", None, f"must be UTF-8: {mistake}") from mistake
    except yaml.MarkedYAMLError as mistake:
        mark = mistake.problem_mark or mistake.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = " ".join(part for part in (mistake.context, mistake.problem) if part)
        raise reader.malformed(place, None, f"is not YAML: {problem}") from mistake
    except yaml.YAMLError as mistake:
        raise reader.malformed("", None, f"is not YAML: {str(mistake).splitlines()[0]}") from mistake


@lru_cache(maxsize=65536)
def _plain(text: str) -> Any:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        number = int(text, 0)
        # Beyond 64 bits Kubernetes' reader, too, has a floating-point number; and JSON could not be written from ours.
        return number if -(2**63) <= number < 2**64 else float(number)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)) and not (text[0] == "0" and text.isdigit()):
        return float(text)
    return text


class _Frame:
    """A mapping or list that is being read; `key` is the field whose value comes next, `field` the last of them."""

    __slots__ = ("container", "field", "key")

    def __init__(self, container: dict[str, Any] | list[Any]) -> None:
        self.container = container
        self.key: str | None = None
        self.field = ""


class _Reader:
    """Builds one document after the other from YAML events."""

    def __init__(self, source: str, first_index: int, limits: Limits) -> None:
        self._source = source
        self._limits = limits
        self._index = first_index
        self._last_index = first_index + limits.documents
        self._stack: list[_Frame] = []
        self._root: Any = None
        self._values = 0

    def read(self, text: str) -> Iterator[Document]:
        loader = _Loader(text)
        try:
            while (event := loader.get_event()) is not None:
                if isinstance(event, yaml.DocumentEndEvent):
                    yield from self._finished()
                else:
                    self._take(event)
        finally:
            loader.dispose()

    def hostile(self, path: str, value: Any, rule: str, remedy: str = "") -> HostileManifest:
        return HostileManifest(
            [LocatedError(self._index, path, value, rule, remedy, MistakeReason.HOSTILE, self._source)]
        )

    def malformed(
        self, path: str, value: Any, rule: str, remedy: str = "", reason: MistakeReason = MistakeReason.MALFORMED
    ) -> ManifestErrors:
        return ManifestErrors([LocatedError(self._index, path, value, rule, remedy, reason, self._source)])

    def _finished(self) -> Iterator[Document]:
        root, self._root = self._root, None
        if root is not None:
            if not isinstance(root, dict):
                raise self.malformed("", type(root).__name__, "must be a mapping with apiVersion and kind")
            yield Document(self._index, root, self._source)
        self._index += 1
        if self._index >= self._last_index:
            raise self.hostile(
                "", self._index, f"must have at most {self._limits.documents} documents in one call", "Split it."
            )

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            frame = self._stack[-1] if self._stack else None
            if frame is not None and frame.key is None and isinstance(frame.container, dict):
                self._start_field(frame, frame.container, event.value)
            else:
                self._add(self._scalar(event))
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, {})
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, [])
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._stack.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise self.hostile(
                self._path(),
                f"*{event.anchor}",
                "YAML anchors and aliases are not supported",
                "Write the value out in each place.",
            )

    def _start_field(self, frame: _Frame, container: dict[str, Any], key: str) -> None:
        if key in container:
            path = f"{self._path()}.{key}".removeprefix(".")
            raise self.malformed(
                path, key, "Duplicate value: one mapping has this key twice", "Remove one.", MistakeReason.DUPLICATE
            )
        self._check_text(key)
        frame.key = frame.field = key

    def _open(self, event: yaml.CollectionStartEvent, container: dict[str, Any] | list[Any]) -> None:
        if event.tag not in _COLLECTION_TAGS:
            raise self.hostile(self._path(), event.tag, "YAML tags are not supported", "Remove it.")
        if self._stack and self._stack[-1].key is None and isinstance(self._stack[-1].container, dict):
            raise self.malformed(self._path(), None, "a key must be a string, not a mapping or a list")
        if len(self._stack) >= self._limits.depth:
            raise self.hostile(self._path(), len(self._stack), f"must not nest more than {self._limits.depth} deep")
        self._add(container)
        self._stack.append(_Frame(container))

    def _add(self, value: Any) -> None:
        self._values += 1
        if self._values > self._limits.values:
            raise self.hostile(
                "", self._values, f"must have at most {self._limits.values} values in one call", "Split it."
            )
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        if isinstance(frame.container, list):
            frame.container.append(value)
        elif frame.key is not None:
            frame.container[frame.key] = value
            frame.key = None

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        if event.tag is not None and event.tag not in _STRING_TAGS:
            raise self.hostile(self._path(), event.tag, "YAML tags are not supported", "Remove it.")
        if event.implicit[0] and event.tag is None and (not text or text[0] in _MAY_BE_NO_TEXT):
            return _plain(text)
        self._check_text(text)
        return text

    def _check_text(self, text: str) -> None:
        if "\0" in text:
            raise self.malformed(self._path(), None, "must not contain NUL")

    def _path(self) -> str:
        parts = ""
        for frame in self._stack:
            inside = frame is not self._stack[-1]
            if isinstance(frame.container, list):
                parts += f"[{len(frame.container) - inside}]"
            elif inside or frame.key is not None:
                parts += f".{frame.field}"
        return parts.removeprefix(".")
