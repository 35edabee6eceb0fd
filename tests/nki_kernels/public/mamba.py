"""The selective scan of a state-space model, in the newest generation.

delta, u: (batch, channels, length), A: (channels, states), B, C: (batch, states, length).  For each channel and state,
h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * u[t] * B[t], and the result is the sum of h * C over the states.
"""
import nki
import nki.isa as nisa
import nki.language as nl

P = nl.tile_size.pmax


def load(src, shape):
    t = nl.ndarray(shape, src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=src)
    return t


def scan_of_state(d, dx, a, row_b, row_c, initial, rows, length):
    """h * C of one state, and h."""
    decay, inflow, h, r = (nl.ndarray((rows, length), nl.float32, buffer=nl.sbuf) for _ in range(4))
    nisa.activation(dst=decay, op=nl.exp, data=d, scale=a)
    nisa.tensor_tensor(dst=inflow, data1=dx, data2=row_b, op=nl.multiply)
    nisa.tensor_tensor_scan(dst=h, data0=decay, data1=inflow, initial=initial, op0=nl.multiply, op1=nl.add)
    nisa.tensor_tensor(dst=r, data1=h, data2=row_c, op=nl.multiply)
    return r, h


@nki.jit
def mamba_v1(delta, u, A, B, C):
    """States outside, channels inside: each state loads delta and u again."""
    batch, channels, length = delta.shape
    states, tiles = A.shape[1], channels // P
    out = nl.ndarray(delta.shape, delta.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(batch):
        sums = nl.ndarray((P, tiles, length), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=sums, value=0.0)
        for s in nl.affine_range(states):
            for c in nl.affine_range(tiles):
                rows = slice(c * P, (c + 1) * P)
                d, x = load(delta[b, rows, :], (P, length)), load(u[b, rows, :], (P, length))
                a = load(A[rows, s:s + 1], (P, 1))
                row_b = load(B[b, s:s + 1, :].broadcast(0, P), (P, length))
                row_c = load(C[b, s:s + 1, :].broadcast(0, P), (P, length))
                dx = nl.ndarray((P, length), nl.float32, buffer=nl.sbuf)
                nisa.tensor_tensor(dst=dx, data1=d, data2=x, op=nl.multiply)
                r, _ = scan_of_state(d, dx, a, row_b, row_c, 0.0, P, length)
                nisa.tensor_tensor(dst=sums[:, c, :], data1=sums[:, c, :], data2=r, op=nl.add)
        for c in nl.affine_range(tiles):
            nisa.dma_copy(dst=out[b, c * P:(c + 1) * P, :], src=sums[:, c, :])
    return out


@nki.jit
def mamba_v2(delta, u, A, B, C):
    """Channels outside: a tile of channels is loaded once."""
    batch, channels, length = delta.shape
    states = A.shape[1]
    out = nl.ndarray(delta.shape, delta.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(batch):
        for c in nl.affine_range(channels // P):
            rows = slice(c * P, (c + 1) * P)
            d, x, a = load(delta[b, rows, :], (P, length)), load(u[b, rows, :], (P, length)), load(A[rows, :], (P, states))
            dx, total = (nl.ndarray((P, length), nl.float32, buffer=nl.sbuf) for _ in range(2))
            nisa.tensor_tensor(dst=dx, data1=d, data2=x, op=nl.multiply)
            nisa.memset(dst=total, value=0.0)
            for s in nl.affine_range(states):
                row_b = load(B[b, s:s + 1, :].broadcast(0, P), (P, length))
                row_c = load(C[b, s:s + 1, :].broadcast(0, P), (P, length))
                r, _ = scan_of_state(d, dx, a[:, s:s + 1], row_b, row_c, 0.0, P, length)
                nisa.tensor_tensor(dst=total, data1=total, data2=r, op=nl.add)
            nisa.dma_copy(dst=out[b, rows, :], src=total)
    return out


@nki.jit
def mamba_v3(delta, u, A, B, C, step=64):
    """The sequence in tiles: each scan begins with the state that the one before it left."""
    batch, channels, length = delta.shape
    states = A.shape[1]
    assert length % step == 0
    out = nl.ndarray(delta.shape, delta.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(batch):
        for c in nl.affine_range(channels // P):
            rows = slice(c * P, (c + 1) * P)
            d, x, a = load(delta[b, rows, :], (P, length)), load(u[b, rows, :], (P, length)), load(A[rows, :], (P, states))
            dx, total = (nl.ndarray((P, length), nl.float32, buffer=nl.sbuf) for _ in range(2))
            nisa.tensor_tensor(dst=dx, data1=d, data2=x, op=nl.multiply)
            nisa.memset(dst=total, value=0.0)
            for s in nl.affine_range(states):
                state = nl.ndarray((P, 1), nl.float32, buffer=nl.sbuf)
                nisa.memset(dst=state, value=0.0)
                for t in nl.static_range(length // step):
                    at = slice(t * step, (t + 1) * step)
                    row_b = load(B[b, s:s + 1, at].broadcast(0, P), (P, step))
                    row_c = load(C[b, s:s + 1, at].broadcast(0, P), (P, step))
                    r, h = scan_of_state(d[:, at], dx[:, at], a[:, s:s + 1], row_b, row_c, state, P, step)
                    nisa.tensor_copy(dst=state, src=h[:, step - 1:step])
                    nisa.tensor_tensor(dst=total[:, at], data1=total[:, at], data2=r, op=nl.add)
            nisa.dma_copy(dst=out[b, rows, :], src=total)
    return out
