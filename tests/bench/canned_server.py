"""A loopback server that answers every POST after 50 ms with one canned 512-token reply.

usage: python canned_server.py PORT [completion|chat]
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

__all__ = ["PROMPT", "TOKENS"]

PROMPT = list(range(4000))
TOKENS = list(range(1000, 1512))
_DELAY = 0.05


def _completion() -> bytes:
    choice = {
        "index": 0,
        "text": "word " * len(TOKENS),
        "token_ids": TOKENS,
        "prompt_token_ids": PROMPT,
        "finish_reason": "length",
        "stop_reason": None,
        "logprobs": {
            "tokens": [f"token_id:{token}" for token in TOKENS],
            "token_logprobs": [-0.123456789] * len(TOKENS),
            "top_logprobs": [{f"token_id:{token}": -0.123456789} for token in TOKENS],
            "text_offset": list(range(len(TOKENS))),
        },
    }
    return _http({"id": "x", "object": "text_completion", "model": "m", "choices": [choice], "usage": {}})


def _chat() -> bytes:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    message = {"role": "assistant", "content": "word " * len(TOKENS), "refusal": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 4000, "completion_tokens": len(TOKENS), "total_tokens": 4000 + len(TOKENS)}
    reply = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return _http(reply)


def _http(reply: dict[str, Any]) -> bytes:
    body = json.dumps(reply, separators=(",", ":")).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    return head + body


class _Canned(asyncio.Protocol):
    def __init__(self, reply: bytes) -> None:
        self.reply = reply

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = bytearray()

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[:end]).lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n")[0]) if at >= 0 else 0
            if len(self.received) < end + 4 + length:
                return
            del self.received[: end + 4 + length]
            asyncio.get_running_loop().call_later(_DELAY, self.transport.write, self.reply)


async def _serve(port: int, reply: bytes) -> None:
    server = await asyncio.get_running_loop().create_server(lambda: _Canned(reply), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), _chat() if sys.argv[2:] == ["chat"] else _completion()))
