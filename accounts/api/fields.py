"""Fields of request bodies that take what they say and nothing that could be turned into it."""

from typing import Any

from rest_framework import serializers


class Text(serializers.CharField):
    """A string. Django REST framework's own also takes numbers, which Kubernetes refuses."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)
