"""Error replies in vLLM's shapes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NoReturn

from focus_testing.wires.base import Exchange, Refusal, Reply
from focus_testing.wires.fields import Fields

__all__ = ["invalid", "refuse", "request_fields", "vllm_error"]

_KINDS = {400: "BadRequestError", 404: "NotFoundError", 500: "InternalServerError", 503: "ServiceUnavailableError"}


def vllm_error(status: int, message: str, *, param: str | None = None, kind: str | None = None) -> Reply:
    """``{"error": {message, type, param, code}}``; 401 is a bare word."""
    if status == 401:
        return Reply({"error": "Unauthorized"}, 401)
    kind = kind or _KINDS.get(status, HTTPStatus(status).phrase)
    return Reply({"error": {"message": message, "type": kind, "param": param, "code": status}}, status)


def refuse(message: str, *, param: str | None = None, value: Any = None) -> NoReturn:
    """400, with the parameter and its value at the end of the message where they are known."""
    if param is not None and value is not None:
        message = f"{message} (parameter={param}, value={value})"
    raise Refusal(vllm_error(400, message, param=param))


def invalid(name: str, kind: str, message: str) -> NoReturn:
    """400 for a field of the wrong type, as the server's request model words it."""
    place = f"body.{name}" if name else "body"
    detail = f"1 validation error:\n  {{'type': '{kind}', 'loc': '{place}', 'msg': '{message}'}}"
    raise Refusal(vllm_error(400, detail, param=place if name else None, kind="Bad Request"))


def request_fields(exchange: Exchange) -> Fields:
    """The fields of a JSON request.

    Raises:
        Refusal: Another media type, or no JSON object.
    """
    if not exchange.headers.get("content-type", "").startswith("application/json"):
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise Refusal(vllm_error(400, message, kind="Bad Request"))
    return Fields(exchange.body, invalid)
