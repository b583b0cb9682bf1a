"""Filters of lists that take one value or several."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import QuerySet
from django_filters import rest_framework as filters

ONE_OR_MORE: Final = "One or more, separated by commas."


def names_in(text: str) -> list[str]:
    """Return the values of a parameter, which commas separate."""
    return [name for part in text.split(",") if (name := part.strip())]


class NamesFilter(filters.CharFilter):  # type: ignore[misc]  # the library is not typed
    """An exact match with one of several values, separated by commas. No value that it compares contains a comma."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"help_text": ONE_OR_MORE, **kwargs})

    def filter(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        """Return the rows that have one of the values; all rows if none is given."""
        if not value:
            return rows
        return rows.filter(**{f"{self.field_name}__in": names_in(value)})


class ChoicesFilter(filters.BaseInFilter, filters.ChoiceFilter):  # type: ignore[misc]  # the library is not typed
    """A match with one of several values of an enumeration, separated by commas."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"help_text": ONE_OR_MORE, **kwargs})
