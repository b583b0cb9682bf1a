"""The studio: questions that are tried with scheduling cycles on a copy of a cluster, in a process of its own."""
