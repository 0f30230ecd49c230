"""What ends a reply: Tinker takes stop ids or stop strings, never both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from focus_types import ChatCodec, TokenId

__all__ = ["Ending", "Stops", "plan_stops"]


class Ending(NamedTuple):
    """Where a reply ends and why."""

    length: int
    """How many of the server's tokens belong to the reply."""
    stop_reason: str
    matched_stop: int | str | None


@dataclass(frozen=True)
class Stops:
    """The format's stop ids and the caller's stop strings, as one list of one kind."""

    ids: frozenset[TokenId]
    """The format's own."""
    named: Mapping[TokenId, str] = field(default_factory=dict[TokenId, str])
    """The caller's strings that are one control token each."""
    strings: tuple[str, ...] = ()
    """The caller's strings as they are, when one of them can only be matched as text; else empty."""

    def sent(self) -> list[int] | list[str] | None:
        """What is sent. Never an empty list, which would disable the model's own end of text, too."""
        if self.strings:
            return list(self.strings)
        return sorted(self.ids | self.named.keys()) or None

    def ending(self, tokens: Sequence[TokenId], stop_reason: str, codec: ChatCodec) -> Ending:
        """Where these tokens end.

        A stop id ends the reply wherever it is: beside stop strings the ids cannot be sent, and the server may go on
        past them. What comes before the cut is the same sample, so the reply stays exact. No server says which stop
        matched: it is the last id, or the string that begins first in the decoded text.
        """
        for i, token in enumerate(tokens):
            if token in self.ids:
                return Ending(i + 1, "stop", token)
            if token in self.named:
                return Ending(i + 1, "stop", self.named[token])
        if stop_reason != "stop":
            return Ending(len(tokens), stop_reason, None)
        text = codec.decode(tokens)
        found = [(text.find(string), len(string), string) for string in self.strings if string in text]
        return Ending(len(tokens), stop_reason, min(found)[2] if found else None)


def plan_stops(strings: Sequence[str] | None, codec: ChatCodec) -> Stops:
    """The stops of one request."""
    texts = tuple(strings or ())
    named: dict[TokenId, str] = {}
    for string in texts:
        ids = codec.encode(string)
        # Ordinary text can come out of many tokens; a control token only out of its own id.
        if len(ids) == 1 and not codec.decode(ids, skip_special_tokens=True):
            named[ids[0]] = string
    ids_suffice = len(named) == len(set(texts))
    own = {token: string for token, string in named.items() if token not in codec.stop_tokens}
    return Stops(codec.stop_tokens, own, () if ids_suffice else texts)
