"""Groups client addresses for counting requests."""

from ipaddress import ip_address, ip_network
from typing import Final

_IPV6_PREFIX: Final = 64
"""A provider usually gives one customer a prefix of this length, so its addresses count as one."""


def counted_address(text: str) -> str:
    """Return the address, or its network for IPv6. Text that is not an address is returned unchanged."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, _IPV6_PREFIX), strict=False))
