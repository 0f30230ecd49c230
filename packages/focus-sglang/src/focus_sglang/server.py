"""What an SGLang server, or a router before it, says about itself."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from focus_format.channel import TokenChannel
from focus_http import HttpReply, Step, decode_json, encode_json
from focus_sglang import wire
from focus_sglang.probing import probe_replies
from focus_types import BackendError, ChatCodec, ServerReport, TokenId

__all__ = ["BACKEND", "GENERATE", "parse", "probe_server"]

BACKEND = "SGLang"
GENERATE = "/generate"


class _Model(msgspec.Struct):
    served_model_name: str | None = None
    model_path: str | None = None
    is_generation: bool = True
    preferred_sampling_params: dict[str, Any] | None = None


class _Server(msgspec.Struct):
    version: str | None = None
    max_req_input_len: int | None = None
    enable_deterministic_inference: bool | None = None


def parse(reply: HttpReply) -> dict[str, Any]:
    """The JSON object of a reply."""
    return decode_json(reply, dict[str, Any], backend=BACKEND)


def probe_server(
    prompt: Sequence[TokenId], codec: ChatCodec, channel: TokenChannel, *, url: str, expected: str
) -> Generator[Step, HttpReply, ServerReport]:
    """Yields each request, is sent its reply, returns the report.

    Args:
        prompt: Ids that leave the model a choice.
        codec: The format's.
        channel: The policy's.
        url: The server's address, for messages.
        expected: The name that the policy has for the model.

    Raises:
        BackendError: The server cannot be asked, generates nothing, or has another vocabulary.
    """
    model = decode_json((yield from _first_found("/model_info", "/get_model_info")), _Model, backend=BACKEND)
    if not model.is_generation:
        raise BackendError(f"{url} serves an embedding or reward model, which generates nothing")
    server = yield from _server_info()
    replies = probe_replies(prompt, codec, channel, backend="sglang", url=url)
    report = yield from _over_http(replies)
    served = model.served_model_name or model.model_path
    length = server.max_req_input_len
    return replace(
        report,
        served_models=() if served is None else (served,),
        version=server.version,
        context_length=None if length is None else length + wire.RESERVED,
        notes=(*report.notes, *_notes(model, server, served, expected)),
    )


def _first_found(*paths: str) -> Generator[Step, HttpReply, HttpReply]:
    """The reply of the first path that exists: routers know other ones than workers."""
    *tried, last = paths
    for path in tried:
        try:
            return (yield Step("GET", path))
        except BackendError as error:
            if error.status != 404:
                raise
    return (yield Step("GET", last))


def _server_info() -> Generator[Step, HttpReply, _Server]:
    """Good to know and not needed: routers and gateways may not let it through."""
    try:
        return decode_json((yield from _first_found("/server_info", "/get_server_info")), _Server, backend=BACKEND)
    except BackendError as error:
        if error.status is None:
            raise
        return _Server()


def _over_http(
    replies: Generator[dict[str, Any], Mapping[str, Any], ServerReport],
) -> Generator[Step, HttpReply, ServerReport]:
    """Carries request and reply objects, and a request's error, over `GENERATE`."""
    body = next(replies)
    while True:
        try:
            reply = yield Step("POST", GENERATE, encode_json(body))
        except BackendError as error:
            body = replies.throw(error)
            continue
        try:
            body = replies.send(parse(reply))
        except StopIteration as stop:
            report: ServerReport = stop.value
            return report


def _notes(model: _Model, server: _Server, served: str | None, expected: str) -> Generator[str]:
    if served is not None and served != expected:
        yield f"the server calls its model {served!r}, the policy {expected!r}; SGLang checks no name"
    if model.preferred_sampling_params:
        names = ", ".join(sorted(model.preferred_sampling_params))
        yield f"the server adds preferred sampling parameters where a request has none: {names}"
    if server.enable_deterministic_inference is False:
        yield "the server ignores seeds: start it with --enable-deterministic-inference"
    if server.max_req_input_len is None:
        yield "nothing here tells the context length: set policy.context_length to the server's"
