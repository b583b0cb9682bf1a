"""Django's entry point of this database backend."""

from typing import Any, NoReturn

from django.db import OperationalError
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """PostgreSQL without a server: a connection fails and names the missing variable."""

    def get_connection_params(self) -> dict[str, Any]:
        return {}

    def get_new_connection(self, conn_params: dict[str, Any]) -> NoReturn:
        raise OperationalError(
            "DATABASE_URL is not set, and this command needs the database. Set it, as in "
            "DATABASE_URL=postgresql://user:password@host:5432/kueueweb, or run `make demo`, which starts "
            "its own."
        )
