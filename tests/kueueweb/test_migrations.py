"""An upgrade stops nothing: processes of the release before still write to tables that have new columns by then, and no
change of a large table locks it for longer than a moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models
from django.db.migrations import AddConstraint, AddField, AddIndex, AlterField, Migration, RunSQL
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import GeneratedField
from django.db.models.functions import Now

# Its `user` became `username` in the migration that added the others: the release before could not write one anyway.
REPLACED = ("rolebinding",)
APPS = ("accounts", "queues", "gpus", "scheduler", "history", "notifications", "studio")
MIGRATIONS: Final = {key: each for key, each in MigrationLoader(None).disk_migrations.items() if key[0] in APPS}
ADDED = [
    pytest.param(operation, id=f"{app}.{operation.model_name}.{operation.name}")
    for (app, name), migration in sorted(MIGRATIONS.items())
    if name != "0001_initial"
    for operation in migration.operations
    if isinstance(operation, AddField) and operation.model_name not in REPLACED
]


@pytest.mark.parametrize("added", ADDED)
def test_an_older_process_can_still_insert_after_a_new_column(added: AddField) -> None:
    assert added.field.null or added.field.has_db_default() or isinstance(added.field, GeneratedField)


FIRST_RELEASE: Final = {
    "accounts": 18,
    "queues": 15,
    "gpus": 4,
    "scheduler": 13,
    "history": 3,
    "notifications": 2,
    "studio": 1,
}
"""The last migration of each app that no earlier release has run on tables with rows. Raise it only while nothing has
been released."""
LARGE: Final = frozenset(
    {
        "workload", "podset", "job", "workloadevent", "pod", "decision", "cycle", "metriccount", "auditrecord",
        "deviceallocation", "devicesample", "containersample", "usagerecord",
    }
)  # fmt: skip
"""Models whose tables have a row for each workload, pod, sample or change, or more."""
_FUNCTION: Final = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION[^$]*(\$\w*\$).*?\1", re.IGNORECASE | re.DOTALL)
"""The definition of a function, whose body the migration does not run."""
_BRIEF: Final = re.compile(
    r"CREATE (?:OR REPLACE )?TRIGGER[^;]*|ALTER TABLE \w+ (?:(?:RE)?SET \([^)]*\)|(?:EN|DIS)ABLE TRIGGER \w+)",
    re.IGNORECASE | re.DOTALL,
)
"""Statements that look at no row: they wait for writers at most, and are done."""
_TABLE: Final = re.compile(
    r"\b(?:ALTER TABLE|UPDATE|DELETE FROM|CREATE (?:UNIQUE )?INDEX)\b(?!.*CONCURRENTLY)", re.IGNORECASE
)


def refusals(migration: Migration) -> Iterator[str]:
    """What of a migration would lock or rewrite a large table, and what to write instead."""
    for operation in migration.operations:
        of = str(getattr(operation, "model_name", "")).lower()
        if isinstance(operation, RunSQL):
            yield from _of_statements(str(operation.sql))
        elif of in LARGE and (why := _of_operation(operation)):
            yield f"{of}: {why}"


def _of_operation(operation: Operation) -> str:
    if isinstance(operation, AddIndexConcurrently):
        return ""
    if isinstance(operation, AddIndex):
        return "the index is built under a lock: AddIndexConcurrently, in a migration with atomic = False"
    if isinstance(operation, AddConstraint):
        return "every row is looked at under a lock: AddConstraintNotValid, and ValidateConstraint in another migration"
    if isinstance(operation, AlterField):
        return "a column may be written anew: add one, fill it in steps, and remove the old one in a later release"
    return _of_field(operation.field) if isinstance(operation, AddField) else ""


def _of_field(field: models.Field[object, object]) -> str:
    if isinstance(field, GeneratedField):
        return "every row is written anew: add a plain column and fill it in steps"
    if field.unique or getattr(field, "db_index", False):
        return "its index is built under a lock: add the column without, then AddIndexConcurrently"
    default = field.db_default
    if isinstance(default, models.Expression) and not isinstance(default, models.Value | Now):
        return "every row is written anew for a default that is not one value: add it as null and fill it in steps"
    return ""


def _of_statements(sql: str) -> Iterator[str]:
    for statement in _BRIEF.sub("", _FUNCTION.sub("", sql)).split(";"):
        named = {model for model in LARGE if re.search(rf"\b[a-z]+_{model}\b", statement)}
        if named and _TABLE.search(statement):
            yield f"{', '.join(sorted(named))}: SQL that locks or writes all rows: do it in steps, or CONCURRENTLY"


@pytest.mark.parametrize("key", sorted(MIGRATIONS), ids=".".join)
def test_a_large_table_is_never_locked_for_long(key: tuple[str, str]) -> None:
    app, name = key
    if int(name[:4]) > FIRST_RELEASE[app]:
        assert list(refusals(MIGRATIONS[key])) == []


class Bad(Migration):
    operations = [
        AddIndex("workload", models.Index(fields=["name"], name="x")),
        AddConstraint("pod", models.UniqueConstraint(fields=["name"], name="y")),
        AlterField("job", "name", models.TextField()),
        AddField("workload", "owner", models.ForeignKey("auth.User", models.CASCADE, null=True)),
        AddField("workload", "code", models.UUIDField(db_default=models.Func(function="gen_random_uuid"))),
        RunSQL("UPDATE queues_workload SET name = lower(name)"),
        RunSQL("CREATE INDEX z ON queues_workload (name)"),
        RunSQL("DO $$ BEGIN DELETE FROM queues_pod; END $$"),
    ]


class Good(Migration):
    operations = [
        AddIndexConcurrently("workload", models.Index(fields=["name"], name="x")),
        AddField("workload", "note", models.TextField(db_default="")),
        AddField("workload", "at", models.DateTimeField(db_default=Now())),
        AddIndex("cluster", models.Index(fields=["name"], name="c")),
        RunSQL("CREATE INDEX CONCURRENTLY z ON queues_workload (name)"),
        RunSQL("CREATE TRIGGER t AFTER UPDATE ON queues_workload FOR EACH ROW EXECUTE FUNCTION f()"),
        RunSQL("ALTER TABLE queues_workload SET (fillfactor = 80)"),
        RunSQL("CREATE FUNCTION f() RETURNS void AS $$ DELETE FROM queues_pod; UPDATE queues_job SET uid = uid $$"),
    ]


def test_each_rule_refuses_what_it_is_for_and_nothing_else() -> None:
    assert [refusal.partition(":")[0] for refusal in refusals(Bad("bad", "queues"))] == [
        "workload", "pod", "job", "workload", "workload", "workload", "workload", "pod",
    ]  # fmt: skip
    assert list(refusals(Good("good", "queues"))) == []
