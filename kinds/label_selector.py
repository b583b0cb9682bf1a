"""`namespaceSelector`: Kubernetes' LabelSelector."""

from typing import Any, Final

from kinds import openapi
from scheduling.manifest import FieldReader
from scheduling.manifest.syntax import label_value, qualified_name
from scheduling.model.selectors import SelectionOperator

_OPERATORS: Final = (
    SelectionOperator.IN, SelectionOperator.NOT_IN, SelectionOperator.EXISTS, SelectionOperator.DOES_NOT_EXIST,
)  # fmt: skip
"""A label selector's; a node selector has Gt and Lt too."""


LABEL_SELECTOR_SCHEMA: Final = openapi.tree(
    {
        "matchLabels": openapi.mapping(openapi.text(), "Labels that an object must have, with these values."),
        "matchExpressions": openapi.listing(
            openapi.tree(
                {
                    "key": openapi.text("The key of a label."),
                    "operator": openapi.text("How the label's value relates to the values.", enum=[*_OPERATORS]),
                    "values": openapi.listing(openapi.text(), "The values of In and NotIn; empty otherwise."),
                },
                ("key", "operator"),
            ),
            "Requirements, all of which an object must meet.",
        ),
    }
)
"""The OpenAPI schema of a LabelSelector."""


def read_label_selector(fields: FieldReader, key: str) -> dict[str, Any] | None:
    """Read a LabelSelector as it is stored: None if it is missing (selects nothing), `{}` for everything."""
    selector = fields.fields(key)
    if selector is None:
        return None
    labels = selector.text_map("matchLabels", key_syntax=qualified_name, value_syntax=label_value)
    expressions = [_read_expression(item) for item in selector.items("matchExpressions")]
    selector.close()
    found: dict[str, Any] = {}
    if labels:
        found["matchLabels"] = labels
    if expressions:
        found["matchExpressions"] = expressions
    return found


def _read_expression(item: FieldReader) -> dict[str, Any]:
    label = item.text("key", required=True, syntax=qualified_name)
    operator = item.optional_choice("operator", _OPERATORS)
    values = item.texts("values", syntax=label_value)
    item.close()
    if operator is None:
        item.require("operator", f"Use one of {', '.join(_OPERATORS)}.")
        return {"key": label}
    if operator in (SelectionOperator.IN, SelectionOperator.NOT_IN):
        if not values:
            item.error("values", f"must not be empty with operator {operator}")
        return {"key": label, "operator": operator.value, "values": values}
    if values:
        item.error("values", f"must be empty with operator {operator}", "Remove them.")
    return {"key": label, "operator": operator.value}
