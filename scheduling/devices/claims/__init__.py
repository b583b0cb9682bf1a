"""Dynamic resource allocation: the devices that claims request, the quota that they are charged, and the matching
devices of a node.
"""
