"""The chat template of the byte tokenizer, and the way to render one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["CHAT_TEMPLATE", "render_template"]

CHAT_TEMPLATE = """\
{%- set turns = messages %}
{%- set opening = namespace(text="") %}
{%- if messages and messages[0].role == "system" %}
    {%- set opening.text = messages[0].content or "" %}
    {%- set turns = messages[1:] %}
{%- endif %}
{%- if tools %}
    {%- set note = "These functions can be called, one JSON schema per line:\\n<tools>\\n" %}
    {%- set opening.text = opening.text + ("\\n\\n" if opening.text else "") + note %}
    {%- for tool in tools %}
        {%- set opening.text = opening.text + (tool | tojson) + "\\n" %}
    {%- endfor %}
    {%- set opening.text = opening.text + "</tools>\\nEach call is one JSON object with name and arguments inside "
        + "<tool_call></tool_call>:\\n<tool_call>\\n{\\"name\\": ..., \\"arguments\\": {...}}\\n</tool_call>" %}
{%- endif %}
{%- if opening.text %}
    {{- "<|im_start|>system\\n" + opening.text + "<|im_end|>\\n" }}
{%- endif %}
{%- for message in turns %}
    {%- if message.role == "tool" %}
        {%- if loop.first or loop.previtem.role != "tool" %}
            {{- "<|im_start|>user" }}
        {%- endif %}
        {{- "\\n<tool_response>\\n" + (message.content or "") + "\\n</tool_response>" }}
        {%- if loop.last or loop.nextitem.role != "tool" %}
            {{- "<|im_end|>\\n" }}
        {%- endif %}
    {%- elif message.role == "assistant" %}
        {{- "<|im_start|>assistant\\n" }}
        {%- if message.reasoning_content %}
            {{- "<think>\\n" + message.reasoning_content + "\\n</think>\\n\\n" }}
        {%- endif %}
        {{- message.content or "" }}
        {%- for call in message.tool_calls or [] %}
            {%- set function = call.function or call %}
            {%- if not loop.first or message.content %}
                {{- "\\n" }}
            {%- endif %}
            {{- "<tool_call>\\n{\\"name\\": " + (function.name | tojson) + ", \\"arguments\\": " }}
            {{- function.arguments if function.arguments is string else function.arguments | tojson }}
            {{- "}\\n</tool_call>" }}
        {%- endfor %}
        {{- "<|im_end|>\\n" }}
    {%- elif message.role in ("user", "system") %}
        {{- "<|im_start|>" + message.role + "\\n" + (message.content or "") + "<|im_end|>\\n" }}
    {%- else %}
        {{- raise_exception("unknown role " + message.role) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- "<|im_start|>assistant\\n" }}
    {%- if enable_thinking is defined and not enable_thinking %}
        {{- "<think>\\n\\n</think>\\n\\n" }}
    {%- endif %}
{%- endif %}
"""
"""Turns between ``<|im_start|>`` and ``<|im_end|>``, tools in the system turn, calls as Hermes writes them."""


def _tojson(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **options)


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)


@lru_cache(maxsize=16)
def _compiled(template: str) -> Template:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse  # pyright: ignore[reportArgumentType] - jinja2 types its own globals only
    return environment.from_string(template)


def render_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    add_generation_prompt: bool,
    variables: Mapping[str, Any],
) -> str:
    """Render a chat template in a sandbox, with the filters and globals that published templates expect.

    Raises:
        jinja2.TemplateError: The template refuses these messages.
    """
    return _compiled(template).render(
        messages=messages, tools=tools, add_generation_prompt=add_generation_prompt, **variables
    )
