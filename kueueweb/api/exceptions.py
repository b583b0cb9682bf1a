"""Errors of the API itself, beside those of the apps and of DRF."""

from rest_framework import exceptions as drf
from rest_framework import status


class InvalidCredentials(drf.APIException):
    """The user name and the password do not belong together, or the account is switched off."""

    status_code = status.HTTP_401_UNAUTHORIZED
    default_detail = "The user name or the password is wrong."
    default_code = "InvalidCredentials"


class TooLarge(drf.APIException):
    """The body is larger than we read."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is too large; send it in several requests."
    default_code = "TooLarge"
