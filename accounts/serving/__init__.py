"""How our servers hold connections and bodies within limits: the web process and those that the cluster asks."""
