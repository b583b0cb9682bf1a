"""The web process as it is shipped, in a thread of the test's process and on its database."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from kueueweb.web.server import Server, server_configuration


@contextmanager
def listening_server(**more: Any) -> Iterator[str]:
    """Its host and port; `more` is of uvicorn's configuration."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()  # whoever comes before the server accepts waits for it
    server = Server(server_configuration(log_level="warning", lifespan="off", **more))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()
        with connection.cursor() as cursor:  # the server's threads keep theirs for the next request
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert not thread.is_alive(), "something holds up the end of the server"
