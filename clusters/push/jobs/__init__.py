"""Jobs in the cluster: made, started, stopped and resized as the rules of their kinds write it."""
