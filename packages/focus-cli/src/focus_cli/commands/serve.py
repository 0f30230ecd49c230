"""``focus serve``: the embedded engine behind a server's wire, with faults on request."""

from __future__ import annotations

import signal
import threading
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from focus_cli.failure import reported
from focus_cli.formats import BYTE
from focus_cli.options import read_key
from focus_types import InvalidRequestError

if TYPE_CHECKING:
    from focus_testing import Engine, Fault

__all__ = ["Mode", "Wire", "parse_fault", "serve"]

type Wire = Literal["vllm", "pooling", "sglang", "openai"]
type Mode = Literal["raw", "tempered", "behavior"]

_USUAL: dict[str, Mode] = {"vllm": "raw", "sglang": "tempered", "pooling": "raw", "openai": "raw"}
"""What real servers report unless they are told otherwise."""


def serve(
    wire: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(Wire.__value__))}.")] = "vllm",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 8000,
    model: Annotated[str, typer.Option(help="The served name.")] = BYTE,
    text: Annotated[
        Path | None,
        typer.Option(help="Imitate this text file (an n-gram model) instead of the demo's conversation."),
    ] = None,
    logprobs: Annotated[
        str | None,
        typer.Option(
            help=f"What log-probabilities are of: {', '.join(get_args(Mode.__value__))}. By default what the real"
            " server's are.",
            show_default=False,
        ),
    ] = None,
    context_length: Annotated[int, typer.Option(min=2, help="Most tokens of prompt and reply.")] = 4096,
    token_delay: Annotated[float, typer.Option(min=0, help="Seconds per generated token.")] = 0.0,
    api_key_env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Environment variable that holds the key to ask for.", show_default=False),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Repeatable replies to requests without a seed.")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND[:NAME=VALUE,...]",
            help="What goes wrong, for example status:status=429,retry_after=1,rate=0.1 or drop_after:calls=0+3; may"
            " be repeated.",
        ),
    ] = None,
) -> None:
    """Serve the embedded engine on loopback until it is interrupted."""
    with reported():
        from focus_testing import serve as serve_engine

        key = None if api_key_env is None else read_key(api_key_env, api_key_env)
        faults = [parse_fault(one) for one in fault or ()]
        engine = _engine(text, logprobs or _USUAL.get(wire, "raw"), context_length, seed)
        options: dict[str, Any] = {"model": model, "api_key": key, "token_delay": token_delay}
        stop = _stop_signal()
        # A wire is checked by the server itself, which knows them.
        kind: Any = wire
        with serve_engine(engine, wire=kind, fault=faults, host=host, port=port, **options) as server:
            typer.echo(f"{server.url} speaks {wire}'s wire and serves {model}")
            served = 0
            while not stop.wait(1.0):
                served += _forget(server.requests)
            served += _forget(server.requests)
        typer.echo(f"{served} requests")


def _stop_signal() -> threading.Event:
    """Set when the process is interrupted or terminated."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)
    return stop


def parse_fault(text: str) -> Fault:
    """``KIND[:NAME=VALUE,...]`` as a fault; several ``calls`` are joined by ``+``.

    Raises:
        InvalidRequestError: No fault has such a field, or the value is none.
    """
    from focus_testing import Fault

    kind, _, rest = text.partition(":")
    readers = {field.name: _READERS[field.name] for field in fields(Fault) if field.name in _READERS}
    values: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        name, _, value = pair.partition("=")
        if name not in readers:
            raise InvalidRequestError(f"--fault {text}: there is no {name!r}; there are {', '.join(readers)}")
        try:
            values[name] = readers[name](value)
        except ValueError as error:
            raise InvalidRequestError(f"--fault {text}: {value!r} is no value of {name}") from error
    chosen: Any = kind
    return Fault(chosen, **values)


def _calls(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split("+")))


_READERS: dict[str, Any] = {
    "calls": _calls,
    "rate": float,
    "seed": int,
    "path": str,
    "status": int,
    "retry_after": float,
    "seconds": float,
    "size": int,
}


def _engine(text: Path | None, mode: str, context_length: int, seed: int | None) -> Engine:
    from focus_testing import ByteTokenizer, Engine, NGramModel, demo_engine

    if mode not in get_args(Mode.__value__):
        raise InvalidRequestError(f"--logprobs {mode}: choose one of {', '.join(get_args(Mode.__value__))}")
    reported_mode: Any = mode
    tokenizer = ByteTokenizer()
    model = demo_engine().model if text is None else NGramModel(text.read_text(encoding="utf-8"), tokenizer)
    return Engine(model, tokenizer, context_length=context_length, logprob_mode=reported_mode, seed=seed)


def _forget(requests: list[Any]) -> int:
    """A server that runs for days must not keep every request; their number."""
    count = len(requests)
    del requests[:count]
    return count
