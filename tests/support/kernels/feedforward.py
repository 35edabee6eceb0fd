"""The feed-forward (SwiGLU) kernel of the SBUF pressure tests, in any size."""

HEAD = """
import numpy as np
from nkigen import trace, knob

def keep(v, tile):
    knob.knob(v).tile_op(tile_size=tile).layout(mem_space="Sbuf")
    return v

"""

PLAIN = """
    both = x @ w_gate_up
    gate, up = np.split(both, 2, axis=-1)
    gated = gate / (1.0 + np.exp(-gate)) * up
    return gated @ w_down
"""

# every intermediate value in SBUF, whether there is room or not
KEPT = """
    both = keep(x @ w_gate_up, [128, 128, 128])
    gate, up = np.split(both, 2, axis=-1)
    negative = keep(-gate, [128, 128])
    grown = keep(np.exp(negative), [128, 128])
    below = keep(grown + 1.0, [128, 128])
    swish = keep(gate / below, [128, 128])
    gated = keep(swish * up, [128, 128])
    out = gated @ w_down
    knob.knob(out).tile_op(tile_size=[128, 128, 128]).layout(mem_space="SharedHbm")
    return out
"""

# with a residual that stays in SBUF from the first operation to the last: it fits, but not beside the rest
RESIDUAL = """
    rest = keep(x * 0.5, [128, 128])
    both = x @ w_gate_up
    gate, up = np.split(both, 2, axis=-1)
    gated = gate / (1.0 + np.exp(-gate)) * up
    down = keep(gated @ w_down, [128, 128, 128])
    return down + rest
"""

VARIANTS = {"plain": PLAIN, "kept": KEPT, "residual": RESIDUAL}


def source(variant, tokens=2048, hidden=2048, inner=4096, dtype="f32"):
    shapes = [(tokens, hidden), (hidden, 2 * inner), (inner, hidden)]
    specs = ", ".join(f"({s}, {dtype!r})" for s in shapes)
    return f"{HEAD}@trace(input_specs=[{specs}])\ndef feedforward(x, w_gate_up, w_down):{VARIANTS[variant]}"
