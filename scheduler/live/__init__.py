"""The live stream's way from the scheduler's channel to the sockets of this process."""
