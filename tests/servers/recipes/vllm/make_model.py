"""Build three tiny Qwen3 checkpoints with numpy + safetensors (no torch needed).

usage: python make_model.py TOKENIZER_DIR OUT_DIR
TOKENIZER_DIR holds the real Qwen3 tokenizer.json + tokenizer_config.json.

OUT_DIR/random   Qwen3ForCausalLM, random weights, tied embeddings, vocabulary padded to 151936 like the real one,
                 and the generation_config.json of a real Qwen3 (temperature .6, top_k 20, top_p .95).
OUT_DIR/script   Qwen3ForCausalLM whose next token depends only on the last token, with known probabilities, plus one
                 attention head that notices a <tool_response> in the context.  It plays a whole tool-using dialogue.
OUT_DIR/critic   Qwen3ForSequenceClassification, 1 label.  The raw value of a token t is exactly (t % 63 - 31) / 10.
"""

import itertools
import json
import pathlib
import shutil
import sys

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

VOCAB = 151936  # real padded size; the tokenizer itself ends at 151668
IM_END, TOOL_CALL, TOOL_END, TOOL_RESPONSE = 151645, 151657, 151658, 151665


def config(hidden: int, arch: str, tied: bool, **extra: object) -> dict:
    return {
        "architectures": [arch],
        "model_type": "qwen3",
        "hidden_size": hidden,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "vocab_size": VOCAB,
        "max_position_embeddings": 40960,
        "rope_theta": 1000000.0,
        "rms_norm_eps": 1e-12,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "tie_word_embeddings": tied,
        "use_cache": True,
        "torch_dtype": "float32",
        "bos_token_id": 151643,
        "eos_token_id": IM_END,
        "pad_token_id": 151643,
        **extra,
    }


def body(hidden: int, rng: np.random.Generator | None, scale: float = 0.02) -> dict[str, np.ndarray]:
    """All transformer weights; zeros without a generator (the residual stream then passes through unchanged)."""
    shapes = {
        "self_attn.q_proj": (64, hidden),
        "self_attn.k_proj": (32, hidden),
        "self_attn.v_proj": (32, hidden),
        "self_attn.o_proj": (hidden, 64),
        "mlp.gate_proj": (64, hidden),
        "mlp.up_proj": (64, hidden),
        "mlp.down_proj": (hidden, 64),
    }
    out: dict[str, np.ndarray] = {}
    for i in range(2):
        for name, shape in shapes.items():
            w = np.zeros(shape) if rng is None else rng.normal(0, scale, shape)
            out[f"model.layers.{i}.{name}.weight"] = w.astype(np.float32)
        for name, n in (
            ("input_layernorm", hidden),
            ("post_attention_layernorm", hidden),
            ("self_attn.q_norm", 32),
            ("self_attn.k_norm", 32),
        ):
            out[f"model.layers.{i}.{name}.weight"] = np.ones(n, np.float32)
    out["model.norm.weight"] = np.ones(hidden, np.float32)
    return out


def write(out: pathlib.Path, tok: pathlib.Path, cfg: dict, weights: dict[str, np.ndarray], gen: dict | None) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(cfg, indent=1))
    save_file(weights, str(out / "model.safetensors"), metadata={"format": "pt"})
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tok / name, out / name)
    if gen is not None:
        (out / "generation_config.json").write_text(json.dumps(gen))


def random_model(out: pathlib.Path, tok: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    w = body(64, rng, 0.2)
    w["model.embed_tokens.weight"] = rng.normal(0, 0.3, (VOCAB, 64)).astype(np.float32)
    gen = {
        "do_sample": True,
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
        "bos_token_id": 151643,
        "pad_token_id": 151643,
        "eos_token_id": [IM_END, 151643],
    }
    write(out, tok, config(64, "Qwen3ForCausalLM", True), w, gen)


def script_model(out: pathlib.Path, tok: pathlib.Path) -> None:
    t = Tokenizer.from_file(str(tok / "tokenizer.json"))

    def ids(text: str) -> list[int]:
        return t.encode(text, add_special_tokens=False).ids

    def one(text: str) -> int:
        (i,) = ids(text)
        return i

    nl, coin = one("\n"), one(" coin")
    rules: dict[int, dict[int, float]] = {}  # last token -> {next token: probability at temperature 1}

    def chain(tokens: list[int]) -> None:
        for a, b in itertools.pairwise(tokens):
            assert a not in rules or rules[a] == {b: 1.0}, t.decode([a])
            rules[a] = {b: 1.0}

    # a known distribution that never ends: " coin" -> heads .75 / tails .25 -> " coin" ...
    rules[coin] = {one(" heads"): 0.75, one(" tails"): 0.25}
    chain([one(" heads"), coin])
    chain([one(" tails"), coin])
    # a text that ends by itself, for stop strings and the stop token
    chain([*ids("Hello one two three four five six"), IM_END])
    # one character that is four bytes over two or more tokens
    chain([one(" bird"), *ids("🦜"), one(" sings"), IM_END])
    # a special token in the middle of a reply
    chain([one(" special"), 151654, one(" tail"), IM_END])
    # the assistant's turn (last prompt token "\n"): a Hermes call; after a tool response: a final answer
    call = ids('{"name":"add","arguments":{"x":2}}')
    chain([TOOL_CALL, *call, TOOL_END, IM_END])
    done = one(" Done")
    chain([done, one("."), IM_END])
    rules[nl] = {TOOL_CALL: 1.0}

    states = sorted({*rules, *(b for r in rules.values() for b in r), TOOL_RESPONSE})
    hidden = 96
    bias, seen, other = 0, 1, 2
    dim = {s: 3 + i for i, s in enumerate(states)}
    assert 3 + len(states) <= hidden, len(states)
    emb = np.zeros((VOCAB, hidden), np.float32)
    emb[:, bias] = 1
    emb[:, other] = 1
    for s, d in dim.items():
        emb[s, other], emb[s, d] = 0, 1
    unit = np.full(hidden, np.sqrt(2 / hidden), np.float32)  # undoes RMSNorm of a vector with two ones

    head = np.zeros((VOCAB, hidden), np.float32)
    head[:, bias] = -30.0
    for a, nxt in rules.items():
        for b, p in nxt.items():
            head[b, dim[a]] = 30.0 + np.log(p)
    head[coin, other] = 30.0  # any token without a rule is followed by " coin"
    head[done, dim[nl]], head[done, seen] = 20.0, 25.0

    w = body(hidden, None)
    w["model.layers.0.input_layernorm.weight"] = unit
    w["model.norm.weight"] = unit
    # head 0 looks for <tool_response>; the slowest rotary pair (dims 15/31) barely turns, so distance does not matter
    w["model.layers.0.self_attn.q_proj.weight"][15, bias] = 1
    w["model.layers.0.self_attn.k_proj.weight"][15, dim[TOOL_RESPONSE]] = 1
    w["model.layers.0.self_attn.v_proj.weight"][0, dim[TOOL_RESPONSE]] = 1
    w["model.layers.0.self_attn.o_proj.weight"][seen, 0] = 1
    for n in ("q_norm", "k_norm"):
        w[f"model.layers.0.self_attn.{n}.weight"][:] = 2.0
    w["model.embed_tokens.weight"], w["lm_head.weight"] = emb, head
    write(out, tok, config(hidden, "Qwen3ForCausalLM", False), w, {"eos_token_id": [IM_END, 151643]})


def critic_model(out: pathlib.Path, tok: pathlib.Path) -> None:
    w = body(64, None)
    emb = np.zeros((VOCAB, 64), np.float32)
    emb[np.arange(VOCAB), np.arange(VOCAB) % 63] = 1
    w["model.embed_tokens.weight"] = emb
    w["model.norm.weight"] = np.full(64, 1 / 8, np.float32)  # RMSNorm of a one-hot vector is 8 x it
    score = np.zeros((1, 64), np.float32)
    score[0, :63] = (np.arange(63) - 31) / 10
    w["score.weight"] = score
    cfg = config(
        64, "Qwen3ForSequenceClassification", False, num_labels=1, id2label={"0": "value"}, label2id={"value": 0}
    )
    write(out, tok, cfg, w, None)


if __name__ == "__main__":
    tokenizer, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    random_model(target / "random", tokenizer)
    script_model(target / "script", tokenizer)
    critic_model(target / "critic", tokenizer)
