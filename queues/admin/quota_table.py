"""Quotas as a table in a form: a row per flavor and resource, the amounts as Kubernetes quantities."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from scheduling.model.quantity import amount_in_words, parse_amount

COLUMNS: Final[Mapping[str, tuple[str, int]]] = {
    "group": ("Group", 2),
    "flavor": ("Flavor", 14),
    "resource": ("Resource", 26),
    "nominal_quota": ("Nominal quota", 9),
    "borrowing_limit": ("Borrowing limit", 9),
    "lending_limit": ("Lending limit", 9),
}
"""Each column's title and the width of its fields in characters."""
_AMOUNTS: Final = ("nominal_quota", "borrowing_limit", "lending_limit")
RESOURCES: Final = ("cpu", "memory", "nvidia.com/gpu", "nvidia.com/total-gpumem", "nvidia.com/total-gpucores", "pods")
"""The usual resources of quotas, offered in the form; users type others."""
_EMPTY_ROWS: Final = 4
_PLACE: Final = re.compile(
    r"resource_groups\[(?P<group>\d+)\]\.flavors\[(?P<flavor>\d+)\]"
    r"(?:\.resources\[(?P<resource>\d+)\])?(?:\.(?P<field>\w+))?"
)

Row = dict[str, str]


def rows_of(groups: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return resource groups, in the form of our JSON, as rows of the table."""
    return [
        {
            "group": str(number),
            "flavor": flavor["name"],
            "resource": cell["name"],
            **{name: cell[name] or "" for name in _AMOUNTS},
        }
        for number, group in enumerate(groups, 1)
        for flavor in group["flavors"]
        for cell in flavor["resources"]
    ]


def groups_of(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as resource groups. The order of the rows gives the order of flavors and of resources."""
    groups: dict[str, dict[str, Any]] = {}
    for row in rows:
        group = groups.setdefault(row["group"], {"covered_resources": [], "flavors": {}})
        if row["resource"] not in group["covered_resources"]:
            group["covered_resources"].append(row["resource"])
        cells = group["flavors"].setdefault(row["flavor"], [])
        cells.append({"name": row["resource"], **{name: row[name] or None for name in _AMOUNTS}})
    return [
        {
            "covered_resources": group["covered_resources"],
            "flavors": [{"name": name, "resources": cells} for name, cells in group["flavors"].items()],
        }
        for _, group in sorted(groups.items(), key=lambda item: int(item[0]))
    ]


def place_in_words(path: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """Translate a path into `resource_groups` to the words of the quota table: `v100, cpu, nominal quota`."""
    found = _PLACE.fullmatch(path)
    if found is None:
        return path
    flavor = groups[int(found["group"])]["flavors"][int(found["flavor"])]
    words = [flavor["name"]]
    if found["resource"] is not None:
        words.append(flavor["resources"][int(found["resource"])]["name"])
    if found["field"]:
        words.append(found["field"].replace("_", " "))
    return ", ".join(words)


def words_of(resource: str, quantity: str) -> str:
    """Return a quantity with its unit, such as `512 GiB` for 524288Mi of memory; empty if the unit adds no
    information."""
    try:
        words = amount_in_words(resource, parse_amount(resource, quantity)) if quantity else ""
    except ValueError:
        return ""
    return "" if words == quantity else words


class QuotaTable(forms.Widget):
    """The table, with a few empty rows at its end. A row that is emptied is removed."""

    flavors: Sequence[str] = ()
    """The flavors that a row may be of. One that it names already stays a choice: it may not be there yet."""

    def render(self, name: str, value: Any, attrs: Mapping[str, Any] | None = None, renderer: Any = None) -> SafeString:
        rows: list[Row] = [*(value or ()), *({} for _ in range(_EMPTY_ROWS))]
        head = format_html_join("", "<th>{}</th>", ((title,) for title, _ in COLUMNS.values()))
        body = format_html_join("", "<tr>{}</tr>", ((self._cells(name, index, row),) for index, row in enumerate(rows)))
        return format_html(
            '<div class="kw-quotas"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
            '<datalist id="{}-known">{}</datalist><input type="hidden" name="{}-rows" value="{}">',
            head,
            body,
            name,
            format_html_join("", '<option value="{}">', ((resource,) for resource in RESOURCES)),
            name,
            len(rows),
        )

    def _cells(self, name: str, index: int, row: Row) -> SafeString:
        return format_html_join("", "<td>{}</td>", ((self._cell(name, index, column, row),) for column in COLUMNS))

    def _cell(self, name: str, index: int, column: str, row: Row) -> SafeString:
        title, width = COLUMNS[column]
        text = row.get(column, "")
        if column == "flavor":
            names = dict.fromkeys(["", *self.flavors, text])
            options = format_html_join(
                "",
                '<option value="{}"{}>{}</option>',
                ((flavor, mark_safe(" selected") if flavor == text else "", flavor) for flavor in names),
            )
            return format_html(
                '<select name="{}-{}-{}" aria-label="{}">{}</select>', name, index, column, title, options
            )
        field = format_html(
            '<input type="text" name="{}-{}-{}" value="{}" size="{}" aria-label="{}"{}>',
            name,
            index,
            column,
            text,
            width,
            title,
            format_html(' list="{}-known"', name) if column == "resource" else "",
        )
        unit = words_of(row.get("resource", ""), text) if column in _AMOUNTS else ""
        return format_html("{}<small>{}</small>", field, unit) if unit else field

    def value_from_datadict(self, data: Mapping[str, Any], files: MultiValueDict[str, Any], name: str) -> list[Row]:
        """Return the rows that are not empty."""
        count = str(data.get(f"{name}-rows", "0"))
        rows = [
            {column: str(data.get(f"{name}-{index}-{column}", "")).strip() for column in COLUMNS}
            for index in range(min(int(count), 1000) if count.isdigit() else 0)
        ]
        return [row for row in rows if any(text for column, text in row.items() if column != "group")]

    def value_omitted_from_data(self, data: Mapping[str, Any], files: MultiValueDict[str, Any], name: str) -> bool:
        """Return whether the form was sent without the table."""
        return f"{name}-rows" not in data


class QuotaTableField(forms.Field):
    """Resource groups. Its value is the JSON's `resource_groups`, which the services validate."""

    widget = QuotaTable

    def clean(self, value: Any) -> list[dict[str, Any]]:
        """Return the groups; raises ValidationError for a row without a flavor or a resource, or whose group is not a
        number."""
        rows: list[Row] = value or []
        for number, row in enumerate(rows, 1):
            row["group"] = row["group"] or "1"
            if not (row["group"].isascii() and row["group"].isdigit()):
                raise forms.ValidationError(f"Row {number}: the group must be a number, not {row['group']!r}.")
            if not row["flavor"] or not row["resource"]:
                raise forms.ValidationError(f"Row {number}: name both a flavor and a resource.")
        return groups_of(rows)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool((initial or []) != (data or []))
