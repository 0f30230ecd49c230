"""The wire's replies, where no server is needed to write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from focus.backends import SamplingParams
from focus.errors import ProtocolError
from focus_format.exchange import TokenRequest
from focus_http import HttpReply
from focus_vllm.wire import decode_reply

REQUEST = TokenRequest((1, 2, 3), SamplingParams(), 512)


def reply(choice: dict[str, Any], *, separators: tuple[str, str] = (",", ":")) -> HttpReply:
    body = json.dumps({"choices": [choice], "id": "secret-id"}, separators=separators).encode()
    return HttpReply(200, {}, body, 1, 0.0, lambda text: text.replace("secret", "***"))


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_the_prompts_echo_is_read_in_any_layout(separators: tuple[str, str]) -> None:
    choice = {"finish_reason": "stop", "token_ids": [9], "prompt_token_ids": [1, 2, 3]}
    assert decode_reply(reply(choice, separators=separators), REQUEST).prompt_tokens == (1, 2, 3)
    choice["prompt_token_ids"] = [1, 2, 4]
    assert decode_reply(reply(choice, separators=separators), REQUEST).prompt_tokens == (1, 2, 4)


@pytest.mark.parametrize("echo", ["123", [1, 2.5], {"ids": [1]}, [True], 7, [None]])
def test_an_echo_that_is_no_list_of_ids_is_a_protocol_error(echo: Any) -> None:
    choice = {"finish_reason": "stop", "token_ids": [9], "prompt_token_ids": echo}
    with pytest.raises(ProtocolError, match="prompt_token_ids"):
        decode_reply(reply(choice), REQUEST)


@pytest.mark.parametrize("choice", [{"finish_reason": "stop", "token_ids": [9]}, {"finish_reason": None}])
def test_a_missing_echo_is_a_problem_and_missing_ids_are_an_error(choice: dict[str, Any]) -> None:
    if "token_ids" in choice:
        decoded = decode_reply(reply(choice), REQUEST)
        assert (decoded.prompt_tokens, [problem.kind for problem in decoded.problems]) == (None, ["prompt"])
        return
    with pytest.raises(ProtocolError, match="holds no token_ids"):
        decode_reply(reply(choice), REQUEST)


def test_the_excerpt_of_a_reply_without_ids_holds_no_secret() -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_reply(reply({"finish_reason": "stop", "text": "key: secret"}), REQUEST)
    assert caught.value.body is not None
    assert "key: ***" in caught.value.body
    assert "secret" not in caught.value.body
    assert "secret" not in str(caught.value)
