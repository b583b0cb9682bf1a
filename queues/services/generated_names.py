"""Draws names for objects with `generateName`, again if a name is taken, as Kubernetes does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db.models import QuerySet

from queues.manifests.generated_name import generated_name

Key = tuple[str, str]
"""(namespace, name)."""


def draw_names(
    stored: QuerySet[Any, Any],
    prefixes: Sequence[Key],
    given: Iterable[Key] = (),
    draw: Callable[[str], str] = generated_name,
) -> list[str]:
    """Draw a name for each (namespace, prefix), in order: unique, not in `given`, and not in `stored`. Five random
    characters give 14 million names, so among 10,000 names with one prefix several collide."""
    taken = set(given)
    names: list[str] = [""] * len(prefixes)
    missing = list(range(len(prefixes)))
    while missing:
        drawn: dict[Key, int] = {}
        for index in missing:
            namespace, prefix = prefixes[index]
            key = (namespace, draw(prefix))
            while key in taken or key in drawn:
                key = (namespace, draw(prefix))
            drawn[key] = index
        rows = stored.filter(namespace__in={namespace for namespace, _ in drawn}, name__in=[name for _, name in drawn])
        there = set(rows.order_by().values_list("namespace", "name"))
        for key, index in drawn.items():
            if key not in there:
                names[index] = key[1]
        taken |= drawn.keys()
        missing = [drawn[key] for key in drawn if key in there]
    return names
