"""Where requests go and the headers they carry: checked once, shown never."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from focus_types.errors import InvalidRequestError

__all__ = ["Endpoint"]

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[!-~]([ \t!-~]*[!-~])?")
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection"})
# Shorter values are no secrets, and replacing them would garble every message.
_SHORTEST_SECRET = 4


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address and the headers of every request to it."""

    base_url: str
    """Scheme, host, port and path prefix, without a trailing slash, without credentials."""
    host: str
    port: int
    headers: Mapping[str, str] = field(repr=False)
    """Lower-case names; secret."""

    @classmethod
    def of(cls, base_url: str, api_key: str | None, headers: Mapping[str, str] | None) -> Endpoint:
        """Check an address, a key and headers.

        Raises:
            InvalidRequestError: The address is no http(s) address or holds credentials, a header or the key
                cannot be sent. The message never shows a value.
        """
        host, port = _address(base_url)
        sent = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        for name, value in (headers or dict[str, str]()).items():
            if not _HEADER_NAME.fullmatch(name):
                raise InvalidRequestError(f"headers: {name!r} is not a legal header name")
            if name.lower() in _FRAMING:
                raise InvalidRequestError(f"headers: {name} is written by the client itself; leave it out")
            _check_value(f"headers[{name!r}]", value)
            sent[name.lower()] = value
        if api_key is not None:
            _check_value("api_key", api_key)
            if "authorization" in sent:
                raise InvalidRequestError("give api_key or an Authorization header, not both")
            sent["authorization"] = f"Bearer {api_key}"
        return cls(base_url.rstrip("/"), host, port, sent)

    def url(self, path: str) -> str:
        """The address of a path below ``base_url``."""
        return f"{self.base_url}/{path.lstrip('/')}"

    def redact(self, text: str) -> str:
        """``text`` with every value of a caller's header, and the key, replaced by ``***``."""
        for name, value in self.headers.items():
            if name in ("content-type", "accept", "accept-encoding"):
                continue
            # A server may echo the value, or only the key behind its scheme word.
            for secret in (value, value.rpartition(" ")[2]):
                if len(secret) >= _SHORTEST_SECRET:
                    text = text.replace(secret, "***")
        return text


def _address(base_url: str) -> tuple[str, int]:
    if not isinstance(base_url, str):
        raise InvalidRequestError(f"base_url must be a str, got {type(base_url).__name__}")
    example = 'expected something like "http://localhost:8000"'
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidRequestError(f"base_url has an invalid host or port; {example}") from None
    if "@" in base_url:
        raise InvalidRequestError("base_url must not hold credentials; pass the key as api_key or in headers")
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidRequestError(f"base_url {base_url!r} is no http or https address; {example}")
    if parts.query or parts.fragment:
        raise InvalidRequestError(f"base_url must not have a query or a fragment; {example}")
    if not _HEADER_VALUE.fullmatch(base_url) or " " in base_url or "\t" in base_url:
        raise InvalidRequestError(f"base_url holds blanks, control characters or non-ASCII characters; {example}")
    try:
        host.encode("idna")
    except UnicodeError:
        raise InvalidRequestError(f"base_url has a host with an empty or too long part; {example}") from None
    return host, port or (443 if parts.scheme == "https" else 80)


def _check_value(where: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidRequestError(f"{where} must be a str, got {type(value).__name__}")
    if not _HEADER_VALUE.fullmatch(value):
        raise InvalidRequestError(
            f"{where} cannot be sent as a header: it is empty, starts or ends with a blank or a line break, "
            "or holds a control or non-ASCII character (value not shown)"
        )
