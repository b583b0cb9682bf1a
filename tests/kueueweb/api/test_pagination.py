"""Cursors survive the way to the client and back, and nothing else is taken for one."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from kueueweb.api.pagination import decode_cursor, encode_cursor

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"))  # no row holds a NUL
values = st.lists(st.one_of(texts, st.integers(-(2**53), 2**53)), min_size=1, max_size=4)


@given(values)
def test_a_round_trip(row: list[Any]) -> None:
    assert decode_cursor(encode_cursor(row), len(row)) == row


@given(st.text(max_size=40))
def test_anything_else_is_refused_or_read(text: str) -> None:
    with suppress(ValidationError):
        assert len(decode_cursor(text, 2)) == 2


@pytest.mark.parametrize("row", [[None], [[1]], [{"a": 1}]])
def test_values_that_no_column_has(row: list[Any]) -> None:
    with pytest.raises(ValidationError):
        decode_cursor(encode_cursor(row), 1)


def test_what_json_does_not_have_is_text() -> None:
    uid = uuid4()
    assert decode_cursor(encode_cursor([uid, datetime(2026, 1, 5, tzinfo=UTC)]), 2)[0] == str(uid)
