"""The JSON body of a request to either API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from focus_http import encode_json
from focus_types import InvalidRequestError

__all__ = ["encode_body"]


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """The fields that are not None: what is off or locked is left out, because the APIs read null as a value.

    Raises:
        InvalidRequestError: A text that is not Unicode.
    """
    try:
        return encode_json({name: value for name, value in fields.items() if value is not None})
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"the conversation or a tool holds half of a surrogate pair, which cannot be sent: {error}"
        ) from error
