"""Every column and every field of a kind says what it means, and both say the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db.models import Field, Model

from queues.kinds import KINDS
from queues.models import ClusterQueue

ROOT = Path(__file__).resolve().parents[2]


def _our_columns() -> list[Field]:  # type: ignore[type-arg]  # of any type
    models = [model for config in apps.get_app_configs() if _is_ours(config.path) for model in config.get_models()]
    return [column for model in models for column in model._meta.concrete_fields if not column.auto_created]


def _is_ours(path: str) -> bool:
    return Path(path).parent == ROOT


def test_every_column_has_a_help_text() -> None:
    columns = _our_columns()
    assert len(columns) > 400
    assert [str(column) for column in columns if not column.help_text] == []


def test_columns_of_a_kind_have_the_help_of_its_fields() -> None:
    compared = 0
    for kind in KINDS.values():
        columns = {column.name: column for column in kind.model._meta.concrete_fields}
        for field in kind.fields:
            assert field.help, f"{kind.name}.{field.name}"
            if field.name in columns:
                assert columns[field.name].help_text == field.help
                compared += 1
    assert compared > 60


@pytest.mark.django_db
def test_a_changed_help_text_needs_no_migration(capsys: pytest.CaptureFixture[str]) -> None:
    column = _column(ClusterQueue, "stop_policy")
    before, column.help_text = column.help_text, "Another wording."
    try:
        call_command("makemigrations", "queues", "--check", "--dry-run")
    finally:
        column.help_text = before
    assert "No changes detected" in capsys.readouterr().out


@pytest.mark.django_db
def test_another_change_of_a_column_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    column = _column(ClusterQueue, "stop_policy")
    before, column.max_length = column.max_length, 17
    try:
        with pytest.raises(SystemExit):
            call_command("makemigrations", "queues", "--check", "--dry-run")
    finally:
        column.max_length = before
    assert "stop_policy" in capsys.readouterr().out


def _column(model: type[Model], name: str) -> Field:  # type: ignore[type-arg]  # of any type
    found = model._meta.get_field(name)
    assert isinstance(found, Field)
    return found
