"""Model instances by SQL that is written out.

Django builds the text of a query again each time: for a table of sixty columns that takes longer than a few rows take
to come. Loops that ask for a few rows each second use this instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, models

_Model = TypeVar("_Model", bound=models.Model)
_Converter = Callable[[Any, Any, Any], Any]


class Columns(Generic[_Model]):
    """The columns of a model in the order of their fields, and instances from their values.

    * alias: the name of the table in the statement.
    * without: fields that are left out; they are read if they are asked for.
    """

    def __init__(self, model: type[_Model], alias: str = "", without: Collection[str] = ()) -> None:
        fields = [field for field in model._meta.concrete_fields if field.attname not in without]
        self._model = model
        self._names: Final = [field.attname for field in fields]
        self._converters: Final[list[tuple[int, _Converter]]] = [
            (index, field.from_db_value) for index, field in enumerate(fields) if hasattr(field, "from_db_value")
        ]
        self.count: Final = len(fields)
        self.table: Final = model._meta.db_table
        self.text: Final = ", ".join(f"{alias or self.table}.{field.column}" for field in fields)

    def instance(self, values: Sequence[Any]) -> _Model:
        """Build the instance from these values, one per column."""
        converted = list(values)
        for index, convert in self._converters:
            converted[index] = convert(converted[index], None, connection)
        return self._model.from_db(DEFAULT_DB_ALIAS, self._names, converted)


columns = cache(Columns)


def instances(
    model: type[_Model], where: str, parameters: Sequence[Any] | Mapping[str, Any], without: tuple[str, ...] = ()
) -> list[_Model]:
    """Return the rows of a model's table that match this condition. `where` may end with an order and a limit."""
    found: Columns[_Model] = columns(model, "", without)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {found.text} FROM {found.table} WHERE {where}", parameters)  # noqa: S608 (constants)
        return [found.instance(row) for row in cursor.fetchall()]


def fetched_rows(statement: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found
