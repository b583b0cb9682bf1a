"""How nodes and devices are ranked."""
