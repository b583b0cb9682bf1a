"""Passwords of tests take one round to hash instead of a million; the algorithm is the product's."""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class QuickHasher(PBKDF2PasswordHasher):
    """What it writes the product's processes can check, as the number of rounds is in each hash."""

    iterations = 1
