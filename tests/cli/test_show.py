"""`focus show` and `focus demo`: what a reader sees, on a terminal and in a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from focus_cli.records import Conversation, Settings, encode, make_record
from focus_testing import ByteTokenizer, EmbeddedPolicy, Engine, ScriptModel
from focus_types import SamplingParams

type Focus = Callable[..., Result]

TOKENIZER = ByteTokenizer()
REPLIES = {
    "é 🦜, <b>A & B</b>": 0.25,
    "é 日本, <b>A & B</b>": 0.75,
}
HOSTILE = 'red \x1b[31m \u202e\n\t"</span><script>alert(1)</script>'


def record_of(line: int, replies: Any, seed: int = 0, **fields: Any) -> bytes:
    params = SamplingParams(temperature=1.0, max_tokens=200, logprobs=3, seed=seed)
    engine = Engine(ScriptModel.replies([replies], TOKENIZER), TOKENIZER)
    policy = EmbeddedPolicy(engine, model="byte", default_params=params)
    conversation = Conversation(messages=[{"role": "user", "content": "<i>Say</i> it"}], **fields)
    assert conversation.messages is not None
    result = policy.generate(policy.prepare(conversation.messages))
    return encode(
        make_record(policy, result, conversation, line, "", Settings("embedded", "byte", "byte", None, params))
    )


def parrot_seed() -> int:
    """A seed under which the reply with one chance in four comes."""
    return next(seed for seed in range(100) if "🦜".encode() in record_of(1, REPLIES, seed))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "replies.jsonl"
    call = 'Well.\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    path.write_bytes(record_of(1, REPLIES, parrot_seed(), id="bird") + record_of(2, HOSTILE) + record_of(3, call, id=7))
    return path


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_boundaries_and_probabilities_without_colour(focus: Focus, file: Path) -> None:
    done = focus("show", file, "--id", "bird")
    assert done.exit_code == 0
    first, tokens, row, *_ = done.stdout.splitlines()
    assert first.startswith("line 1, id bird 22 tokens · stop at id 258 · exact · ")
    assert first.endswith(" behavior log-probabilities")
    # A character of two or four tokens is whole, and says how many they are.
    assert tokens == "é[2]│ │🦜[4]│,│ │<│b│>│A│ │&│ │B│<│/│b│>│<|im_end|>"
    assert row.split() == ["at", "3", "id", "240+159+166+156", '"🦜"', "25.0%", "logprob", "-1.3863"]
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("columns", ["20", "200"])
def test_width_changes_nothing(focus: Focus, file: Path, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert "é[2]│ │🦜[4]│,│ │<│b│>│A│ │&│ │B│<│/│b│>│<|im_end|>\n" in focus("show", file).stdout


def test_an_alternative_of_one_token(focus: Focus, tmp_path: Path) -> None:
    path = tmp_path / "coin.jsonl"
    path.write_bytes(record_of(1, {"heads": 0.5, "tails": 0.5}))
    shown = focus("show", path).stdout
    assert re.search(
        r'at 0 +id (104 +"h" +50.0%  logprob -0.6931  else "t"|116 +"t" +50.0%  logprob .* else "h") 50.0%', shown
    )


def test_control_characters_are_shown_not_sent(focus: Focus, file: Path) -> None:
    shown = focus("show", file, "--line", 2).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b│[│3│1│m│ │\\u202e[3]│⏎\n│⇥│" in shown


def test_the_action(focus: Focus, file: Path) -> None:
    shown = focus("show", file, "--id", 7).stdout.splitlines()
    assert 'call: f({"x": 1})' in shown
    assert "text: Well." in shown


def test_choosing(focus: Focus, file: Path, tmp_path: Path) -> None:
    done = focus("show", file, "--limit", 1)
    assert done.stdout.count("nats/token") == 1
    assert done.stderr == "2 more replies: --limit, --line or --id shows them\n"
    assert focus("show", file, "--line", 1, "--line", 3).stdout.count("nats/token") == 2
    nothing = focus("show", file, "--line", 99)
    assert (nothing.exit_code, "holds no such reply" in nothing.stderr) == (2, True)
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": 1}\n')
    wrong = focus("show", other)
    assert (wrong.exit_code, "line 1: no record of focus generate" in wrong.stderr) == (2, True)
    assert focus("show", tmp_path / "missing").exit_code == 1


def test_the_page_needs_nothing_and_escapes_everything(focus: Focus, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    done = focus("show", file, "--html", target)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"{target}: 3 replies\n")
    source = target.read_text(encoding="utf-8")
    page = Page(source)
    tags = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe", "form"} & set(tags)
    assert not any(name in ("src", "href") or name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "url(" not in source
    assert "@import" not in source
    assert "http" not in source
    assert "prefers-color-scheme: dark" in source
    assert "\x1b" not in source
    assert "\u202e" not in source
    # The reply's own markup is text.
    assert "<script>alert(1)</script>" in page.text.replace("\n", "")
    assert "A & B</b><|im_end|>" in page.text
    assert "<i>Say</i> it" in page.text
    assert tags.count("section") == 3
    hints = [attrs["title"] or "" for tag, attrs in page.tags if "title" in attrs]
    [parrot] = [hint for hint in hints if "id 240" in hint and "id 166" in hint]
    assert parrot.splitlines()[:2] == ["token 3", "id 240  25.0%  logprob -1.3863"]
    assert [line.split()[:2] for line in parrot.splitlines()[2:]] == [["id", "159"], ["id", "166"], ["id", "156"]]


def test_a_reply_of_a_chat_api(focus: Focus, tmp_path: Path) -> None:
    path = tmp_path / "native.jsonl"
    record = record_of(1, "hello").replace(b'"prompt_tokens":[', b'"prompt_tokens":null,"data":[')
    path.write_bytes(re.sub(rb'"tokens":\[[\d,]+\]', b'"tokens":[]', record, count=1))
    done = focus("show", path)
    assert done.exit_code == 0
    assert "no token ids" in done.stdout
    assert "text: hello" in done.stdout
    assert focus("show", path, "--html", tmp_path / "page.html").exit_code == 0


def test_the_demo(focus: Focus) -> None:
    done = focus("demo")
    assert (done.exit_code, done.stderr) == (0, "")
    assert 'call: flip_coin({"times": 1})' in done.stdout
    assert "T│h│e│ │c│o│i│n│ │s│h│o│w│s│ │h│e│a│d│s│.│<|im_end|>" in done.stdout
    assert re.search(r'id 104 +"h" +75.0%  logprob -0.2877  else "t" 25.0%', done.stdout)
    assert "the first 506 are those of the first prompt and its reply: every one the same" in done.stdout
    assert (
        "t│a│i│l│s"
        in focus("demo", "--seed", 1).stdout + focus("demo", "--seed", 2).stdout + focus("demo", "--seed", 3).stdout
    )
