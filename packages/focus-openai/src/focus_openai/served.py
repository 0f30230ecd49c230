"""Which models a server says it has, and what to change when a reply does not come."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from focus_http import HttpReply
from focus_types import AuthenticationError, BackendError

__all__ = ["advice", "model_names"]

_SHOWN = 10


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


def model_names(reply: HttpReply) -> list[str]:
    """The names in a list of models; none if the server lists them in another shape."""
    try:
        return [reply.redact(model.id) for model in msgspec.json.decode(reply.body, type=_Models).data]
    except msgspec.DecodeError:
        return []


def advice(error: BackendError, model: str, names: Sequence[str]) -> str:
    """What to change after this error; empty where the error says it.

    Args:
        error: Why there was no reply.
        model: The policy's name for the model.
        names: The models that the server lists; empty if it lists none.
    """
    if isinstance(error, AuthenticationError):
        return "The key is api_key=, else the environment variable OPENAI_API_KEY."
    if names and model not in names and (error.status == 404 or model in str(error)):
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        return f"The server serves {shown}, not {model}: pass its name as model=."
    if error.status not in (404, 405):
        return ""
    if names:
        return f"The server has the model {model}, but not this API: use another policy."
    return "Nothing answers there: base_url is the address before that path, and most end in /v1."
