"""Routing of a mixture of experts: 4096 tokens, 64 experts; the weights of the best two, 0 for the others"""
import numpy as np
from nkigen import trace

TOKENS, WIDTH, EXPERTS = 4096, 1024, 64
FLOPS = 2 * TOKENS * WIDTH * EXPERTS


@trace(input_specs=[((TOKENS, WIDTH), "bf16"), ((WIDTH, EXPERTS), "bf16")])
def moe_routing(x, router):
    logits = (x @ router).astype(np.float32)
    e = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
    p = e / np.sum(e, axis=-1, keepdims=True)
    best = np.max(p, axis=-1, keepdims=True)
    second = np.max(np.where(p >= best, 0.0, p), axis=-1, keepdims=True)
    chosen = np.where(p >= second, p, 0.0)
    return chosen / np.sum(chosen, axis=-1, keepdims=True)
