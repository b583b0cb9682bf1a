"""How the cache writes values: as JSON, which can hold nothing that runs."""

from typing import Any

import orjson
from redis import RedisError


class JSONSerializer:
    """For Django's Redis cache. Plain numbers stay plain, so that Redis can count them."""

    def dumps(self, value: Any) -> bytes | int:
        """Serialize the value for storage. Raises TypeError for a value that JSON cannot represent."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        return orjson.dumps(value)

    def loads(self, data: bytes) -> Any:
        """Load the stored value. Anything other than JSON was not written by us, and counts as Redis not answering."""
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise RedisError("a value in the cache is not JSON") from error
