"""The weights of a multifactor priority. Kueue has no field for them, so a manifest states them in an annotation."""

import json
from typing import Any, Final

from kinds import openapi
from kinds.declaration import Reading
from kinds.field_types import AnnotationType
from queues.kinds.annotated_json import read_json_annotation
from queues.kinds.quotas import Naming, camel_case, snake_case
from scheduling.manifest import FieldReader
from scheduling.manifest.syntax import qualified_name
from scheduling.model.cohort import PriorityWeights
from scheduling.model.vocabulary import Unscaled

ANNOTATION: Final = "kueueweb.io/priority-weights"

_WEIGHTS: Final = ("age", "fairShare", "jobSize", "queue", "class")
_SWITCHES: Final = ("favorSmall", "relativeToTime")
_TIMES: Final = ("maxAgeSeconds", "halfLifeSeconds")
_MAX_RESOURCES: Final = 64
_UNSCALED: Final = [Unscaled.PARTITION, Unscaled.QOS, Unscaled.RESOURCES]

Weights = dict[str, Any]
"""Write the factors in the form of the JSON, without unset ones."""


class MultifactorWeights(AnnotationType):
    """The weight of each factor; {} leaves the order to Kueue."""

    @property
    def default(self) -> Weights:
        return {}

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> Weights:
        return _read(holder, key, snake_case if reading.in_json else camel_case)

    def read_annotation(self, text: str) -> Weights:
        """Read the value of the annotation, which is a JSON object. Raises ValueError with its first mistake."""
        names = (*_WEIGHTS, "resources", *_TIMES, "usage", *_SWITCHES, "unscaled")
        shape = f"a JSON object of {', '.join(names)}"
        return read_json_annotation(text, shape, lambda holder, key: _read(holder, key, camel_case))

    def schema(self) -> openapi.Schema:
        return openapi.text()

    def write_annotation(self, value: Weights) -> str:
        names = {snake_case(name): name for name in (*_WEIGHTS, *_SWITCHES, *_TIMES)}
        return json.dumps({names.get(name, name): stated for name, stated in value.items()})

    def core(self, value: Weights) -> PriorityWeights | None:
        if not value:
            return None
        stated: dict[str, Any] = {
            name: value[name] for name in ("max_age_seconds", "half_life_seconds", "usage") if name in value
        }
        return PriorityWeights(
            age=value.get("age", 0),
            fair_share=value.get("fair_share", 0),
            job_size=value.get("job_size", 0),
            partition=value.get("queue", 0),
            qos=value.get("class", 0),
            resources=value.get("resources") or {},
            favor_small=value.get("favor_small", False),
            relative_to_time=value.get("relative_to_time", False),
            unscaled=frozenset(Unscaled(word) for word in value.get("unscaled") or ()),
            **stated,
        )


def _read(holder: FieldReader, key: str, naming: Naming) -> Weights:
    stated = holder.fields(key)
    if stated is None:
        return {}
    found: Weights = {}
    for name in _WEIGHTS:
        weight = stated.optional_integer(naming(name))
        if weight is not None:
            found[snake_case(name)] = weight
    found |= _read_resources(stated, "resources") | _read_resources(stated, "usage")
    for name in _TIMES:
        seconds = stated.optional_integer(naming(name), minimum=1)
        if seconds is not None:
            found[snake_case(name)] = seconds
    found |= {snake_case(name): True for name in _SWITCHES if stated.boolean(naming(name))}
    words = [word for word in stated.texts("unscaled", max_items=len(_UNSCALED)) if _is_known(stated, word)]
    if words:
        found["unscaled"] = words
    stated.close()
    return found


def _is_known(stated: FieldReader, word: str) -> bool:
    if word in _UNSCALED:
        return True
    stated.error("unscaled", f"Unsupported value: supported values: {', '.join(_UNSCALED)}")
    return False


def _read_resources(stated: FieldReader, key: str) -> Weights:
    listed = stated.fields(key)
    if listed is None:
        return {}
    found = {}
    for name in list(listed.content)[:_MAX_RESOURCES]:
        broken = qualified_name(name)
        if broken:
            listed.error(name, f"is a resource name: {broken}")
        weight = listed.optional_integer(name)
        if weight is not None:
            found[name] = weight
    listed.close()
    return {key: found} if found else {}
