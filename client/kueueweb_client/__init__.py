"""The Python client of kueueweb: typed, synchronous and asynchronous, over REST alone.

from kueueweb_client import Client

with Client("https://kueueweb.example.org", token="...") as client:
    client.apply(open("job.yaml").read())
    client.wait("ai-research", "job-train", until="finished", timeout_seconds=3600)
"""

from typing import TYPE_CHECKING, Any

from kueueweb_client.errors import ApiError, ClientError, Failed, Timeout, Unreachable

if TYPE_CHECKING:
    from kueueweb_client.client import AsyncClient, Client

__version__ = "0.1.0"
__all__ = ["ApiError", "AsyncClient", "Client", "ClientError", "Failed", "Timeout", "Unreachable"]


def __getattr__(name: str) -> Any:
    """Import the clients when they are used: the command line begins faster without an HTTP library."""
    if name in ("AsyncClient", "Client"):
        from kueueweb_client import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
