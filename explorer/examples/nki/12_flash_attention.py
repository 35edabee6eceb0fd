"""Flash attention: softmax(q @ k.T) @ v without the matrix of scores."""
import math

import ml_dtypes
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

P = nl.tile_size.pmax  # rows of a tile of queries
KEYS = 128  # keys of a step


@nki.jit
def flash_attention(q_t, k_t, v):
    """q_t and k_t are (features, sequence), since the summed axis is the partitions; v is (sequence, features)."""
    features, length = q_t.shape
    scale = 1.0 / math.sqrt(features)
    out = nl.ndarray((length, features), v.dtype, buffer=nl.shared_hbm)
    keys = nl.load(k_t)
    values = [nl.load(v[nl.ds(j * KEYS, KEYS), :]) for j in range(length // KEYS)]

    for i in range(length // P):
        queries = nl.load(q_t[:, nl.ds(i * P, P)])
        # What is known of each row so far: minus the largest score, the sum of exp(score - largest), and the weighted
        # sum of values. A step that finds a larger score scales the old sums down.
        top, total, acc = None, None, None
        for j in range(length // KEYS):
            scores = nl.ndarray((P, KEYS), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=scores, stationary=queries, moving=keys[:, nl.ds(j * KEYS, KEYS)])

            here = nl.ndarray((P, 1), nl.float32)
            nisa.tensor_reduce(dst=here, op=nl.maximum, data=scores, axis=1)
            nisa.tensor_scalar(dst=here, data=here, op0=nl.multiply, operand0=-scale)
            if top is not None:
                nisa.tensor_tensor(dst=here, data1=here, data2=top, op=nl.minimum)

            # exp(scores * scale - largest) and its sum along the row, straight from PSUM
            p, row_sum = nl.ndarray((P, KEYS), v.dtype), nl.ndarray((P, 1), nl.float32)
            nisa.activation_reduce(dst=p, op=nl.exp, data=scores, scale=scale, bias=here, reduce_op=nl.add,
                                   reduce_res=row_sum)

            # p @ v: p is transposed first, so that the keys become the partitions
            p_psum, p_t = nl.ndarray((KEYS, P), v.dtype, buffer=nl.psum), nl.ndarray((KEYS, P), v.dtype)
            nisa.nc_transpose(dst=p_psum, data=p)
            nisa.tensor_copy(dst=p_t, src=p_psum)
            part = nl.ndarray((P, features), nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=part, stationary=p_t, moving=values[j])

            new = nl.ndarray((P, features), nl.float32)
            if top is None:
                nisa.tensor_copy(dst=new, src=part)
            else:
                # exp(old largest - new largest); both are kept with the other sign
                factor = nl.ndarray((P, 1), nl.float32)
                nisa.activation(dst=factor, op=nl.exp, data=top, scale=-1.0, bias=here)
                nisa.scalar_tensor_tensor(dst=row_sum, data=total, op0=nl.multiply, operand0=factor, op1=nl.add,
                                          operand1=row_sum)
                nisa.scalar_tensor_tensor(dst=new, data=acc, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=part)
            top, total, acc = here, row_sum, new

        nisa.reciprocal(dst=total, data=total)
        result = nl.ndarray((P, features), v.dtype)
        nisa.tensor_scalar(dst=result, data=acc, op0=nl.multiply, operand0=total)
        nl.store(out[nl.ds(i * P, P), :], result)
    return out


if __name__ == "__main__":
    q_t, k_t, v = (np.random.randn(*s).astype(ml_dtypes.bfloat16) for s in ((64, 256), (64, 256), (256, 64)))
    q, k, wide = q_t.astype(np.float32).T, k_t.astype(np.float32), v.astype(np.float32)
    e = np.exp(q @ k / 8)
    want = e / e.sum(1, keepdims=True) @ wide
    assert np.allclose(nki.simulate(flash_attention)(q_t, k_t, v).astype(np.float32), want, rtol=0.05, atol=0.02)
