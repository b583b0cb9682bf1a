"""kubectl's templates: the examples of its documentation, and its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from kueueweb_client.selectors import SelectorError, fields_match, labels_match
from kueueweb_client.templates import TemplateError, custom_columns, path, sort_key, template

# The object and the expressions of https://kubernetes.io/docs/reference/kubectl/jsonpath/
OBJECT = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {
                "capacity": {"cpu": "4"},
                "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}],
            },
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "addresses": [
                    {"type": "LegacyHostIP", "address": "127.0.0.2"},
                    {"type": "another", "address": "127.0.0.3"},
                ],
            },
        },
    ],
    "users": [
        {"name": "myself", "user": {}},
        {"name": "e2e", "user": {"username": "admin", "password": "secret"}},
    ],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind is {.kind}", "kind is List"),
        ("{.kind}", "List"),
        ("{['kind']}", "List"),
        ("{..name}", "127.0.0.1 127.0.0.2 myself e2e"),
        ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{.users[0].name}", "myself"),
        ("{.users[-1].name}", "e2e"),
        ("{.items[0:1].metadata.name}", "127.0.0.1"),
        ("{.items[*]['metadata.name', 'status.capacity']}", '127.0.0.1 127.0.0.2 {"cpu":"4"} {"cpu":"8"}'),
        ('{.users[?(@.name=="e2e")].user.password}', "secret"),
        ("{.items[?(@.metadata.labels)].metadata.name}", "127.0.0.1"),
        (
            "{range .items[*]}[{.metadata.name}, {.status.capacity.cpu}] {end}",
            "[127.0.0.1, 4] [127.0.0.2, 8] ",
        ),
        ('{range .items[*]}{.metadata.name}{"\\n"}{end}', "127.0.0.1\n127.0.0.2\n"),
        ("{.items[*].status.addresses[?(@.type=='another')].address}", "127.0.0.3"),
        (r"{.items[0].metadata.labels.kubernetes\.io/hostname}", "127.0.0.1"),
        (r"{.items[0].metadata.labels['kubernetes\.io/hostname']}", "127.0.0.1"),
        ("{.nothing.at.all}", ""),
        ("{.users[0].user}", "{}"),
    ],
)
def test_the_examples_of_kubectls_documentation(text: str, expected: str) -> None:
    assert template(text).render(OBJECT) == expected


@pytest.mark.parametrize("text", ["{range .items[*]}", "{end}", "{.items[}", "{.items[a]}", "{", "{.items[?(a)b]}"])
def test_mistakes_are_told(text: str) -> None:
    with pytest.raises(TemplateError, match="Invalid value"):
        template(text).render(OBJECT)


def test_paths_of_columns_and_orders_may_leave_out_braces_and_the_first_dot() -> None:
    for text in ("{.users[0].name}", ".users[0].name", "users[0].name"):
        assert path(text).find(OBJECT) == ["myself"]
    assert [title for title, _ in custom_columns("A:.kind,B:.users[0,1].name")] == ["A", "B"]
    with pytest.raises(TemplateError):
        custom_columns("NAME")


def test_orders_put_numbers_in_texts_where_people_expect_them() -> None:
    found: list[list[Any]] = [["w-10"], ["w-9"], [], [3]]
    assert sorted(found, key=sort_key) == [[], [3], ["w-9"], ["w-10"]]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("app", True), ("!app", False), ("app=a", True), ("app==a", True), ("app!=a", False), ("none!=a", True),
        ("app in (a, b)", True), ("app notin (a)", False), ("none notin (a)", True), ("app=a,tier in (gold)", True),
        ("", True),
    ],
)  # fmt: skip
def test_label_selectors(selector: str, matches: bool) -> None:
    assert labels_match(selector)({"metadata": {"labels": {"app": "a", "tier": "gold"}}}) is matches


def test_a_selector_that_cannot_be_read_is_told() -> None:
    with pytest.raises(SelectorError):
        labels_match("a in b")
    with pytest.raises(SelectorError):
        fields_match("name")
    assert fields_match("metadata.name=a,spec.x!=b")({"metadata": {"name": "a"}})
