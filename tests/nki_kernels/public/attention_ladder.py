"""NKI beta 1: the forward pass of attention in steps, each faster than the one before it.

q, k and v have shape (d, sequence); the result has shape (sequence, d).  There is no scale, so the result is
softmax(q.T @ k) @ v.T.
"""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

PMAX, FMAX = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax


@nki.jit
def attention_v2(q, k, v):
    """One tile of instructions: 128 rows, d = 128."""
    d, S = q.shape
    assert d == 128 and S == 128, "one tile only"
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb, k_sb, v_sb = nl.load(q), nl.load(k), nl.load(v)

    qk = nisa.nc_matmul(stationary=q_sb, moving=k_sb)
    row_max = nisa.tensor_reduce(op=nl.max, data=qk, axis=1)
    shifted = nisa.tensor_scalar(data=qk, op0=nl.subtract, operand0=row_max)
    e = nisa.activation(op=nl.exp, data=shifted)
    total = nisa.tensor_reduce(op=nl.add, data=e, axis=1)
    inverse = nisa.reciprocal(data=total)
    scores = nisa.tensor_scalar(data=e, op0=nl.multiply, operand0=inverse)

    v_t = nisa.tensor_copy(nisa.nc_transpose(v_sb), dtype=v.dtype)
    scores_t = nisa.tensor_copy(nisa.nc_transpose(scores))
    result = nisa.nc_matmul(stationary=scores_t, moving=v_t)
    nl.store(dst=out, value=nisa.tensor_copy(result))
    return out


@nki.jit
def attention_v3(q, k, v):
    """Longer sequences: each step is a loop of its own over all tiles of a band of rows, as wide as SBUF can hold what is
    between the steps; that has block dimensions."""
    d, S = q.shape
    assert S % FMAX == 0
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb, k_sb, v_sb = nl.load(q), nl.load(k), nl.load(v)
    tiles, columns = S // PMAX, S // FMAX
    rows = min(tiles, 4096 // S * 2)

    v_t = nl.ndarray((tiles, nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.sbuf)
    for j in nl.affine_range(tiles):
        v_t[j, :, :] = nisa.nc_transpose(v_sb[0:d, nl.ds(j * PMAX, PMAX)])

    for band in nl.affine_range(tiles // rows):
        qk = nl.ndarray((rows, columns, nl.par_dim(PMAX), FMAX), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(rows):
            for j in nl.affine_range(columns):
                qk[i, j, :, :] = nisa.nc_matmul(stationary=q_sb[0:d, nl.ds((band * rows + i) * PMAX, PMAX)], moving=k_sb[0:d, nl.ds(j * FMAX, FMAX)])

        row_max = nl.ndarray((rows, nl.par_dim(PMAX), 1), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(rows):
            parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
            for j in nl.affine_range(columns):
                parts[:, j] = nisa.tensor_reduce(op=nl.max, data=qk[i, j], axis=1)
            row_max[i, :, :] = nisa.tensor_reduce(op=nl.max, data=parts, axis=1)

        shifted = nl.ndarray((rows, nl.par_dim(PMAX), S), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(rows):
            for j in nl.affine_range(columns):
                shifted[i, :, nl.ds(j * FMAX, FMAX)] = nisa.tensor_scalar(data=qk[i, j], op0=nl.subtract, operand0=row_max[i, :, :])

        e = nl.ndarray((rows, nl.par_dim(PMAX), S), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((rows, nl.par_dim(PMAX), 1), dtype=nl.float32, buffer=nl.sbuf)
        scores = nl.ndarray((rows, nl.par_dim(PMAX), S), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(rows):
            e[i, :, :] = nisa.activation(op=nl.exp, data=shifted[i, :, :])
            total[i, :, :] = nisa.tensor_reduce(op=nl.add, data=e[i, :, :], axis=1)
            inverse = nisa.reciprocal(data=total[i, :, :])
            scores[i, :, :] = nisa.tensor_scalar(data=e[i, :, :], op0=nl.multiply, operand0=inverse)

        scores_t = nl.ndarray((tiles, nl.par_dim(PMAX), rows * PMAX), dtype=nl.float32, buffer=nl.sbuf)
        for i in nl.affine_range(rows):
            for j in nl.affine_range(tiles):
                scores_t[j, :, nl.ds(i * PMAX, PMAX)] = nisa.nc_transpose(scores[i, :, nl.ds(j * PMAX, PMAX)])

        for i in nl.affine_range(rows):
            result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
            for j in nl.affine_range(tiles):
                result += nisa.nc_matmul(stationary=scores_t[j, :, nl.ds(i * PMAX, PMAX)], moving=v_t[j, :, :])
            nl.store(dst=out[nl.ds((band * rows + i) * PMAX, PMAX), :], value=nisa.tensor_copy(result))
    return out


@nki.jit
def attention_v4(q, k, v):
    """One loop over the rows of tiles: what is between the steps is as large as one row of tiles."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb, k_sb, v_sb = nl.load(q), nl.load(k), nl.load(v)
    rows, columns = S // PMAX, S // FMAX
    v_t = nl.ndarray((rows, nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.sbuf)
    for j in nl.affine_range(rows):
        v_t[j] = nisa.nc_transpose(v_sb[:, nl.ds(j * PMAX, PMAX)])

    for i in nl.affine_range(rows):
        qk = nl.ndarray((columns, nl.par_dim(PMAX), FMAX), dtype=nl.float32, buffer=nl.psum)
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk[j, :, :] = nisa.nc_matmul(stationary=q_sb[0:d, nl.ds(i * PMAX, PMAX)], moving=k_sb[0:d, nl.ds(j * FMAX, FMAX)])
            parts[:, nl.ds(j, 1)] = nisa.tensor_reduce(op=nl.max, data=qk[j, :, :], axis=1)
        row_max = nisa.tensor_reduce(op=nl.max, data=parts, axis=1)

        shifted = nl.ndarray((nl.par_dim(PMAX), S), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            shifted[:, nl.ds(j * FMAX, FMAX)] = nisa.tensor_scalar(data=qk[j], op0=nl.subtract, operand0=row_max)
        e = nisa.activation(op=nl.exp, data=shifted)
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=e, axis=1))
        scores = nisa.tensor_scalar(data=e, op0=nl.multiply, operand0=inverse)

        scores_t = nl.ndarray((rows, nl.par_dim(PMAX), PMAX), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(rows):
            scores_t[j] = nisa.nc_transpose(scores[:, nl.ds(j * PMAX, PMAX)])
        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(rows):
            result[...] += nisa.nc_matmul(stationary=scores_t[j], moving=v_t[j])
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.tensor_copy(result))
    return out


@nki.jit
def attention_v5(q, k, v):
    """The Scalar engine subtracts the maximum (as a bias) and adds up the row while it computes the exponentials."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb, k_sb, v_sb = nl.load(q), nl.load(k), nl.load(v)
    rows, columns = S // PMAX, S // FMAX
    v_t = nl.ndarray((rows, nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.sbuf)
    for j in nl.affine_range(rows):
        v_t[j] = nisa.nc_transpose(v_sb[:, nl.ds(j * PMAX, PMAX)])

    for i in nl.affine_range(rows):
        qk = nl.ndarray((columns, nl.par_dim(PMAX), FMAX), dtype=nl.float32, buffer=nl.psum)
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk[j] = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            parts[:, j] = nisa.tensor_reduce(op=np.max, data=qk[j], axis=(1,))
        minus_max = nisa.tensor_reduce(op=np.max, data=parts, axis=(1,), negate=True)

        e = nl.ndarray((nl.par_dim(PMAX), S), dtype=nl.float32, buffer=nl.sbuf)
        sums = nl.zeros((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            e[:, nl.ds(j * FMAX, FMAX)] = nisa.activation(op=nl.exp, data=qk[j], bias=minus_max, reduce_op=nl.add, reduce_res=sums[:, j],
                                                          reduce_cmd=nisa.reduce_cmd.reset_reduce)
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=sums, axis=1))
        scores = nisa.tensor_scalar(data=e, op0=nl.multiply, operand0=inverse)

        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(rows):
            scores_t = nl.ndarray((nl.par_dim(PMAX), PMAX), dtype=nl.float32, buffer=nl.sbuf)
            scores_t[...] = nisa.nc_transpose(scores[:, nl.ds(j * PMAX, PMAX)])
            result += nisa.nc_matmul(stationary=scores_t, moving=v_t[j])
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.tensor_copy(result))
    return out


@nki.jit
def attention_v6(q, k, v):
    """The division moves behind the second product, where a row has d elements instead of a whole sequence."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb, k_sb, v_sb = nl.load(q), nl.load(k), nl.load(v)
    rows, columns = S // PMAX, S // FMAX
    v_t = nl.ndarray((nl.par_dim(PMAX), rows, d), dtype=nl.float32, buffer=nl.sbuf)
    for j in nl.affine_range(rows):
        v_t[:, j, :] = nisa.nc_transpose(v_sb[:, nl.ds(j * PMAX, PMAX)])

    for i in nl.affine_range(rows):
        qk = nl.ndarray((nl.par_dim(PMAX), columns, FMAX), dtype=nl.float32, buffer=nl.psum)
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk[:, j, :] = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            parts[:, j] = nisa.tensor_reduce(op=nl.max, data=qk[:, j, :], axis=1)
        minus_max = nisa.tensor_reduce(op=nl.max, data=parts, axis=1, negate=True)
        sums = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        e = nl.ndarray((nl.par_dim(PMAX), S), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            e[:, nl.ds(j * FMAX, FMAX)] = nisa.activation_reduce(op=nl.exp, data=qk[:, j, :], bias=minus_max, reduce_op=np.add, reduce_res=sums[:, j])
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=np.add, data=sums, axis=1))

        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(rows):
            e_t = nisa.tensor_copy(nisa.nc_transpose(e[:, nl.ds(j * PMAX, PMAX)]))
            result += nisa.nc_matmul(stationary=e_t, moving=v_t[:, j, :])
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.tensor_scalar(data=result, op0=nl.multiply, operand0=inverse))
    return out


@nki.jit
def attention_v7(q, k, v):
    """Tiles that the Tensor engine reads are bfloat16; sums stay float32."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb = nl.load(q, dtype=nl.bfloat16)
    k_sb = nl.load(k, dtype=nl.bfloat16)
    v_sb = nl.load(v, dtype=nl.bfloat16)
    rows, columns = S // PMAX, S // FMAX
    v_t = nl.ndarray((rows, nl.par_dim(PMAX), d), dtype=nl.bfloat16, buffer=nl.sbuf)
    for j in nl.affine_range(rows):
        turned = nisa.nc_transpose(v_sb[:, nl.ds(j * PMAX, PMAX)])
        v_t[j] = nisa.tensor_copy(turned, dtype=nl.bfloat16)

    for i in nl.affine_range(rows):
        qk = nl.ndarray((columns, nl.par_dim(PMAX), FMAX), dtype=nl.float32, buffer=nl.psum)
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk[j] = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            parts[:, j] = nisa.tensor_reduce(op=nl.max, data=qk[j], axis=1)
        minus_max = nisa.tensor_reduce(op=nl.max, data=parts, axis=1, negate=True)
        sums = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        e = nl.ndarray((columns, nl.par_dim(PMAX), FMAX), dtype=nl.bfloat16, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            e[j] = nisa.activation_reduce(op=nl.exp, data=qk[j], bias=minus_max, reduce_op=nl.add, reduce_res=sums[:, j], dtype=nl.bfloat16)

        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(columns):
            for t in nl.affine_range(FMAX // PMAX):
                e_t = nl.ndarray((nl.par_dim(PMAX), PMAX), dtype=nl.bfloat16, buffer=nl.sbuf)
                e_t[...] = nisa.nc_transpose(e[j, :, nl.ds(t * PMAX, PMAX)])
                result += nisa.nc_matmul(stationary=e_t, moving=v_t[j * (FMAX // PMAX) + t])
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=sums, axis=1))
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.tensor_scalar(data=result, op0=nl.multiply, operand0=inverse))
    return out


def transposed_values(v_sb, rows, d):
    """The tiles of v, turned with one constant identity: a product that is a transpose."""
    identity = nl.load(nl.shared_constant(np.identity(v_sb.shape[0], dtype=np.float32)), dtype=nl.bfloat16)
    v_t = nl.ndarray((nl.par_dim(PMAX), rows, d), dtype=nl.bfloat16, buffer=nl.sbuf)
    for j in nl.affine_range(rows):
        turned = nl.ndarray((nl.par_dim(PMAX), d), dtype=nl.bfloat16, buffer=nl.psum)
        turned[...] = nisa.nc_matmul(v_sb[:, nl.ds(j * PMAX, PMAX)], identity, is_moving_onezero=True, is_transpose=True)
        v_t[:, j, :] = nisa.tensor_copy(turned)
    return v_t


@nki.jit
def attention_v8(q, k, v):
    """Copy and maximum in one: tensor_scalar_reduce moves the scores to SBUF, as bfloat16, and leaves the maximum of each row."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb = nl.load(q, dtype=nl.bfloat16)
    k_sb = nl.load(k, dtype=nl.bfloat16)
    v_sb = nl.load(v, dtype=nl.bfloat16)
    rows, columns = S // PMAX, S // FMAX
    v_t = transposed_values(v_sb, rows, d)

    for i in nl.affine_range(rows):
        scores = nl.ndarray((nl.par_dim(PMAX), S), dtype=nl.bfloat16, buffer=nl.sbuf)
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            scores[:, nl.ds(j * FMAX, FMAX)] = nisa.tensor_scalar_reduce(data=qk, op0=np.multiply, operand0=1.0, reduce_op=np.max, reduce_res=parts[:, j])
        minus_max = nisa.tensor_reduce(op=nl.max, data=parts, axis=1, negate=True)
        sums = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(columns):
            e = nisa.activation_reduce(op=nl.exp, data=scores[:, nl.ds(j * FMAX, FMAX)], bias=minus_max, reduce_op=nl.add, reduce_res=sums[:, j],
                                       dtype=nl.bfloat16)
            for t in nl.affine_range(FMAX // PMAX):
                e_t = nisa.tensor_copy(nisa.nc_transpose(e[:, nl.ds(t * PMAX, PMAX)]), dtype=nl.bfloat16)
                result += nisa.nc_matmul(stationary=e_t, moving=v_t[:, j * (FMAX // PMAX) + t, :])
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=sums, axis=1))
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.activation(op=nl.copy, data=result, scale=inverse))
    return out


@nki.jit
def attention_v9(q, k, v):
    """The same with a function for each step, so that the loop reads as a list of steps."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb = nl.load(q, dtype=nl.bfloat16)
    k_sb = nl.load(k, dtype=nl.bfloat16)
    v_sb = nl.load(v, dtype=nl.bfloat16)
    rows, columns, parts_of = S // PMAX, S // FMAX, FMAX // PMAX
    v_t = transposed_values(v_sb, rows, d)
    scores = nl.ndarray((rows, nl.par_dim(PMAX), S), dtype=nl.bfloat16, buffer=nl.sbuf)
    minus_max = nl.ndarray((rows, nl.par_dim(PMAX), 1), dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((rows, nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)

    def products(i):
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            scores[i, :, nl.ds(j * FMAX, FMAX)] = nisa.tensor_scalar_reduce(data=qk, op0=np.multiply, operand0=1.0, reduce_op=np.max,
                                                                            reduce_res=parts[:, j])
        minus_max[i] = nisa.tensor_reduce(op=nl.max, data=parts, axis=1, negate=True)

    def exponentials(i):
        for j in nl.affine_range(columns):
            part = scores[i, :, nl.ds(j * FMAX, FMAX)]
            scores[i, :, nl.ds(j * FMAX, FMAX)] = nisa.activation_reduce(op=nl.exp, data=part, bias=minus_max[i], reduce_op=nl.add,
                                                                         reduce_res=sums[i, :, j])

    def weighted(i):
        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for t in nl.affine_range(columns * parts_of):
            e_t = nisa.tensor_copy(nisa.nc_transpose(scores[i, :, nl.ds(t * PMAX, PMAX)]), dtype=nl.bfloat16)
            result += nisa.nc_matmul(stationary=e_t, moving=v_t[:, t, :])
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=sums[i], axis=1))
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.activation(op=nl.copy, data=result, scale=inverse))

    for i in nl.affine_range(rows):
        products(i)
        exponentials(i)
        weighted(i)
    return out


@nki.jit
def attention_v10(q, k, v):
    """A pipeline by hand: the products of the next row of tiles stand before the exponentials of this one."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb = nl.load(q, dtype=nl.bfloat16)
    k_sb = nl.load(k, dtype=nl.bfloat16)
    v_sb = nl.load(v, dtype=nl.bfloat16)
    rows, columns = S // PMAX, S // FMAX
    v_t = transposed_values(v_sb, rows, d)
    scores = nl.ndarray((rows, nl.par_dim(PMAX), S), dtype=nl.bfloat16, buffer=nl.sbuf)
    minus_max = nl.ndarray((rows, nl.par_dim(PMAX), 1), dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((rows, nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
    e_t = nl.ndarray((rows, rows, nl.par_dim(PMAX), PMAX), dtype=nl.bfloat16, buffer=nl.sbuf)

    def products(i):
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk = nl.ndarray((nl.par_dim(PMAX), FMAX), dtype=nl.float32, buffer=nl.psum)
            qk[...] = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            scores[i, :, nl.ds(j * FMAX, FMAX)] = nisa.tensor_scalar_reduce(data=qk, op0=np.multiply, operand0=1.0, reduce_op=np.max,
                                                                            reduce_res=parts[:, j])
        minus_max[i] = nisa.tensor_reduce(op=nl.max, data=parts, axis=1, negate=True)

    def exponentials(i):
        for j in nl.affine_range(columns):
            scores[i, :, nl.ds(j * FMAX, FMAX)] = nisa.activation_reduce(op=nl.exp, data=scores[i, :, nl.ds(j * FMAX, FMAX)], bias=minus_max[i],
                                                                         reduce_op=nl.add, reduce_res=sums[i, :, j])

    def turned(i):
        for t in nl.affine_range(rows):
            e_t[i, t] = nisa.nc_transpose(scores[i, :, nl.ds(t * PMAX, PMAX)])

    def weighted(i):
        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for t in nl.affine_range(rows):
            result[...] += nisa.nc_matmul(stationary=e_t[i, t], moving=v_t[:, t, :])
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=sums[i], axis=1))
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.activation(op=nl.copy, data=result, scale=inverse))

    products(0)
    products(1)
    exponentials(0)
    for i in nl.static_range(rows - 2):
        products(i + 2)
        exponentials(i + 1)
        turned(i)
        weighted(i)
    exponentials(rows - 1)
    for i in nl.static_range(rows - 2, rows):
        turned(i)
        weighted(i)
    return out


@nki.jit
def attention_v11(q, k, v):
    """The order of the pipeline is fixed: the compiler may not move instructions inside no_reorder."""
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    q_sb = nl.load(q, dtype=nl.bfloat16)
    k_sb = nl.load(k, dtype=nl.bfloat16)
    v_sb = nl.load(v, dtype=nl.bfloat16)
    rows, columns = S // PMAX, S // FMAX
    v_t = transposed_values(v_sb, rows, d)
    scores = nl.ndarray((2, nl.par_dim(PMAX), S), dtype=nl.bfloat16, buffer=nl.sbuf)
    minus_max = nl.ndarray((2, nl.par_dim(PMAX), 1), dtype=nl.float32, buffer=nl.sbuf)
    sums = nl.ndarray((2, nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)

    def products(i):
        parts = nl.ndarray((nl.par_dim(PMAX), columns), dtype=nl.float32, buffer=nl.sbuf)
        for j in nl.affine_range(columns):
            qk = nisa.nc_matmul(stationary=q_sb[:, nl.ds(i * PMAX, PMAX)], moving=k_sb[:, nl.ds(j * FMAX, FMAX)])
            scores[i % 2, :, nl.ds(j * FMAX, FMAX)] = nisa.tensor_scalar_reduce(data=qk, op0=np.multiply, operand0=1.0, reduce_op=np.max,
                                                                                reduce_res=parts[:, j])
        minus_max[i % 2] = nisa.tensor_reduce(op=nl.max, data=parts, axis=1, negate=True)

    def exponentials_and_rest(i):
        result = nl.zeros((nl.par_dim(PMAX), d), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(columns):
            e = nisa.activation_reduce(op=nl.exp, data=scores[i % 2, :, nl.ds(j * FMAX, FMAX)], bias=minus_max[i % 2], reduce_op=nl.add,
                                       reduce_res=sums[i % 2, :, j], dtype=nl.bfloat16)
            for t in nl.affine_range(FMAX // PMAX):
                e_t = nisa.tensor_copy(nisa.nc_transpose(e[:, nl.ds(t * PMAX, PMAX)]), dtype=nl.bfloat16)
                result += nisa.nc_matmul(stationary=e_t, moving=v_t[:, j * (FMAX // PMAX) + t, :])
        inverse = nisa.reciprocal(nisa.tensor_reduce(op=nl.add, data=sums[i % 2], axis=1))
        nl.store(dst=out[nl.ds(i * PMAX, PMAX), :], value=nisa.activation(op=nl.copy, data=result, scale=inverse))

    products(0)
    for i in nl.sequential_range(rows - 1):
        with nl.no_reorder():
            products(i + 1)
            exponentials_and_rest(i)
    exponentials_and_rest(rows - 1)
    return out
