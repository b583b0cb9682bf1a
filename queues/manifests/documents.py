"""YAML text -> documents of plain JSON values, refusing content that a hostile or careless author may write.

The text is read event by event and never composed, so depth, number and size are bounded while reading, and the content
of aliases is bounded while it is copied. Scalars become the same values as in Kubernetes' own YAML reader: no dates, no
base-60 numbers, no NaN. As there, `<<` merges mappings, and an explicit key wins.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import yaml

from foundation.exceptions import HostileManifest, ManifestErrors, ManifestTooLarge
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


_MERGE: Final = "<<"
_NOTHING: Final = object()


class Limits(NamedTuple):
    """The bounds of one call."""

    bytes: int = MAX_BYTES
    documents: int = 50_000
    values: int = 4_000_000
    depth: int = 64
    aliased_values: int = 100_000
    """The total content of aliases."""
    aliased_characters: int = 4 * 2**20


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
    """Read the documents of a YAML text in order; empty ones are counted but left out.

    Raises `HostileManifest` for tags and anything too large, also after aliases are expanded, and `ManifestErrors` for
    text that is not YAML, for a duplicate key and for a document that is not a mapping.
    """
    reader = _Reader(source, first_index, limits)
    if len(text) > limits.bytes:
        rule, remedy = f"must have at most {limits.bytes} bytes per request", "Send it in several requests."
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
    """Return the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        number = int(text, 0)
        # Kubernetes' reader also makes floats of integers beyond 64 bits, and JSON could not be written from ours.
        return number if -(2**63) <= number < 2**64 else float(number)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)) and not (text[0] == "0" and text.isdigit()):
        return float(text)
    return text


class _Frame:
    """A mapping or list that is being read; `key` is the field whose value comes next, `field` the last of them.
    `merged` is the value of its key `<<`.
    """

    __slots__ = ("container", "field", "key", "merged")

    def __init__(self, container: dict[str, Any] | list[Any]) -> None:
        self.container = container
        self.key: str | None = None
        self.field = ""
        self.merged: Any = _NOTHING

    @property
    def awaits_key(self) -> bool:
        """Whether a key comes next."""
        return self.key is None and isinstance(self.container, dict)


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
        self._anchors: dict[str, Any] = {}
        self._aliased_values = self._aliased_characters = 0

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
        self._anchors = {}  # of one document
        if root is not None:
            if not isinstance(root, dict):
                raise self.malformed("", type(root).__name__, "must be a mapping with apiVersion and kind")
            yield Document(self._index, root, self._source)
        self._index += 1
        if self._index >= self._last_index:
            raise self.hostile(
                "", self._index, f"must have at most {self._limits.documents} documents per request", "Split it."
            )

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            frame = self._stack[-1] if self._stack else None
            if frame is not None and frame.awaits_key:
                self._start_field(frame, event.value, merges=event.value == _MERGE and event.implicit[0])
            else:
                self._add(self._scalar(event), event.anchor)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, {})
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, [])
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent) and event.anchor is not None:
            self._take_alias(event.anchor)

    def _take_alias(self, anchor: str) -> None:
        """Expand an alias."""
        if anchor not in self._anchors:
            raise self.malformed(self._path(), f"*{anchor}", f"Not found: &{anchor} is not defined before its alias")
        value = self._anchors[anchor]
        if self._stack and self._stack[-1].awaits_key:
            raise self.malformed(self._path(), f"*{anchor}", "a key must be a string, not an alias", "Write it out.")
        if any(frame.container is value for frame in self._stack):
            raise self.hostile(self._path(), f"*{anchor}", "an alias must not occur inside the value that it refers to")
        self._add(self._copy(value, anchor, len(self._stack)))

    def _copy(self, value: Any, anchor: str, depth: int) -> Any:
        """Return a copy of its own, within the limits."""
        self._aliased_values += 1
        self._aliased_characters += len(value) if isinstance(value, str) else 0
        limits = self._limits
        if self._aliased_values > limits.aliased_values or self._aliased_characters > limits.aliased_characters:
            rule = (
                f"aliases must stand for at most {limits.aliased_values} values and {limits.aliased_characters} "
                "characters per request"
            )
            raise self.hostile(self._path(), f"*{anchor}", rule, "Split it.")
        if depth > limits.depth:
            raise self.hostile(self._path(), f"*{anchor}", f"must not be nested more than {limits.depth} deep")
        if isinstance(value, dict):
            self._aliased_characters += sum(map(len, value))
            return {key: self._copy(each, anchor, depth + 1) for key, each in value.items()}
        if isinstance(value, list):
            return [self._copy(each, anchor, depth + 1) for each in value]
        return value

    def _close(self) -> None:
        if self._stack[-1].merged is not _NOTHING:
            self._merge(self._stack[-1])
        self._stack.pop()

    def _merge(self, frame: _Frame) -> None:
        """Add the content of `<<` to the explicit keys."""
        container: Any = frame.container
        for each in frame.merged if isinstance(frame.merged, list) else [frame.merged]:
            if not isinstance(each, dict):
                path = f"{self._path()}.{_MERGE}".removeprefix(".")
                raise self.malformed(path, each, "Invalid value: it must be a mapping or a list of mappings")
            for key, value in each.items():
                container.setdefault(key, value)

    def _start_field(self, frame: _Frame, key: str, *, merges: bool) -> None:
        if key in frame.container or (merges and frame.merged is not _NOTHING):
            path = f"{self._path()}.{key}".removeprefix(".")
            raise self.malformed(
                path,
                key,
                "Duplicate value: one mapping contains this key twice",
                "Remove one.",
                MistakeReason.DUPLICATE,
            )
        self._check_text(key)
        frame.key = frame.field = key
        if merges:
            frame.merged = None

    def _open(self, event: yaml.CollectionStartEvent, container: dict[str, Any] | list[Any]) -> None:
        if event.tag not in _COLLECTION_TAGS:
            raise self.hostile(self._path(), event.tag, "YAML tags are not supported", "Remove it.")
        if self._stack and self._stack[-1].awaits_key:
            raise self.malformed(self._path(), None, "a key must be a string, not a mapping or a list")
        if len(self._stack) >= self._limits.depth:
            raise self.hostile(
                self._path(), len(self._stack), f"must not be nested more than {self._limits.depth} deep"
            )
        self._add(container, event.anchor)
        self._stack.append(_Frame(container))

    def _add(self, value: Any, anchor: str | None = None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        self._values += 1
        if self._values > self._limits.values:
            raise self.hostile(
                "", self._values, f"must have at most {self._limits.values} values per request", "Split it."
            )
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        if isinstance(frame.container, list):
            frame.container.append(value)
        elif frame.key is not None:
            if frame.key == _MERGE and frame.merged is None:
                frame.merged = value
            else:
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
