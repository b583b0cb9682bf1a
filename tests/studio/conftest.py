"""The users that the tests of this folder use."""

from tests.users import alice, bob, charlie, cluster, nobody, vera

__all__ = ["alice", "bob", "charlie", "cluster", "nobody", "vera"]
