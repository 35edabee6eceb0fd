"""SwiGLU feed-forward: 1024 tokens, width 1024, inner width 4096, bf16"""
import numpy as np
from nkigen import trace

TOKENS, WIDTH, INNER = 1024, 1024, 4096
FLOPS = 3 * 2 * TOKENS * WIDTH * INNER


@trace(input_specs=[((TOKENS, WIDTH), "bf16"), ((WIDTH, INNER), "bf16"), ((WIDTH, INNER), "bf16"), ((INNER, WIDTH), "bf16")])
def swiglu(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return (gate / (1.0 + np.exp(-gate)) * (x @ w_up)) @ w_down
