"""Dynamic resource allocation: what claims ask for, how much quota that is, and which devices a node has for them."""
