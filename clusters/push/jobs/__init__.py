"""Jobs in the cluster: created, started, stopped and resized by the rules of their kinds."""
