"""The webhook's certificates: an authority that the API server is configured to trust, and the certificates that it
signs (pure)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_LIFE: Final = timedelta(days=5 * 365)
_AUTHORITY_RENEWED_BEFORE: Final = timedelta(days=365)
_SERVER_LIFE: Final = timedelta(days=90)
_SERVER_RENEWED_BEFORE: Final = timedelta(days=30)
_CLOCK_SKEW: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Certificates:
    """In PEM. `authorities` are all that signed a certificate that may still be in use, the newest first."""

    authorities: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def renewed(found: Certificates | None, names: Sequence[str], now: datetime) -> Certificates:
    """Return the certificates to serve: the found ones if they are valid and have these names, or new ones. An
    authority is replaced a year before its end, and trusted until then."""
    if found is None:
        authority, key = _new_authority(now)
        return _with_server(authority, [authority], key, names, now)
    authorities = x509.load_pem_x509_certificates(found.authorities)
    authority, key = authorities[0], _read_key(found.authority_key)
    if _ends_within(authority, _AUTHORITY_RENEWED_BEFORE, now):
        authority, key = _new_authority(now)
        lasting = [each for each in authorities if not _ends_within(each, timedelta(0), now)]
        return _with_server(authority, [authority, *lasting], key, names, now)
    [server] = x509.load_pem_x509_certificates(found.certificate)[:1]
    if _ends_within(server, _SERVER_RENEWED_BEFORE, now) or _names_of(server) != set(names):
        return _with_server(authority, authorities, key, names, now)
    return found


def _ends_within(certificate: x509.Certificate, span: timedelta, now: datetime) -> bool:
    return certificate.not_valid_after_utc <= now + span


def _new_authority(now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kueueweb webhook authority")])
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    made = (
        _builder(name, name, key, _AUTHORITY_LIFE, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return made.sign(key, hashes.SHA256()), key


def _with_server(
    authority: x509.Certificate,
    authorities: Sequence[x509.Certificate],
    authority_key: ec.EllipticCurvePrivateKey,
    names: Sequence[str],
    now: datetime,
) -> Certificates:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    made = (
        _builder(name, authority.subject, key, _SERVER_LIFE, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False)
        .add_extension(usages, critical=False)
        .add_extension(identifier, critical=False)
    )
    return Certificates(
        authorities=b"".join(map(_pem, authorities)),
        authority_key=_key_pem(authority_key),
        certificate=_pem(made.sign(authority_key, hashes.SHA256())),
        key=_key_pem(key),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names_of(certificate: x509.Certificate) -> set[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in names}


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the webhook's authority has a key of an unsupported kind: delete its Secret")
    return key
