"""What kind of server a value model is behind, and what to change when it is the wrong one."""

from __future__ import annotations

from dataclasses import dataclass

from focus_critic.pooling import PROBE, Layout, find_layout, numbers, pooling_request
from focus_critic.transport import ServedModel, Transport
from focus_types import BackendError, InvalidRequestError, ProtocolError

__all__ = ["NO_POOLING", "ServerKind", "check_served", "find_kind", "generates", "pools_itself"]

NO_POOLING = (404, 405, 501)
"""How a server that does not pool answers ``/pooling``."""
_PER_TOKEN_FLAG = """--pooler-config '{"task": "token_classify"}'"""


@dataclass(frozen=True)
class ServerKind:
    """What the probe found."""

    layout: Layout
    context_length: int | None
    """Tokens of the model's context; None if the server does not tell."""

    @property
    def note(self) -> str:
        """In words, and what the kind allows."""
        if self.layout == "token":
            return "one value per token: every reduce and values_at"
        return f"one value per context: reduce='last' alone; {_PER_TOKEN_FLAG} gives one per token"


async def find_kind(transport: Transport, model: str) -> ServerKind:
    """Ask a server for two small contexts.

    Raises:
        ProtocolError: It serves no value model.
        BackendError: It cannot be reached, or has no such model.
    """
    layout = find_layout(numbers(await transport.pool(pooling_request(model, PROBE, truncate=True)), len(PROBE)))
    try:
        served = await transport.served()
    except BackendError:
        # Only the count of contexts that were cut needs it, and unlike scoring it may ask for a valid key.
        served = []
    lengths = [one.max_model_len for one in served if one.id == model]
    return ServerKind(layout, lengths[0] if lengths else None)


async def check_served(transport: Transport, base_url: str, model: str) -> list[ServedModel]:
    """The models of the server at an address; empty if it cannot be asked.

    Raises:
        BackendError: Nothing answers, it is no vLLM server, or it serves other models only.
    """
    try:
        served = await transport.served()
    except BackendError as error:
        if error.status != 404 and not isinstance(error, ProtocolError):
            raise
        raise BackendError(
            f"{base_url} is not the root of a vLLM server, which base_url must be, without /v1: {error}",
            status=error.status,
            body=error.body,
        ) from error
    names = [one.id for one in served]
    if names and model not in names:
        raise BackendError(f"the server at {base_url} serves {', '.join(names)}, not {model}: pass its name as model=")
    return served


def generates(base_url: str, model: str, error: BackendError) -> BackendError:
    """The error of a server that has the model and does not pool."""
    return BackendError(
        f"the server at {base_url} serves {model}, but not for pooling: start it with --runner pooling"
        f" {_PER_TOKEN_FLAG}",
        status=error.status,
        body=error.body,
    )


def pools_itself(base_url: str, what: str) -> InvalidRequestError:
    """The error of asking a server that pools by itself for what needs the values of tokens."""
    return InvalidRequestError(
        f"{what} needs one value per token, and the server at {base_url} pools by itself, into one value per context:"
        f" start it with {_PER_TOKEN_FLAG}, or use reduce='last'"
    )
