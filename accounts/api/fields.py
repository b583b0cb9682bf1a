"""Strict fields for request bodies: they take values of their own type and convert nothing."""

from typing import Any, ClassVar

from rest_framework import serializers


class Text(serializers.CharField):
    """A string. Django REST framework's own field also accepts numbers, which Kubernetes refuses."""

    default_error_messages: ClassVar = {"invalid": "must be a string"}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Word(serializers.RegexField):
    """A string that matches a pattern. Numbers are refused."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class TrueOrFalse(serializers.BooleanField):
    """true or false. Django REST framework's own field also accepts 0, "on" and similar values."""

    default_error_messages: ClassVar = {"invalid": "must be true or false"}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
