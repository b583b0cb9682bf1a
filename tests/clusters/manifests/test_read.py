"""Objects of a call: unknown kinds, twins, Lists; and no input, however odd, is anything but read or refused."""

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.manifests.read import read_objects
from foundation.exceptions import ManifestErrors, UnsupportedKind
from queues.manifests.documents import Document, read_documents
from scheduling.manifest import MistakeReason

EXAMPLES = sorted((Path(__file__).parents[2] / "manifests").rglob("*.yaml"))
CONTENTS = [document.content for path in EXAMPLES for document in read_documents(path.read_bytes())]

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        "",
        "x",
        "-",
        "A b",
        "9" * 400,
        "é",
        [],
        [None],
        ["x", "x"],
        [[]],
        [{}],
        {},
        {"x": {}},
    ]
)


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in paths_of(child, (*path, key)))]


def put(content: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


@st.composite
def odd_manifests(draw: st.DrawFn) -> dict[str, Any]:
    """An example with one to three of its fields replaced by something odd."""
    content: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(CONTENTS)))
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in paths_of(content) if path]
        put(content, draw(st.sampled_from(paths)), copy.deepcopy(draw(ODD)))
    return content


@settings(deadline=None, max_examples=400)
@given(odd_manifests())
def test_odd_manifests_are_read_or_refused_with_a_place(content: dict[str, Any]) -> None:
    refused: ManifestErrors | None = None
    try:
        read_objects([Document(0, content)])
    except ManifestErrors as mistakes:
        refused = mistakes
    assert refused is None or (refused.errors and all(error.rule and str(error) for error in refused.errors))


def refusal(text: str) -> ManifestErrors:
    with pytest.raises(ManifestErrors) as caught:
        read_objects(read_documents(text))
    return caught.value


def test_a_misspelt_kind_is_suggested() -> None:
    refused = refusal("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueu\nmetadata: {name: a}\n")
    assert isinstance(refused, UnsupportedKind)
    assert refused.errors[0].remedy.startswith('Did you mean "ClusterQueue"?')


@pytest.mark.parametrize(
    ("version", "kind"),
    [("rbac.authorization.k8s.io/v1", "ClusterRole"), ("kind.x-k8s.io/v1alpha4", "Cluster"), ("a.io/v1", "Workloads")],
)
def test_a_kind_of_another_group_is_no_misspelt_one_of_ours(version: str, kind: str) -> None:
    (error,) = refusal(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n").errors
    assert "Did you mean" not in error.remedy
    assert "Leave it out of this call. Supported are " in error.remedy


def test_an_unknown_version_names_those_that_are_taken() -> None:
    (error,) = refusal("apiVersion: kueue.x-k8s.io/v1\nkind: Cohort\nmetadata: {name: a}\n").errors
    assert error.path == "apiVersion"
    assert "kueue.x-k8s.io/v1beta2" in error.remedy


def test_kind_and_version_are_required() -> None:
    errors = refusal("metadata: {name: a}\n").errors
    assert [(error.path, error.reason) for error in errors] == [
        ("apiVersion", MistakeReason.REQUIRED),
        ("kind", MistakeReason.REQUIRED),
    ]


def test_two_documents_with_one_identity_are_refused() -> None:
    one = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"
    (error,) = refusal(f"{one}---\n{one}").errors
    assert (error.document, error.path, error.reason) == (1, "metadata.name", MistakeReason.DUPLICATE)


def test_generated_names_are_no_twins() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\nspec: {containers: [{name: c, image: busybox}]}\n"
    assert len(read_objects(read_documents(f"{pod}---\n{pod}"))[0]) == 2


def test_a_list_is_unpacked_and_its_mistakes_are_located() -> None:
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: a}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q}, spec: {clusterQueu: x}}
"""
    (error,) = refusal(text).errors
    assert error.path == "items[1].spec.clusterQueu"
    assert error.remedy == 'Did you mean "clusterQueue"?'


def test_all_mistakes_of_all_documents_are_found_at_once() -> None:
    text = """
apiVersion: v1
kind: Namespace
metadata: {name: UPPER}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec: {queueingStrategy: Fifo, cohort: all, resourceGroups: [{coveredResources: [cpu]}]}
"""
    assert [(error.document, error.path) for error in refusal(text).errors] == [
        (0, "metadata.name"),
        (1, "spec.resourceGroups[0].flavors"),
        (1, "spec.queueingStrategy"),
        (1, "spec.cohort"),
    ]
