"""OpenAPI of taints and tolerations in manifests."""

from typing import Final

from kinds import openapi
from scheduling.model.selectors import TaintEffect

_EFFECTS: Final = [effect.value for effect in TaintEffect]

TAINTS_SCHEMA: Final = openapi.listing(
    openapi.tree(
        {
            "key": openapi.text("The key of the taint."),
            "value": openapi.text("The value of the taint."),
            "effect": openapi.text("The effect on pods that do not tolerate it.", enum=_EFFECTS),
        },
        ("key", "effect"),
    )
)
TOLERATIONS_SCHEMA: Final = openapi.listing(
    openapi.tree(
        {
            "key": openapi.text("The key of the tolerated taints; empty with operator Exists: all keys."),
            "operator": openapi.text("Equal compares the value; Exists takes any value.", default="Equal"),
            "value": openapi.text("The value of the tolerated taints."),
            "effect": openapi.text("The tolerated effect; empty: all effects.", enum=_EFFECTS),
            "tolerationSeconds": openapi.integer("How long a NoExecute taint is tolerated, in seconds."),
        }
    )
)
