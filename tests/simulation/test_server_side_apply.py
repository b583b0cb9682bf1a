"""Server-side apply: who owns which field, conflicts, force, and what goes when it is no longer named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.api.fields import changes, field_set, from_fields_v1, to_fields_v1, value_at
from tests.simulated_cluster import JOBS, Api, job, make_simulated

TRAIN = f"{JOBS}/train"


@pytest.fixture
def api() -> Api:
    return Api(make_simulated())


def applied(**changes: Any) -> dict[str, Any]:
    body = job(suspend=True)
    body["spec"].update(changes)
    return body


def owners(api: Api) -> dict[tuple[str, str], dict[str, Any]]:
    entries = api.get(TRAIN)["metadata"]["managedFields"]
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in entries}


def test_apply_creates_then_changes_nothing(api: Api) -> None:
    assert api.apply(TRAIN, applied()).code == 201
    version = api.get(TRAIN)["metadata"]["resourceVersion"]
    assert api.apply(TRAIN, applied()).code == 200
    assert api.get(TRAIN)["metadata"]["resourceVersion"] == version


def test_apply_needs_a_field_manager(api: Api) -> None:
    assert api.call("PATCH", TRAIN, applied(), "application/apply-patch+yaml").code == 400


def test_fields_are_owned_by_their_manager(api: Api) -> None:
    api.apply(TRAIN, applied(), "one")
    fields = owners(api)["one", "Apply"]
    assert fields["f:spec"]["f:suspend"] == {}
    container = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"main"}']
    assert (container["."], container["f:image"]) == ({}, {})


def test_another_managers_value_conflicts_until_it_is_forced(api: Api) -> None:
    api.apply(TRAIN, applied(parallelism=1), "one")
    refused = api.apply(TRAIN, applied(parallelism=2), "two")
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == [".spec.parallelism"]
    assert api.get(TRAIN)["spec"]["parallelism"] == 1
    assert api.apply(TRAIN, applied(parallelism=2), "two", "true").code == 200
    assert "f:parallelism" not in owners(api)["one", "Apply"]["f:spec"]
    assert "f:parallelism" in owners(api)["two", "Apply"]["f:spec"]


def test_the_same_value_is_owned_together(api: Api) -> None:
    api.apply(TRAIN, applied(parallelism=2), "one")
    assert api.apply(TRAIN, applied(parallelism=2), "two").code == 200
    api.apply(TRAIN, applied(), "one")
    assert api.get(TRAIN)["spec"]["parallelism"] == 2


def test_what_is_no_longer_applied_goes(api: Api) -> None:
    labelled = applied()
    labelled["metadata"]["labels"] = {"a": "1", "b": "2"}
    api.apply(TRAIN, labelled)
    labelled["metadata"]["labels"] = {"b": "2"}
    api.apply(TRAIN, labelled)
    assert api.get(TRAIN)["metadata"]["labels"] == {"b": "2"}


def test_an_update_takes_the_ownership_of_what_it_changes(api: Api) -> None:
    api.apply(TRAIN, applied(parallelism=1), "one")
    api.patch(TRAIN, {"spec": {"parallelism": 3}})
    assert "f:parallelism" in owners(api)["tests", "Update"]["f:spec"]
    assert api.apply(TRAIN, applied(parallelism=1), "one").code == 409


def test_what_others_have_set_stays(api: Api) -> None:
    api.apply(TRAIN, applied(), "one")
    api.patch(TRAIN, {"metadata": {"annotations": {"note": "theirs"}}})
    api.apply(TRAIN, applied(backoffLimit=1), "one")
    live = api.get(TRAIN)
    assert (live["metadata"]["annotations"], live["spec"]["backoffLimit"]) == ({"note": "theirs"}, 1)


def test_a_directive_alone_leaves_the_rest_to_its_owner(api: Api) -> None:
    api.create(JOBS, job(suspend=True))
    ours = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"suspend": False, "template": {"spec": {"nodeSelector": {"zone": "gpu-zone-a"}}}},
    }
    assert api.apply(TRAIN, ours, "kueueweb", "true").code == 200
    spec = api.get(TRAIN)["spec"]
    assert (spec["suspend"], spec["template"]["spec"]["nodeSelector"]) == (False, {"zone": "gpu-zone-a"})
    assert spec["template"]["spec"]["containers"][0]["image"] == "app"


def test_managed_fields_can_not_be_applied(api: Api) -> None:
    body = applied()
    body["metadata"]["managedFields"] = [{"manager": "me"}]
    assert api.apply(TRAIN, body).code == 400


def test_a_body_in_yaml_is_read(api: Api) -> None:
    from simulation.api.api_server import Answer, ApiServer, Request

    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
    path = "/api/v1/namespaces/default/configmaps/settings"
    request = Request("PATCH", path, {"fieldManager": "me"}, "application/apply-patch+yaml", body)
    answer = ApiServer(api.cluster).answer(request)
    assert isinstance(answer, Answer)
    assert (answer.code, answer.body["data"]) == (201, {"a": "b"})


_names = st.sampled_from(["a", "b", "env", "containers", "finalizers", "labels"])
_entries = st.builds(lambda name, value: {"name": name, "v": value}, st.sampled_from("xyz"), st.integers(0, 9))
# A list by names holds each name once: the API refuses others.
_lists = st.lists(_entries, max_size=3, unique_by=lambda entry: entry["name"])
_values = st.integers(0, 9) | _lists | st.dictionaries(_names, st.integers(0, 9), max_size=3)


@given(st.dictionaries(_names, _values | st.dictionaries(_names, _values, max_size=3), max_size=4))
def test_field_sets_survive_their_encoding(item: dict[str, Any]) -> None:
    fields = field_set(item)
    assert from_fields_v1(to_fields_v1(fields)) == fields


_whole = st.dictionaries(_names, _values | st.dictionaries(_names, _values, max_size=3), max_size=4)


@given(_whole, _whole)
def test_changes_are_what_comparing_every_leaf_finds(before: dict[str, Any], after: dict[str, Any]) -> None:
    before, after = ({"metadata": {"labels": item}, "spec": item} for item in (before, after))
    old, new = field_set(before), field_set(after)
    changed = {path for path in new if path not in old or value_at(before, path) != value_at(after, path)}
    assert changes(before, after) == (frozenset(changed), old - new)
