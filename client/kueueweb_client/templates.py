r"""kubectl's templates: `jsonpath=`, `custom-columns=` and `--sort-by`.

The paths are kubectl's: `.metadata.labels.app\.kubernetes\.io/name`, `['a','b']` joins two paths, `..` descends, a
filter is one comparison, and a field that is missing gives nothing. They are written in the form of RFC 9535 and
evaluated by `python-jsonpath`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kueueweb_client.errors import ClientError

_NAME_END: Final = frozenset(".[ \t")
_QUOTED: Final = re.compile(r"""^(?P<quote>['"])(?P<text>.*)(?P=quote)$""", re.DOTALL)
_FILTER: Final = re.compile(
    r"^\?\(\s*(?P<left>[^=!<>\"']+?)\s*(?:(?P<operator>==|!=|<=|>=|<|>|=~)\s*(?P<right>.+?)\s*)?\)$"
)
_LITERAL: Final = re.compile(r"^(?:-?\d+(?:\.\d+)?|true|false)$")
_PART_OF_NUMBER: Final = re.compile(r"(\d+)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


class TemplateError(ClientError):
    """A template that cannot be read."""


@dataclass(frozen=True, slots=True)
class Path:
    """A path: steps of RFC 9535, or several paths whose values follow each other."""

    steps: Sequence[str | Sequence[Path]]

    def find(self, *values: Any) -> list[Any]:
        """Return the values that the path leads to from each of the given ones."""
        found = list(values)
        for step in self.steps:
            if isinstance(step, str):
                found = [each for value in found for each in _evaluate(step, value)]
            else:
                found = [each for branch in step for each in branch.find(*found)]
        return found


def _evaluate(step: str, value: Any) -> list[Any]:
    import jsonpath

    try:
        return list(jsonpath.findall("$" + step, value)) if isinstance(value, dict | list) else []
    except jsonpath.JSONPathError as error:
        raise TemplateError(f'Invalid value: "{step}" is not a part of a path: {error}') from error


def path(text: str) -> Path:
    """Parse a path: `.items[*].metadata.name`, also in braces, and without its first dot. Raises `TemplateError`."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$").removeprefix("@")
    if text and text[0] not in ".[":
        text = "." + text
    return Path(tuple(_steps(text)))


def _steps(text: str) -> Iterator[str | Sequence[Path]]:
    position = 0
    while position < len(text):
        if text[position] == "[":
            end = _bracket_end(text, position)
            yield from _bracket(text[position + 1 : end].strip())
            position = end + 1
            continue
        if text[position] != ".":
            raise TemplateError(f'Invalid value: "{text}": expected "." or "[" at "{text[position:]}"')
        deep = text.startswith("..", position)
        position += 2 if deep else 1
        name, position = _name(text, position)
        if name == "*":
            yield "..*" if deep else "[*]"
        elif name:
            yield (".." if deep else "") + f"[{json.dumps(name)}]"
        elif deep and position < len(text) and text[position] == "[":
            end = _bracket_end(text, position)
            for step in _bracket(text[position + 1 : end].strip()):
                yield ".." + step if isinstance(step, str) else step
            position = end + 1


def _name(text: str, position: int) -> tuple[str, int]:
    """Return the field that begins here, with `\\.` for a dot in it, and the position behind it."""
    found = ""
    while position < len(text) and text[position] not in _NAME_END:
        if text[position] == "\\" and position + 1 < len(text):
            position += 1
        found += text[position]
        position += 1
    return found, position


def _bracket_end(text: str, position: int) -> int:
    depth, quote = 0, ""
    for index in range(position, len(text)):
        letter = text[index]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[]":
            depth += 1 if letter == "[" else -1
            if not depth:
                return index
    raise TemplateError(f'Invalid value: "{text}": "[" without "]"')


def _bracket(content: str) -> Iterator[str | Sequence[Path]]:
    if content.startswith("?"):
        yield _filter(content)
        return
    parts = [part.strip() for part in _split(content)]
    if len(parts) > 1:
        yield tuple(Path(tuple(_bracket(part))) for part in parts)
    elif quoted := _QUOTED.match(content):
        yield from _steps("." + quoted["text"])
    elif content == "*" or re.fullmatch(r"-?\d+|-?\d*:-?\d*(?::-?\d*)?", content):
        yield f"[{content}]"
    else:
        raise TemplateError(f'Invalid value: "[{content}]": expected a number, a slice, *, a quoted field or ?(...)')


def _split(text: str) -> list[str]:
    """Return the parts between commas that are neither quoted nor in brackets."""
    found, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == "," and not depth:
            found.append("")
            continue
        found[-1] += letter
    return found


def _filter(content: str) -> str:
    """`?(@.type=="Ready")`. An item without the field is left out, whatever the comparison."""
    found = _FILTER.match(content)
    if found is None:
        raise TemplateError(f'Invalid value: "[{content}]": expected ?(@.field==value)')
    left = _operand(found["left"])
    if found["operator"] is None:
        return f"[?{left}]"
    right = found["right"]
    if found["operator"] == "=~":
        return f"[?{left} =~ {right}]"
    return f"[?{left} && {left} {found['operator']} {_operand(right)}]"


def _operand(text: str) -> str:
    text = text.strip()
    if quoted := _QUOTED.match(text):
        return json.dumps(quoted["text"])
    if _LITERAL.match(text):
        return text
    steps = list(_steps(text.removeprefix("@") or "."))
    if any(not isinstance(step, str) for step in steps):
        raise TemplateError(f'Invalid value: "{text}": a filter compares one field')
    return "@" + "".join(map(str, steps))


def text_of(value: Any) -> str:
    """Write a value as kubectl does: text as it is, objects and lists as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True, slots=True)
class _Range:
    over: Path
    body: Sequence[_Node]


_Node = str | Path | _Range


@dataclass(frozen=True, slots=True)
class Template:
    """A template of `-o jsonpath=`."""

    nodes: Sequence[_Node]

    def render(self, value: Any) -> str:
        """Return the text of the template for a value."""
        return "".join(_rendered(self.nodes, value))


def _rendered(nodes: Iterable[_Node], value: Any) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
        elif isinstance(node, Path):
            yield " ".join(map(text_of, node.find(value)))
        else:
            for each in node.over.find(value):
                yield from _rendered(node.body, each)


def template(text: str) -> Template:
    """Read a template: text, `{path}`, `{"\\n"}`, `{range path}` ... `{end}`. Raises `TemplateError`."""
    stack: list[list[_Node]] = [[]]
    ranges: list[Path] = []
    for is_action, part in _parts(text):
        if not is_action:
            stack[-1].append(part)
        elif quoted := _QUOTED.match(part):
            stack[-1].append(re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), quoted["text"]))
        elif re.match(r"range\s", part):
            ranges.append(path(part.removeprefix("range")))
            stack.append([])
        elif part == "end":
            if not ranges:
                raise TemplateError("Invalid value: {end} without {range ...}")
            body = stack.pop()
            stack[-1].append(_Range(ranges.pop(), tuple(body)))
        else:
            stack[-1].append(path(part))
    if ranges:
        raise TemplateError("Invalid value: {range ...} without {end}")
    return Template(tuple(stack[0]))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the texts outside of braces, and those within."""
    position = 0
    while position < len(text):
        start = text.find("{", position)
        if start < 0:
            yield False, text[position:]
            return
        if start > position:
            yield False, text[position:start]
        end = _brace_end(text, start)
        yield True, text[start + 1 : end].strip()
        position = end + 1


def _brace_end(text: str, start: int) -> int:
    quote, index = "", start + 1
    while index < len(text):
        letter = text[index]
        if letter == "\\":
            index += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "}":
            return index
        index += 1
    raise TemplateError(f'Invalid value: "{text[start:]}": "{{" without "}}"')


def custom_columns(text: str) -> list[tuple[str, Path]]:
    """Read `NAME:.metadata.name,QUEUE:.spec.queueName`. Raises `TemplateError`."""
    found = []
    for part in _split(text):
        title, colon, rest = part.partition(":")
        if not (title.strip() and colon and rest.strip()):
            raise TemplateError(f'Invalid value: "{part}": expected TITLE:.path')
        found.append((title.strip(), path(rest)))
    return found


def sort_key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the sort key of the values that a path found: missing values first, then numbers, then texts, ordered by
    the numbers in them."""
    if not values or values[0] is None:
        return (0,)
    value = values[0]
    if isinstance(value, int | float):
        return (1, value)
    parts = _PART_OF_NUMBER.split(text_of(value))
    return (2, [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part])
