"""Errors of the API itself, in addition to those of the apps and of DRF."""

from rest_framework import exceptions as drf
from rest_framework import status


class TooLarge(drf.APIException):
    """The body is larger than we read."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is too large; send it in several requests."
    default_code = "TooLarge"
