"""Kubernetes' rules for names and labels."""

import pytest

from scheduling.manifest.syntax import (
    Syntax,
    dns_label,
    dns_subdomain,
    generate_name_prefix,
    label_value,
    qualified_name,
)


@pytest.mark.parametrize(
    ("syntax", "right", "wrong"),
    [
        (dns_label, ["a", "a-b", "0", "x" * 63], ["", "-a", "a-", "A", "a.b", "a_b", "x" * 64, "é", "a\n"]),
        (dns_subdomain, ["a", "a.b-c.d", "x" * 253], ["", ".a", "a.", "a..b", "a/b", "A", "x" * 254, "a\n"]),
        (
            qualified_name,
            ["cpu", "nvidia.com/gpu", "A_b.C", "x" * 63, f"{'a' * 253}/x"],
            ["", "/a", "a/", "a/b/c", "-a", "A.com/x", "x" * 64, f"{'a' * 254}/x"],
        ),
        (label_value, ["", "a", "A_b.C-d", "x" * 63], ["-a", "a b", "x" * 64, "a/b", "é"]),
        (generate_name_prefix, ["a-", "a", "a.b-"], ["-", "A-", "_"]),
    ],
)
def test_right_and_wrong(syntax: Syntax, right: list[str], wrong: list[str]) -> None:
    assert {text: syntax(text) for text in right} == dict.fromkeys(right)
    assert [text for text in wrong if syntax(text) is None] == []
