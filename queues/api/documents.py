"""YAML bodies, in addition to JSON, which the project's own parser reads."""

from collections.abc import Mapping
from typing import IO, Any, Final, cast

from rest_framework.parsers import BaseParser
from rest_framework.settings import api_settings

from queues.manifests.documents import MAX_BYTES, read_documents


class YAMLParser(BaseParser):
    """YAML documents -> a list of mappings. Raises `ManifestErrors` and `HostileManifest`."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the documents in order, a list of dicts."""
        return [document.content for document in read_documents(stream.read(MAX_BYTES + 1))]


class OldYAMLParser(YAMLParser):
    """YAML under its media type before RFC 9512."""

    media_type = "application/x-yaml"


class TextYAMLParser(YAMLParser):
    """The same under another old name."""

    media_type = "text/yaml"


YAML_PARSERS: Final[tuple[type[BaseParser], ...]] = (YAMLParser, OldYAMLParser, TextYAMLParser)
JSON_AND_YAML: Final[tuple[type[BaseParser], ...]] = (
    *cast("list[type[BaseParser]]", api_settings.DEFAULT_PARSER_CLASSES),
    *YAML_PARSERS,
)
