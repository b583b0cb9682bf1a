"""Reservations of nodes: windows in which only certain workloads, or none (maintenance), may use them."""
