"""YAML documents: what Kubernetes would read, and nothing that a hostile author may write."""

import pytest

from foundation.exceptions import HostileManifest, ManifestErrors
from queues.manifests.documents import Limits, read_documents
from scheduling.manifest import MistakeReason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-5", -5),
        ("0x10", 16),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("on", True),
        ("'on'", "on"),
        ("~", None),
        ("", None),
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),
        ("010", "010"),
        (".nan", ".nan"),
        ("1e999", "1e999"),
        ("9" * 60, 1e60),
        ("10Gi", "10Gi"),
        ("!!str 5", "5"),
    ],
)
def test_scalars_are_those_of_json(text: str, value: object) -> None:
    (document,) = read_documents(f"field: {text}")
    assert document.content == {"field": value}
    assert type(document.content["field"]) is type(value)


def test_keys_are_text_as_written() -> None:
    (document,) = read_documents("on: 1\n5: 2\n")
    assert document.content == {"on": 1, "5": 2}


def test_empty_documents_count_but_are_left_out() -> None:
    found = read_documents("---\n# nothing\n---\na: 1\n---\n---\nb: 2\n", source="file.yaml", first_index=10)
    assert [(document.index, document.content, document.source) for document in found] == [
        (11, {"a": 1}, "file.yaml"),
        (13, {"b": 2}, "file.yaml"),
    ]


def test_json_is_yaml() -> None:
    (document,) = read_documents(b'\xef\xbb\xbf{"a": [1, {"b": null}]}')
    assert document.content == {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        ("a: &x [1, *x]\n", "a[1]", "an alias must not occur inside the value that it refers to"),
        (
            "a: &x " + "[" * 40 + "1" + "]" * 40 + "\nb: {c: " + "[" * 40 + "*x" + "]" * 40 + "}\n",
            "b.c" + "[0]" * 40,
            "must not be nested more than 64 deep",
        ),
        ("a: !!python/object:os.system x\n", "a", "YAML tags are not supported"),
        ("a: !local {b: 1}\n", "a", "YAML tags are not supported"),
        ("a: !!binary aGk=\n", "a", "YAML tags are not supported"),
        ("{a: " * 200, ".".join("a" * 64), "must not be nested more than 64 deep"),
    ],
)
def test_hostile_text_is_refused(text: str, path: str, rule: str) -> None:
    with pytest.raises(HostileManifest) as caught:
        read_documents(text)
    (error,) = caught.value.errors
    assert (error.path, error.rule, error.reason) == (path, rule, MistakeReason.HOSTILE)


@pytest.mark.parametrize("first", ["[x, x]", "{k: x, l: x}", "y" * 100_000])
def test_a_bomb_of_aliases_is_refused(first: str) -> None:
    lines = [f"a0: &a0 {first}"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)]
    with pytest.raises(HostileManifest) as caught:
        read_documents("\n".join(lines))
    (error,) = caught.value.errors
    assert error.rule == "aliases must stand for at most 100000 values and 4194304 characters per request"


def test_aliases_and_merged_mappings_are_written_out_as_kubernetes_reads_them() -> None:
    """Files written by hand, and those of Helm, have them."""
    text = """
    base: &base {image: app, cpu: 1, env: [{name: A}]}
    other: &other {cpu: 2, tier: front}
    plain: *base
    merged: {<<: *base, cpu: 4}
    first wins:
      <<: [*other, *base]
    written: {"<<": 1}
    """
    (document,) = read_documents(text)
    base = {"image": "app", "cpu": 1, "env": [{"name": "A"}]}
    assert document.content == {
        "base": base,
        "other": {"cpu": 2, "tier": "front"},
        "plain": base,
        "merged": {**base, "cpu": 4},
        "first wins": {**base, "cpu": 2, "tier": "front"},
        "written": {"<<": 1},
    }
    document.content["plain"]["env"].append("changed")
    assert document.content["base"] == base


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        ("a: *x\nb: &x 1\n", "a", "Not found: &x is not defined before its alias"),
        ("a: &x 1\n---\na: *x\n", "a", "Not found: &x is not defined before its alias"),
        ("a: &x k\n*x : 1\n", "", "a key must be a string, not an alias"),
        ("a: {<<: 1}\n", "a.<<", "Invalid value: it must be a mapping or a list of mappings"),
        ("<<: {a: 1}\n<<: {b: 1}\n", "<<", "Duplicate value: one mapping contains this key twice"),
    ],
)
def test_an_alias_that_cannot_be_is_located(text: str, path: str, rule: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        read_documents(text)
    (error,) = caught.value.errors
    assert (error.path, error.rule) == (path, rule)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ("bytes", "a: 1\nb: 2\nc: 3\n"),
        ("documents", "a: 1\n---\nb: 2\n---\nc: 3\n---\nd: 4\n"),
        ("values", "a: [1, 2, 3, 4, 5]\n"),
    ],
)
def test_what_is_too_large_is_refused(limit: str, text: str) -> None:
    read_documents(text)
    with pytest.raises(HostileManifest):
        read_documents(text, limits=Limits()._replace(**{limit: 3}))


@pytest.mark.parametrize(
    ("text", "path", "rule"),
    [
        ("a: [", "line 2, column 1", "is not YAML"),
        ("a: 1\n---\n- 1\n", "", "must be a mapping with apiVersion and kind"),
        ("spec:\n  a: 1\n  a: 2\n", "spec.a", "Duplicate value: one mapping contains this key twice"),
        ("? [1]\n: 2\n", "", "a key must be a string"),
        ('a: "\\0"\n', "a", "must not contain NUL"),
        ('a: "\\ud800"\n', "line 1, column 7", "is not YAML"),
        (b"\xff\xfe\xff", "", "must be UTF-8"),
        ("a: \x01\n", "", "is not YAML"),
    ],
)
def test_malformed_text_is_located(text: str | bytes, path: str, rule: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        read_documents(text)
    (error,) = caught.value.errors
    assert error.path == path
    assert error.rule.startswith(rule)
