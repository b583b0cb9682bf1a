"""Versions of the clusters' rows: loops that need a cluster each second read it only when it has changed."""

from django.db import connection


def cluster_versions() -> dict[int, str]:
    """Return the version of each cluster's row, by its key in the order of keys. Each write of a row changes it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, xmin::text FROM accounts_cluster ORDER BY id")
        return dict(cursor.fetchall())
