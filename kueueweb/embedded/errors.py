"""The errors of starting a server here."""


class ServerUnavailable(Exception):
    """A server cannot run on this machine. The message gives the reason, and the variable for a server that runs
    elsewhere.
    """

    def __init__(self, server: str, variable: str, why: str) -> None:
        super().__init__(
            f"{server} could not be started: {why.strip()}\nSet {variable} to use a server that already runs."
        )
        self.server = server
        self.variable = variable
