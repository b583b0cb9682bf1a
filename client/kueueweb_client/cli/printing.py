"""Writes lists page by page, in the form that `-o` names."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kueueweb_client.cells import Column, Row, find
from kueueweb_client.cli.session import write_now as write
from kueueweb_client.documents import to_yaml
from kueueweb_client.errors import ClientError
from kueueweb_client.nouns import Noun, columns
from kueueweb_client.templates import Template, custom_columns, sort_key, template, text_of
from kueueweb_client.templates import path as read_path

FORMS: Final = ("table", "wide", "json", "yaml", "name", "jsonpath=", "custom-columns=")
_GAP: Final = "   "
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Format:
    """The format of objects, from `-o` and the related options."""

    form: str = "table"
    """table, wide, json, yaml, name, jsonpath or custom-columns."""
    argument: str = ""
    with_headers: bool = True
    with_labels: bool = False
    with_namespace: bool = False

    @property
    def is_table(self) -> bool:
        """Whether it shows the columns of the kind."""
        return self.form in ("table", "wide")


def read_format(text: str) -> tuple[str, str]:
    """Parse `-o` into the form and its argument. Raises `ClientError` for an unknown form."""
    form, equals, argument = text.partition("=")
    if form.endswith("-file") and equals:
        form, argument = form.removesuffix("-file"), _file(argument)
    takes_argument = form in ("jsonpath", "jsonpath-as-json", "custom-columns")
    if takes_argument and argument:
        _ = custom_columns(argument) if form == "custom-columns" else template(argument)
        return form, argument
    if not takes_argument and not equals and form in FORMS:
        return form, ""
    forms = ", ".join(each + "..." if each.endswith("=") else each for each in FORMS)
    raise ClientError(f'Unsupported value: "{text}": supported values: {forms}')


def _file(name: str) -> str:
    try:
        content = Path(name).read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise ClientError(f"{name}: {error.strerror}") from error
    lines = [line.split() for line in content.splitlines() if line.strip()]
    if len(lines) == 2 and len(lines[0]) == len(lines[1]) and not content.lstrip().startswith("{"):
        # Kubectl's file of column definitions.
        return ",".join(f"{title}:{path}" for title, path in zip(*lines, strict=True))
    return content


class Table:
    """A table as kubectl writes it: no lines, columns as wide as their content. Widths grow from page to page."""

    def __init__(self, titles: Sequence[str], *, with_headers: bool = True) -> None:
        self._titles = list(titles)
        self._widths = [0] * len(self._titles)
        self._headers = with_headers

    def write(self, rows: Iterable[Sequence[str]]) -> None:
        """Write rows, before the first ones the titles."""
        lines = [[_clean(cell) for cell in row] for row in rows]
        if self._headers:
            lines.insert(0, self._titles)
            self._headers = False
        for line in lines:
            self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, line, strict=True)]
        write("".join(self._line(line) for line in lines))

    def _line(self, cells: Sequence[str]) -> str:
        padded = [cell.ljust(width) for cell, width in zip(cells, self._widths, strict=True)]
        return _GAP.join(padded).rstrip() + "\n"


def _clean(cell: str) -> str:
    """Return a cell without control characters, which a terminal would obey."""
    return _CONTROL.sub(lambda found: " " if found[0] in "\n\t" else f"\\x{ord(found[0]):02x}", cell)


class Printer(ABC):
    """Writes the pages of one or several lists."""

    def __init__(self, form: Format, *, prefixed: bool = False) -> None:
        self.form = form
        self.prefixed = prefixed
        self.count = 0

    @abstractmethod
    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        """Write some objects of a kind: REST's rows for a table of a kind with such columns, otherwise manifests."""

    def end(self) -> None:  # noqa: B027  # most have none
        """Write the end of the answer."""


class _TablePrinter(Printer):
    def __init__(self, form: Format, *, prefixed: bool = False) -> None:
        super().__init__(form, prefixed=prefixed)
        self._tables: dict[str, tuple[Table, Sequence[Column]]] = {}

    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        self.count += len(items)
        if not items:
            return
        if noun.kind not in self._tables:
            if self._tables and self.form.with_headers:
                write("\n")
            self._tables[noun.kind] = self._begin(noun)
        table, cells = self._tables[noun.kind]
        table.write([[cell(item) for _, cell in cells] for item in items])

    def _begin(self, noun: Noun) -> tuple[Table, Sequence[Column]]:
        cells = list(columns(noun, all_namespaces=self.form.with_namespace, wide=self.form.form == "wide"))
        if self.prefixed:
            cells = [(title, _prefixed(noun, cell) if title == "NAME" else cell) for title, cell in cells]
        if self.form.with_labels:
            cells.append(("LABELS", lambda item: _labels(item if noun.of_rows else item["metadata"])))
        return Table([title for title, _ in cells], with_headers=self.form.with_headers), cells


def _prefixed(noun: Noun, cell: Callable[[Row], str]) -> Callable[[Row], str]:
    return lambda item: f"{noun.kind.lower()}/{cell(item)}"


def _labels(item: Row) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((item.get("labels") or {}).items())) or "<none>"


class _NamePrinter(Printer):
    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        self.count += len(items)
        write("".join(f"{noun.kind.lower()}/{name_of(item)}\n" for item in items))


def name_of(item: Row) -> str:
    """Return the name of a manifest or a row."""
    return str(find(item, "metadata.name") or item.get("name") or item.get("uuid") or "")


class _OneJson(Printer):
    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        self.count += len(items)
        write("".join(json.dumps(item, indent=4, ensure_ascii=False) + "\n" for item in items))


class _OneYaml(Printer):
    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        for item in items:
            write(("---\n" if self.count else "") + to_yaml(dict(item)))
            self.count += 1


class _JsonList(Printer):
    """A List of version v1, whose items are written as they arrive."""

    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        parts = []
        for item in items:
            parts.append(("," if self.count else self._begin()) + "\n" + _indented(json.dumps(item, indent=4), 8))
            self.count += 1
        write("".join(parts))

    def _begin(self) -> str:
        return '{\n    "apiVersion": "v1",\n    "items": ['

    def end(self) -> None:
        begin, close = ("", "\n    ]") if self.count else (self._begin(), "]")
        write(f'{begin}{close},\n    "kind": "List",\n    "metadata": {{\n        "resourceVersion": ""\n    }}\n}}\n')


class _YamlList(Printer):
    """A List of version v1, whose items are written as they arrive."""

    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        if not items:
            return
        write(("" if self.count else "apiVersion: v1\nitems:\n") + to_yaml([dict(item) for item in items]))
        self.count += len(items)

    def end(self) -> None:
        begin = "" if self.count else "apiVersion: v1\nitems: []\n"
        write(f'{begin}kind: List\nmetadata:\n  resourceVersion: ""\n')


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


class _JsonPath(Printer):
    """A template over the object, or over a List of all objects."""

    def __init__(self, form: Format, *, single: bool) -> None:
        super().__init__(form)
        self._template: Template = template(form.argument)
        self._single = single
        self._items: list[Row] = []

    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        self.count += len(items)
        if self._single:
            for item in items:
                self._write(item)
        else:
            self._items += items

    def end(self) -> None:
        if not self._single:
            self._write({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": self._items})

    def _write(self, value: Any) -> None:
        if self.form.form == "jsonpath-as-json":
            found = [
                each for node in self._template.nodes if not isinstance(node, str) for each in _values(node, value)
            ]
            write(json.dumps(found, indent=4, ensure_ascii=False) + "\n")
        else:
            write(self._template.render(value))


def _values(node: Any, value: Any) -> list[Any]:
    if not hasattr(node, "find"):
        raise ClientError("Unsupported value: {range ...} in jsonpath-as-json")
    found: list[Any] = node.find(value)
    return found


class _CustomColumns(Printer):
    def __init__(self, form: Format) -> None:
        super().__init__(form)
        self._paths = [each for _, each in custom_columns(form.argument)]
        titles = [title for title, _ in custom_columns(form.argument)]
        self._table = Table(titles, with_headers=form.with_headers)

    def page(self, noun: Noun, items: Sequence[Row]) -> None:
        self.count += len(items)
        self._table.write([[_joined(each.find(item)) for each in self._paths] for item in items])


def _joined(values: Sequence[Any]) -> str:
    return ",".join(text_of(value) for value in values if value is not None) or "<none>"


def printer(form: Format, *, single: bool, prefixed: bool = False) -> Printer:
    """Return the printer of a format. `single`: it prints one named object, or objects one after another as they
    change."""
    match form.form:
        case "json":
            return _OneJson(form) if single else _JsonList(form)
        case "yaml":
            return _OneYaml(form) if single else _YamlList(form)
        case "name":
            return _NamePrinter(form)
        case "jsonpath" | "jsonpath-as-json":
            return _JsonPath(form, single=single)
        case "custom-columns":
            return _CustomColumns(form)
        case _:
            return _TablePrinter(form, prefixed=prefixed)


def sorted_by(text: str, items: Iterable[Row]) -> list[Row]:
    """Sort the manifests by a field such as `.metadata.creationTimestamp`."""
    found = read_path(text)
    return sorted(items, key=lambda item: sort_key(found.find(item)))


def row_object(noun: Noun, row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of REST to an object in Kubernetes' form: its fields, in camel case, become the status."""
    names = {"name": row.get("name") or row.get("uuid") or str(row.get("id", ""))}
    kept = {key: row[key] for key in ("namespace", "uid", "labels") if row.get(key)}
    made = {"creationTimestamp": row["created_at"]} if row.get("created_at") else {}
    rest = {key: value for key, value in row.items() if key not in ("name", "namespace", "uid", "labels", "created_at")}
    return {
        "apiVersion": "kueueweb.io/v1",
        "kind": noun.kind,
        "metadata": {**names, **kept, **made},
        "status": _camel(rest),
    }


def _camel(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {re.sub(r"_([a-z])", lambda found: found[1].upper(), key): _camel(each) for key, each in value.items()}
    return [_camel(each) for each in value] if isinstance(value, list) else value
