"""The JSON-over-HTTP client of the focus backends: exact errors, deadlines, safe retries."""

from __future__ import annotations

from focus_http.client import JsonClient
from focus_http.errors import ErrorRefiner, error_for
from focus_http.reply import HttpReply, decode_json, encode_json
from focus_http.steps import Step, adrive, drive

__all__ = [
    "ErrorRefiner",
    "HttpReply",
    "JsonClient",
    "Step",
    "adrive",
    "decode_json",
    "drive",
    "encode_json",
    "error_for",
]
