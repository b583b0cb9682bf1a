"""The part of a quota that queues and users get: sharing policies, past usage, limits of users."""
