"""The command `kueueweb`."""
