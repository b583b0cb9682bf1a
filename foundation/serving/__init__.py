"""Limits on connections and request bodies, for the web process and the servers that a cluster calls."""
