"""The kinds of which earlier states are shown, read from REST's rows: manifests are of the present alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kueueweb_client import cells
from kueueweb_client.cells import Column, field
from kueueweb_client.errors import ClientError
from kueueweb_client.nouns import (
    CLUSTER_QUEUES,
    DEVICES,
    LOCAL_QUEUES,
    NODES,
    WORKLOADS,
    Noun,
    Source,
    noun_named,
)

_COUNTS: Final[tuple[Column, ...]] = (
    ("PENDING", field("pending")),
    ("RESERVING", field("reserving")),
    ("ADMITTED", field("admitted")),
)
_AGE: Final[Column] = ("AGE", lambda row: cells.age(row["created_at"]))
_STOP: Final[Column] = ("STOP", field("stop_policy"))
_CONDITIONS: Final[Column] = ("CONDITIONS", cells.row_conditions)


def _of_rows(noun: Noun, *columns: Column, wide: tuple[Column, ...] = ()) -> Noun:
    shown = (("NAME", field("name")), *columns, _AGE)
    return replace(noun, columns=shown, wide=wide, of_rows=True, source=Source.ROWS)


def _past() -> dict[str, Noun]:
    cohorts = noun_named("cohort")
    assert cohorts is not None  # it is served
    found = (
        WORKLOADS,
        replace(NODES, source=Source.ROWS),
        DEVICES,
        _of_rows(CLUSTER_QUEUES, ("COHORT", field("cohort")), ("STRATEGY", field("queueing_strategy")), *_COUNTS, _STOP,
                 wide=(("USED", cells.usage), _CONDITIONS)),
        _of_rows(LOCAL_QUEUES, ("CLUSTERQUEUE", field("cluster_queue")), *_COUNTS, wide=(_STOP, _CONDITIONS)),
        _of_rows(cohorts, ("PARENT", field("parent"))),
    )  # fmt: skip
    return {noun.kind: noun for noun in found}


_PAST: Final = _past()


def past_noun(noun: Noun) -> Noun:
    """Return the kind for reading its earlier states. Raises `ClientError` for a kind without earlier states."""
    found = _PAST.get(noun.kind)
    if found is None:
        shown = ", ".join(each.plural for each in _PAST.values())
        raise ClientError(f"at: Forbidden: earlier states are shown of {shown}; not of {noun.plural}")
    return found
