"""Backends by name: each is imported when it is chosen."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focus_cli.discover import ServedModel, ask_model, ask_sglang, root_of
from focus_cli.formats import BYTE, resolve
from focus_cli.options import read_key
from focus_format import Policy, PolicyFormat
from focus_types import InvalidRequestError, SamplingParams

if TYPE_CHECKING:
    from focus_critic import VLLMCritic
    from focus_sglang import SGLangPolicy
    from focus_vllm import VLLMPolicy

__all__ = ["GENERATING", "Target", "open_critic", "open_policy", "open_server"]

GENERATING = ("embedded", "vllm", "sglang", "openai-chat", "openai-responses")
_ELSEWHERE = {
    "tinker": "it generates through a sampling client that your training script makes (TinkerPolicy)",
    "slime": "it generates through the transport of a Slime run (SlimePolicy); its router speaks --backend sglang",
    "pooling": "a pooling server gives values, not replies: only focus check asks it",
}
_KEY = "FOCUS_API_KEY"
_OPENAI_KEY = "OPENAI_API_KEY"
_NO_KEY = "EMPTY"
"""What vLLM servers without a key are usually sent."""


@dataclass(frozen=True)
class Target:
    """What the command line says about a backend."""

    backend: str
    url: str | None = None
    model: str | None = None
    served_model: str | None = None
    profile: str | None = None
    api_key_env: str | None = None

    def address(self) -> str:
        """The URL, which this backend needs.

        Raises:
            InvalidRequestError: There is none.
        """
        if not self.url:
            raise InvalidRequestError(f"--backend {self.backend} needs --url, the server's address")
        return self.url


@contextmanager
def _installed(distribution: str) -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != distribution.replace("-", "_"):
            raise
        raise ImportError(f"this backend needs {distribution}: pip install {distribution}") from None


def open_policy(target: Target, params: SamplingParams) -> Policy[Any]:
    """The policy that a command line describes. Servers of token backends are asked for their model.

    Raises:
        InvalidRequestError: An unknown backend, or options that do not fit it.
        BackendError: The server cannot be asked.
        ImportError: The backend is not installed.
    """
    match target.backend:
        case "embedded":
            return _embedded(target, params)
        case "vllm" | "sglang":
            return open_server(target, params)
        case "openai-chat" | "openai-responses":
            return _openai(target, params)
        case other:
            reason = _ELSEWHERE.get(other, "there is no such backend")
            raise InvalidRequestError(f"--backend {other}: {reason}. Choose one of {', '.join(GENERATING)}")


def open_server(target: Target, params: SamplingParams) -> VLLMPolicy | SGLangPolicy:
    """The policy of a vLLM or SGLang server."""
    url, key = target.address(), read_key(target.api_key_env, _KEY)
    if target.backend == "vllm":
        key = key or _NO_KEY
        with _installed("focus-vllm"):
            from focus_vllm import VLLMPolicy
        served = ask_model(url, key, target.served_model)
        model, format = _format(target, served)
        return VLLMPolicy(
            model=model,
            format=format,
            served_model=served.name,
            base_url=root_of(url) + "/v1",
            api_key=key,
            default_params=params,
        )
    with _installed("focus-sglang"):
        from focus_sglang import SGLangPolicy
    if target.served_model is not None:
        raise InvalidRequestError("SGLang looks at no model name: leave --served-model out")
    served = ask_sglang(url, key)
    _, format = _format(target, served)
    return SGLangPolicy(
        model=served.name,
        format=format,
        base_url=root_of(url),
        api_key=key,
        default_params=params,
    )


def open_critic(target: Target) -> VLLMCritic:
    """The critic of a pooling server."""
    url, key = target.address(), read_key(target.api_key_env, _KEY) or _NO_KEY
    with _installed("focus-http"):
        from focus_critic import VLLMCritic
    served = ask_model(url, key, target.served_model)
    return VLLMCritic(base_url=root_of(url), model=served.name, api_key=key)


def _format(target: Target, served: ServedModel) -> tuple[str, PolicyFormat[Any]]:
    model = target.model or served.tokenizer or served.name
    try:
        return model, resolve(model, target.profile)
    except InvalidRequestError as error:
        if target.model is None:
            error.add_note(f"the server says it loaded {model!r}: if that is not to be found here, pass --model")
        raise


def _embedded(target: Target, params: SamplingParams) -> Policy[Any]:
    if target.url is not None or target.served_model is not None or target.model not in (None, BYTE):
        raise InvalidRequestError("the embedded engine has no server and one model: leave these options out")
    from focus_testing import EmbeddedPolicy, demo_engine

    return EmbeddedPolicy(demo_engine(), model=BYTE, format=resolve(BYTE, target.profile), default_params=params)


def _openai(target: Target, params: SamplingParams) -> Policy[Any]:
    if target.model is None or target.served_model is not None or target.profile is not None:
        raise InvalidRequestError(
            f"--backend {target.backend} needs --model, the API's name for it, and takes neither --served-model nor"
            " --profile: the API itself reads tool calls"
        )
    key = read_key(target.api_key_env, _OPENAI_KEY)
    if key is None:
        raise InvalidRequestError(f"{_OPENAI_KEY} is not set: set it, or name another variable with --api-key-env")
    with _installed("focus-openai"):
        from focus_openai import OpenAIChatPolicy, OpenAIResponsesPolicy
    kind = OpenAIChatPolicy if target.backend == "openai-chat" else OpenAIResponsesPolicy
    return kind(
        model=target.model,
        base_url=target.url,
        api_key=key,
        default_params=params,
    )
