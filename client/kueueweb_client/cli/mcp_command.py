"""mcp: a server for assistants."""

from __future__ import annotations

from typing import Annotated

import typer

from kueueweb_client.cli.session import context, options, warn
from kueueweb_client.errors import ClientError


def _mcp(
    http: Annotated[
        str, typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP at this address, below /mcp.")
    ] = "",
    allowed_host: Annotated[
        list[str] | None, typer.Option("--allowed-host", help="A Host header to accept besides HOST:PORT.")
    ] = None,
) -> None:
    """Serve assistants by the Model Context Protocol: they read with your rights, and plan what a person applies.

    Without --http it speaks on standard input and output with the token of the context. With --http each request
    carries its caller's own token (Authorization: Bearer), and the context's is not used.
    """
    host, _, port = http.rpartition(":")
    if http and not (host and port.isdigit()):
        raise typer.BadParameter(f'"{http}" is not HOST:PORT', param_hint="--http")
    try:
        from kueueweb_client.mcp_server import serve
    except ModuleNotFoundError as error:
        raise ClientError(f"{error}. Install the client with its extra: pipx install 'kueueweb-client[mcp]'") from error
    if http:
        warn(f"Serving http://{http}/mcp. Put a TLS proxy in front: callers send their tokens.")
    address = (host, int(port)) if http else None
    serve(context(), options.cluster, address=address, allowed_hosts=allowed_host or ())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(_mcp)
