"""Exact generation through a vLLM server."""

from __future__ import annotations

from focus_vllm.policy import VLLMPolicy

__all__ = ["VLLMPolicy"]
