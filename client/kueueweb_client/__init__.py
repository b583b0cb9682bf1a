"""The Python client of kueueweb: typed, synchronous and asynchronous, over REST alone.

from kueueweb_client import Client

with Client("https://kueueweb.example.org", token="...") as client:
    client.apply(open("job.yaml").read())
    client.wait("ai-research", "job-train", until="finished", timeout_seconds=3600)
"""

from kueueweb_client.client import AsyncClient, Client
from kueueweb_client.errors import ApiError, ClientError, Failed, Timeout, Unreachable

__all__ = ["ApiError", "AsyncClient", "Client", "ClientError", "Failed", "Timeout", "Unreachable"]
