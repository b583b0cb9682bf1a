"""From what a cluster reports to rows."""
