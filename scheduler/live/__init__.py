"""Delivers the live stream from the scheduler's channel to the sockets of this process."""
