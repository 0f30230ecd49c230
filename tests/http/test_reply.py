"""Decoding: what is not the protocol is named by its path."""

from __future__ import annotations

import msgspec
import pytest

from focus_http import HttpReply, decode_json, encode_json
from focus_types import ProtocolError


class Choice(msgspec.Struct):
    token_ids: list[int]


class Wire(msgspec.Struct):
    id: str
    choices: list[Choice]


GOOD = b'{"id": "r-1", "object": "x", "choices": [{"token_ids": [1, 2], "text": "a", "logprobs": {"deep": [[]]}}]}'


def got(body: bytes, **headers: str) -> HttpReply:
    return HttpReply(200, {"content-type": "application/json", "x-request-id": "r-9", **headers}, body, 2, 0.1)


def test_the_named_fields_are_decoded_and_the_others_skipped() -> None:
    assert decode_json(got(GOOD), Wire, backend="unit") == Wire("r-1", [Choice([1, 2])])
    assert decode_json(got(b'{"a": 1}'), dict[str, int], backend="unit") == {"a": 1}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "it is empty"),
        (b"<html>login</html>", "it is a web page (application/json)"),
        (GOOD[:60], "Input data was truncated (60 bytes, application/json)"),
        (b"Internal Server Error", "malformed"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"id": "r"}', "missing required field `choices`"),
        (b'{"id": "r", "choices": null}', "`$.choices`"),
        (b'{"id": "r", "choices": [{"token_ids": [1, "2"]}]}', "`$.choices[0].token_ids[1]`"),
        (b'{"id": "r", "choices": [{"token_ids": [1, 2.5]}]}', "`$.choices[0].token_ids[1]`"),
        (b'{"id": "r", "choices": [{"token_ids": [1, true]}]}', "`$.choices[0].token_ids[1]`"),
        (b'{"id": "r", "choices": [{"token_ids": [NaN]}]}', "malformed"),
        (b'{"id": "\xff", "choices": []}', "UTF-8"),
        (b'{"other": ' + b"[" * 100_000, "recursion"),
    ],
)
def test_a_body_that_is_not_the_protocol(body: bytes, text: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_json(got(body), Wire, backend="unit")
    error = caught.value
    assert text.lower() in str(error).lower()
    assert str(error).startswith("unit answered 200")
    assert (error.status, error.request_id, error.attempts) == (200, "r-9", 2)
    assert error.body == body[:500].decode("utf-8", "replace")
    assert error.__context__ is None


def test_a_compressed_body_is_named() -> None:
    with pytest.raises(ProtocolError, match="compressed \\(gzip\\)"):
        decode_json(got(b"\x1f\x8b\x08", **{"content-encoding": "gzip"}), Wire, backend="unit")


def test_encoding() -> None:
    assert encode_json({"prompt": (1, 2), "text": "é", "n": None}) == '{"prompt":[1,2],"text":"é","n":null}'.encode()
