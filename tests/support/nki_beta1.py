"""Kernels of NKI beta 1, each with NumPy's formula for the same result: the rows of the table of public kernels."""
import numpy as np

from support import nki_beta1_layers

HEAD = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.typing import tensor
"""

TENSOR_ADD = """
@nki.jit
def tensor_add(a: tensor[300, 700], b: tensor[300, 700]):
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    M, N = a.shape
    for m in nl.affine_range((M + 127) // 128):
        for n in nl.affine_range((N + 511) // 512):
            ip, jf = m * 128 + nl.arange(128)[:, None], n * 512 + nl.arange(512)[None, :]
            inside = (ip < M) & (jf < N)
            x = nl.load(a[ip, jf], mask=inside)
            y = nl.load(b[ip, jf], mask=inside)
            nl.store(c[ip, jf], value=x + y, mask=inside)
    return c
"""

TRANSPOSE2D = """
@nki.jit
def transpose2d(x: tensor[128, 24], rows=4):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    P, columns = x.shape[0], x.shape[1] // rows
    ip, jf = nl.arange(P)[:, None], nl.arange(rows * columns)[None, :]
    tile = nl.load(x[ip, jf])
    turned = nl.ndarray((nl.par_dim(P), rows * columns), dtype=x.dtype)
    i_p, i_r, i_c = nl.arange(P)[:, None, None], nl.arange(rows)[None, :, None], nl.arange(columns)[None, None, :]
    turned[i_p, i_c * rows + i_r] = nl.copy(tile[i_p, i_r * columns + i_c])
    nl.store(out[ip, jf], value=turned)
    return out
"""

AVERAGE_POOL = """
@nki.jit
def average_pool(x: tensor[32, 12, 18], pool=3):
    C, H, W = x.shape
    out = nl.ndarray((C, H // pool, W // pool), dtype=x.dtype, buffer=nl.shared_hbm)
    i0, i1, i2, i3, i4 = nl.mgrid[0:C, 0:H // pool, 0:W // pool, 0:pool, 0:pool]
    tile = nl.load(x)
    total = nl.sum(tile[i0, pool * i1 + i3, pool * i2 + i4], axis=[3, 4])
    nl.store(out, value=total / (pool * pool))
    return out
"""

MATMUL_BASIC = """
@nki.jit
def matmul_basic(lhsT: tensor[nl.bfloat16, (128, 64)], rhs: tensor[nl.bfloat16, (128, 512)]):
    out = nl.ndarray((64, 512), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_l, i_r, i_o = nl.mgrid[0:128, 0:64], nl.mgrid[0:128, 0:512], nl.mgrid[0:64, 0:512]
    l = nl.load(lhsT[i_l.p, i_l.x])
    r = nl.load(rhs[i_r.p, i_r.x])
    acc = nl.zeros((64, 512), nl.float32, buffer=nl.psum)
    acc[i_o.p, i_o.x] += nl.matmul(l, r, transpose_x=True)
    nl.store(out[i_o.p, i_o.x], value=nl.copy(acc, dtype=out.dtype))
    return out
"""

MATMUL_TILED = """
@nki.jit
def matmul_tiled(lhsT: tensor[nl.bfloat16, (256, 256)], rhs: tensor[nl.bfloat16, (256, 1024)]):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    TM, TK, TN = nl.tile_size.gemm_stationary_fmax, nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_l, i_r, i_o = nl.mgrid[0:TK, 0:TM], nl.mgrid[0:TK, 0:TN], nl.mgrid[0:TM, 0:TN]
    for m in nl.affine_range(M // TM):
        for n in nl.affine_range(N // TN):
            acc = nl.zeros((nl.par_dim(TM), TN), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TK):
                l = nl.ndarray((nl.par_dim(TK), TM), dtype=lhsT.dtype, buffer=nl.sbuf)
                l[...] = nl.load(lhsT[k * TK + i_l.p, m * TM + i_l.x])
                r = nl.load(rhs[k * TK + i_r.p, n * TN + i_r.x])
                acc[...] += nisa.nc_matmul(l[...], r[...])
            nl.store(out[m * TM + i_o.p, n * TN + i_o.x], value=nl.copy(acc, dtype=out.dtype))
    return out
"""

MATMUL_HOISTED = """
@nki.jit
def matmul_hoisted(lhsT: tensor[nl.bfloat16, (256, 256)], rhs: tensor[nl.bfloat16, (256, 1024)]):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    TM, TK, TN = 128, 128, 512
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_l, i_r, i_o = nl.mgrid[0:TK, 0:TM], nl.mgrid[0:TK, 0:TN], nl.mgrid[0:TM, 0:TN]
    for m in nl.affine_range(M // TM):
        ls = nl.ndarray((K // TK, nl.par_dim(TK), TM), dtype=lhsT.dtype, buffer=nl.sbuf)
        for k in nl.affine_range(K // TK):
            ls[k, i_l.p, i_l.x] = nl.load(lhsT[k * TK + i_l.p, m * TM + i_l.x])
        for n in nl.affine_range(N // TN):
            rs = nl.ndarray((K // TK, nl.par_dim(TK), TN), dtype=rhs.dtype, buffer=nl.sbuf)
            for k in nl.affine_range(K // TK):
                rs[k, i_r.p, i_r.x] = nl.load(rhs[k * TK + i_r.p, n * TN + i_r.x])
            acc = nl.zeros((TM, TN), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TK):
                acc[...] += nl.matmul(ls[k, i_l.p, i_l.x], rs[k, i_r.p, i_r.x], transpose_x=True)
            nl.store(out[m * TM + i_o.p, n * TN + i_o.x], value=nl.copy(acc, dtype=out.dtype))
    return out
"""

MATMUL_BLOCKED = """
@nki.jit
def matmul_blocked(lhsT: tensor[nl.bfloat16, (256, 512)], rhs: tensor[nl.bfloat16, (256, 1024)]):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    TM, TK, TN, IN_M, IN_N = 128, 128, 512, 2, 2
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    i_l, i_r, i_o = nl.mgrid[0:TK, 0:TM * IN_M], nl.mgrid[0:TK, 0:TN * IN_N], nl.mgrid[0:TM, 0:TN]
    for m in nl.affine_range(M // (TM * IN_M)):
        ls = nl.ndarray((K // TK, nl.par_dim(TK), TM * IN_M), dtype=lhsT.dtype, buffer=nl.sbuf)
        for k in nl.affine_range(K // TK):
            ls[k, i_l.p, i_l.x] = nl.load(lhsT[k * TK + i_l.p, m * TM * IN_M + i_l.x])
        for n in nl.affine_range(N // (TN * IN_N)):
            rs = nl.ndarray((K // TK, nl.par_dim(TK), TN * IN_N), dtype=rhs.dtype, buffer=nl.sbuf)
            for k in nl.affine_range(K // TK):
                rs[k, i_r.p, i_r.x] = nl.load(rhs[k * TK + i_r.p, n * TN * IN_N + i_r.x])
            for bm in nl.affine_range(IN_M):
                for bn in nl.affine_range(IN_N):
                    acc = nl.zeros((TM, TN), nl.float32, buffer=nl.psum)
                    i_lm, i_rn = nl.mgrid[0:TK, 0:TM], nl.mgrid[0:TK, 0:TN]
                    for k in nl.affine_range(K // TK):
                        acc[...] += nisa.nc_matmul(ls[k, i_lm.p, bm * TM + i_lm.x], rs[k, i_rn.p, bn * TN + i_rn.x])
                    sb = nl.copy(acc, dtype=out.dtype)
                    nl.store(out[(m * IN_M + bm) * TM + i_o.p, (n * IN_N + bn) * TN + i_o.x], value=sb)
    return out
"""

MATMUL_OPTIMISED = """
@nki.jit
def matmul_optimised(lhsT: tensor[nl.bfloat16, (512, 256)], rhs: tensor[nl.bfloat16, (512, 512)]):
    # blocks of all three axes; partial sums stay in SBUF between the blocks of K
    (K, M), (_, N) = lhsT.shape, rhs.shape
    TM, TK, TN, IN_M, IN_K = 128, 128, 512, 2, 2
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(N // TN):
        sums = nl.zeros((M // (TM * IN_M), IN_M, nl.par_dim(TM), TN), dtype=nl.float32, buffer=nl.sbuf)
        for k in nl.sequential_range(K // (TK * IN_K)):
            i_r = nl.mgrid[0:TK, 0:TN]
            rs = nl.ndarray((IN_K, nl.par_dim(TK), TN), dtype=rhs.dtype, buffer=nl.sbuf)
            for bk in nl.affine_range(IN_K):
                rs[bk, i_r.p, i_r.x] = nl.load(rhs[(k * IN_K + bk) * TK + i_r.p, n * TN + i_r.x])
            for m in nl.affine_range(M // (TM * IN_M)):
                i_l = nl.mgrid[0:TK, 0:TM * IN_M]
                ls = nl.ndarray((IN_K, nl.par_dim(TK), TM * IN_M), dtype=lhsT.dtype, buffer=nl.sbuf)
                for bk in nl.affine_range(IN_K):
                    ls[bk, i_l.p, i_l.x] = nl.load(lhsT[(k * IN_K + bk) * TK + i_l.p, m * TM * IN_M + i_l.x])
                i_o, i_lm = nl.mgrid[0:TM, 0:TN], nl.mgrid[0:TK, 0:TM]
                for bm in nl.affine_range(IN_M):
                    acc = nl.zeros((TM, TN), dtype=nl.float32, buffer=nl.psum)
                    for bk in nl.affine_range(IN_K):
                        acc[...] += nisa.nc_matmul(ls[bk, i_lm.p, bm * TM + i_lm.x], rs[bk, i_r.p, i_r.x])
                    sums[m, bm, i_o.p, i_o.x] += acc[i_o.p, i_o.x]
        for m in nl.affine_range(M // (TM * IN_M)):
            for bm in nl.affine_range(IN_M):
                i_o = nl.mgrid[0:TM, 0:TN]
                nl.store(out[(m * IN_M + bm) * TM + i_o.p, n * TN + i_o.x], value=nl.copy(sums[m, bm, i_o.p, i_o.x], dtype=out.dtype))
    return out
"""

ATTENTION_V1 = """
@nki.jit
def attention_v1(q: tensor[128, 128], k: tensor[128, 128], v: tensor[128, 128]):
    # q, k, v: (head, sequence)
    out = nl.ndarray((q.shape[1], q.shape[0]), dtype=q.dtype, buffer=nl.shared_hbm)
    qs, ks, vs = nl.load(q), nl.load(k), nl.load(v)
    qk = nl.matmul(qs, ks, transpose_x=True)
    row_max = nl.max(qk, axis=1)
    e = nl.exp(nl.subtract(qk, row_max))
    scores = nl.divide(e, nl.sum(e, axis=1))
    attn = nl.matmul(nl.copy(nl.transpose(scores)), nl.copy(nl.transpose(vs)), transpose_x=True)
    nl.store(out, value=attn)
    return out
"""

ATTENTION_V2 = """
@nki.jit
def attention_v2(q: tensor[128, 128], k: tensor[128, 128], v: tensor[128, 128]):
    out = nl.ndarray((q.shape[1], q.shape[0]), dtype=q.dtype, buffer=nl.shared_hbm)
    qs, ks, vs = nl.load(q), nl.load(k), nl.load(v)
    qk = nisa.nc_matmul(stationary=qs, moving=ks)
    row_max = nisa.tensor_reduce(op=nl.max, data=qk, axis=1, negate=True)
    row_sum = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32)
    e = nisa.activation_reduce(op=nl.exp, data=qk, bias=row_max, reduce_op=nl.add, reduce_res=row_sum)
    scores = nisa.tensor_scalar(data=e, op0=nl.multiply, operand0=nisa.reciprocal(row_sum))
    vt = nisa.tensor_copy(nisa.nc_transpose(vs))
    st = nisa.tensor_copy(nisa.nc_transpose(scores))
    attn = nisa.tensor_copy(nisa.nc_matmul(stationary=st, moving=vt))
    nl.store(out, value=attn)
    return out
"""

ATTENTION_V3 = """
@nki.jit
def attention_v3(q: tensor[nl.bfloat16, (64, 1024)], k: tensor[nl.bfloat16, (64, 1024)], v: tensor[nl.bfloat16, (64, 1024)]):
    # longer sequences: blocks of 128 rows of the scores, in parts of 512 columns
    d, S = q.shape
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    P, F = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    qs, ks, vs = nl.load(q), nl.load(k), nl.load(v)
    vt = nl.ndarray((S // P, nl.par_dim(P), d), dtype=v.dtype)
    i_v = nl.mgrid[0:P, 0:d]
    for t in nl.affine_range(S // P):
        vt[t, i_v.p, i_v.x] = nisa.tensor_copy(nisa.nc_transpose(vs[nl.arange(d)[:, None], t * P + nl.arange(P)[None, :]]))
    for b in nl.affine_range(S // P):
        qk = nl.ndarray((S // F, nl.par_dim(P), F), dtype=nl.float32, buffer=nl.psum)
        tops = nl.ndarray((nl.par_dim(P), S // F), dtype=nl.float32)
        for t in nl.affine_range(S // F):
            qk[t] = nisa.nc_matmul(qs[0:d, nl.ds(b * P, P)], ks[0:d, nl.ds(t * F, F)])
            tops[:, t] = nisa.tensor_reduce(nl.max, qk[t], axis=1)
        top = nisa.tensor_reduce(nl.max, tops, axis=1, negate=True)
        e = nl.ndarray((nl.par_dim(P), S), dtype=nl.bfloat16)
        sums = nl.ndarray((nl.par_dim(P), S // F), dtype=nl.float32)
        for t in nl.affine_range(S // F):
            e[:, nl.ds(t * F, F)] = nisa.activation_reduce(nl.exp, qk[t], bias=top, reduce_op=nl.add, reduce_res=sums[:, t], dtype=nl.bfloat16)
        total = nisa.tensor_reduce(nl.add, sums, axis=1)
        attn = nl.zeros((nl.par_dim(P), d), dtype=nl.float32, buffer=nl.psum)
        for t in nl.affine_range(S // P):
            et = nisa.tensor_copy(nisa.nc_transpose(e[:, nl.ds(t * P, P)]))
            attn += nisa.nc_matmul(et, vt[t])
        scaled = nisa.tensor_scalar(attn, nl.multiply, nisa.reciprocal(total), dtype=out.dtype)
        nl.store(out[nl.ds(b * P, P), :], value=scaled)
    return out
"""

MAMBA = """
@nki.jit
def mamba(delta: tensor[1, 256, 128], u: tensor[1, 256, 128], A: tensor[256, 4], B: tensor[1, 4, 128], C: tensor[1, 4, 128]):
    batches, channels, length = delta.shape
    states = A.shape[1]
    out = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    P = nl.tile_size.pmax
    for b in nl.affine_range(batches):
        sums = nl.zeros((channels // P, nl.par_dim(P), length), dtype=delta.dtype)
        for s in nl.affine_range(states):
            for c in nl.affine_range(channels // P):
                start = c * P
                d = nl.load(delta[b, start:start + P, 0:length])
                a = nl.load(A[start:start + P, s:s + 1])
                x = nl.load(u[b, start:start + P, 0:length])
                decay = nisa.activation(op=nl.exp, data=d, scale=a)
                inflow = nisa.tensor_tensor(d, x, op=nl.multiply)
                row = nl.load(B[b, s:s + 1, 0:length])
                inflow = nisa.tensor_tensor(inflow, row.broadcast_to((P, length)), op=nl.multiply)
                h = nisa.tensor_tensor_scan(decay, inflow, initial=0.0, op0=np.multiply, op1=np.add)
                row = nl.load(C[b, s:s + 1, 0:length])
                sums[c, 0:P, 0:length] += nisa.tensor_tensor(h, row.broadcast_to((P, length)), op=nl.multiply)
        for c in nl.affine_range(channels // P):
            nl.store(out[b, c * P:(c + 1) * P, 0:length], sums[c, 0:P, 0:length])
    return out
"""

ATTENTION_V4 = """
@nki.jit
def attention_v4(q: tensor[nl.bfloat16, (64, 1024)], k: tensor[nl.bfloat16, (64, 1024)], v: tensor[nl.bfloat16, (64, 1024)]):
    # one loop over the blocks of rows: scores stay in PSUM and SBUF of their block; the division comes after the product
    d, S = q.shape
    P, F = nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    qs, ks, vs = nl.load(q), nl.load(k), nl.load(v)
    vt = nl.ndarray((S // P, nl.par_dim(P), d), dtype=v.dtype)
    for t in nl.affine_range(S // P):
        vt[t] = nisa.nc_transpose(vs[:, nl.ds(t * P, P)])
    for b in nl.affine_range(S // P):
        qk = nl.ndarray((nl.par_dim(P), S // F, F), dtype=nl.float32, buffer=nl.psum)
        for t in nl.affine_range(S // F):
            qk[:, t, :] = nisa.nc_matmul(qs[:, nl.ds(b * P, P)], ks[:, nl.ds(t * F, F)])
        top = nisa.tensor_reduce(nl.max, qk, axis=(1, 2), negate=True)
        total = nl.ndarray((nl.par_dim(P), 1), dtype=nl.float32)
        e = nisa.activation_reduce(nl.exp, qk, bias=top, reduce_op=nl.add, reduce_res=total, dtype=nl.bfloat16)
        attn = nl.zeros((nl.par_dim(P), d), dtype=nl.float32, buffer=nl.psum)
        for t in nl.affine_range(S // P):
            et = nl.ndarray((nl.par_dim(P), P), dtype=nl.bfloat16)
            et[...] = nisa.nc_transpose(e[:, t // (F // P), nl.ds(t % (F // P) * P, P)])
            attn += nisa.nc_matmul(et, vt[t])
        nl.store(out[nl.ds(b * P, P), :], nisa.activation(nl.copy, attn, scale=nisa.reciprocal(total), dtype=out.dtype))
    return out
"""

FLASH = """
@nki.jit
def flash(q: tensor[64, 256], k: tensor[64, 1024], v: tensor[1024, 64]):
    # the keys in parts: the maximum and the sum run, and the result is rescaled when the maximum grows
    d, S, P, F = q.shape[0], k.shape[1], 128, 512
    out = nl.ndarray((q.shape[1], d), dtype=q.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(q.shape[1] // P):
        qs = nl.load(q[:, nl.ds(b * P, P)])
        top = nl.full((nl.par_dim(P), 1), -3.0e38, dtype=nl.float32)
        total = nl.zeros((nl.par_dim(P), 1), dtype=nl.float32)
        acc = nl.zeros((nl.par_dim(P), d), dtype=nl.float32)
        for t in nl.sequential_range(S // F):
            qk = nisa.nc_matmul(qs, nl.load(k[:, nl.ds(t * F, F)]))
            higher = nl.maximum(top, nl.max(qk, axis=1))
            shrink = nl.exp(top - higher)
            part = nl.ndarray((nl.par_dim(P), 1), dtype=nl.float32)
            e = nisa.activation_reduce(nl.exp, qk, bias=-higher, reduce_op=nl.add, reduce_res=part)
            total[...] = total * shrink + part
            acc *= shrink
            product = nl.zeros((nl.par_dim(P), d), dtype=nl.float32, buffer=nl.psum)
            for j in nl.affine_range(F // P):
                et = nl.copy(nisa.nc_transpose(e[:, nl.ds(j * P, P)]))
                product += nisa.nc_matmul(et, nl.load(v[nl.ds(t * F + j * P, P), :]))
            acc += product
            top[...] = higher
        nl.store(out[nl.ds(b * P, P), :], acc / total)
    return out
"""

MAMBA_V2 = """
@nki.jit
def mamba_v2(delta: tensor[1, 256, 128], u: tensor[1, 256, 128], A: tensor[256, 4], B: tensor[1, 4, 128], C: tensor[1, 4, 128]):
    # channels outside: delta and u are loaded once for each tile of channels
    batches, channels, length = delta.shape
    P, states = nl.tile_size.pmax, A.shape[1]
    out = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(batches):
        for c in nl.affine_range(channels // P):
            rows = nl.ds(c * P, P)
            d, x = nl.load(delta[b, rows, :]), nl.load(u[b, rows, :])
            dx = nisa.tensor_tensor(d, x, op=np.multiply)
            total = nl.zeros((nl.par_dim(P), length), dtype=delta.dtype)
            for s in nl.affine_range(states):
                decay = nisa.activation(op=np.exp, data=d, scale=nl.load(A[rows, s:s + 1]))
                inflow = nl.multiply(dx, nl.load(B[b, s:s + 1, :]).broadcast_to((P, length)))
                h = nisa.tensor_tensor_scan(decay, inflow, initial=0, op0=np.multiply, op1=np.add)
                total += nl.multiply(h, nl.load(C[b, s:s + 1, :]).broadcast_to((P, length)))
            nl.store(out[b, rows, :], total)
    return out
"""

MAMBA_V3 = """
@nki.jit
def mamba_v3(delta: tensor[1, 256, 128], u: tensor[1, 256, 128], A: tensor[256, 4], B: tensor[1, 4, 128], C: tensor[1, 4, 128]):
    # the sequence in tiles: each scan begins with the state that the one before it left
    batches, channels, length = delta.shape
    P, F, states = nl.tile_size.pmax, 64, A.shape[1]
    out = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(batches):
        for c in nl.affine_range(channels // P):
            rows = nl.ds(c * P, P)
            d, x = nl.load(delta[b, rows, :]), nl.load(u[b, rows, :])
            total = nl.zeros((nl.par_dim(P), length), dtype=delta.dtype)
            for s in nl.affine_range(states):
                a = nl.load(A[rows, s:s + 1])
                state = nl.zeros((nl.par_dim(P), 1), dtype=delta.dtype)
                for t in nl.static_range(length // F):
                    part = nl.ds(t * F, F)
                    decay = nisa.activation(op=nl.exp, data=d[:, part], scale=a)
                    inflow = nl.multiply(d[:, part], x[:, part])
                    inflow = nl.multiply(inflow, nl.load(B[b, s:s + 1, part]).broadcast_to((P, F)))
                    h = nisa.tensor_tensor_scan(decay, inflow, initial=state, op0=np.multiply, op1=np.add)
                    state[...] = h[:, F - 1:F]
                    total[:, part] += nl.multiply(h, nl.load(C[b, s:s + 1, part]).broadcast_to((P, F)))
            nl.store(out[b, rows, :], total)
    return out
"""

MAXPOOL = """
@nki.jit
def maxpool(x: tensor[64, 21, 19], size=3, stride=2):
    # windows that overlap
    C, H, W = x.shape
    OH, OW = (H - size) // stride + 1, (W - size) // stride + 1
    out = nl.ndarray((C, OH, OW), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((nl.par_dim(128), H, W), dtype=x.dtype)
    i = nl.mgrid[0:128, 0:H, 0:W]
    tile[i.p, i.x, i.y] = nl.load(x[i.p, i.x, i.y], mask=(i.p < C))
    w = nl.mgrid[0:128, 0:OH, 0:OW, 0:size, 0:size]
    best = nl.max(tile[w.p, stride * w.x + w.z, stride * w.y + w.w], axis=[3, 4], mask=(w.p < C))
    o = nl.mgrid[0:128, 0:OH, 0:OW]
    nl.store(out[o.p, o.x, o.y], value=best, mask=(o.p < C))
    return out
"""

RMSNORM = """
@nki.jit
def rmsnorm(a: tensor[250, 512], g: tensor[512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ix, iw, iy = nl.arange(128)[:, None], nl.arange(1)[:, None], nl.arange(a.shape[1])[None, :]
    rows = a.shape[0]
    gain = nl.load(g.reshape((1, g.shape[0]))[iw, iy])
    for i in nl.affine_range((rows + 127) // 128):
        inside = (i * 128 + ix < rows)
        tile = nl.load(a[i * 128 + ix, iy], mask=inside)
        square_sum = nl.sum(nl.square(tile), axis=[1])
        mean = square_sum / a.shape[1]
        scale = nl.rsqrt(mean)
        normed = nl.multiply(tile, scale)
        result = nl.multiply(normed, gain.broadcast_to((128, a.shape[1])), mask=inside)
        nl.store(out[i * 128 + ix, iy], value=result, mask=inside)
    return out
"""

LAYERNORM_V1 = """
@nki.jit
def layernorm_v1(x: tensor[250, 256], gamma: tensor[256], beta: tensor[256], eps=1e-5):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ip, iw, iF = nl.arange(128)[:, None], nl.arange(1)[:, None], nl.arange(x.shape[1])[None, :]
    g = nl.load(gamma.reshape((1, 256))[iw, iF]).broadcast_to((128, 256))
    b = nl.load(beta.reshape((1, 256))[iw, iF]).broadcast_to((128, 256))
    for i in nl.affine_range(-(-x.shape[0] // 128)):
        inside = (i * 128 + ip < x.shape[0])
        t = nl.load(x[i * 128 + ip, iF], mask=inside)
        centered = nl.subtract(t, nl.mean(t, axis=1))
        variance = nl.mean(nl.square(centered), axis=1)
        normed = nl.multiply(centered, nl.rsqrt(variance + eps))
        nl.store(out[i * 128 + ip, iF], value=normed * g + b, mask=inside)
    return out
"""

LAYERNORM_V2 = """
@nki.jit
def layernorm_v2(x: tensor[250, 256], gamma: tensor[256], beta: tensor[256], eps=1e-5):
    # the statistics by the Vector engine's own instructions; one tensor_scalar moves and scales
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ip, iw, iF = nl.arange(128)[:, None], nl.arange(1)[:, None], nl.arange(x.shape[1])[None, :]
    g = nl.load(gamma.reshape((1, 256))[iw, iF]).broadcast_to((128, 256))
    b = nl.load(beta.reshape((1, 256))[iw, iF]).broadcast_to((128, 256))
    for i in nl.affine_range(-(-x.shape[0] // 128)):
        inside = (i * 128 + ip < x.shape[0])
        t = nl.load(x[i * 128 + ip, iF], mask=inside)
        stats = nisa.bn_stats(t, dtype=np.float32)
        moments = nisa.bn_aggr(stats, dtype=np.float32)
        scale = nl.rsqrt(moments[:, 1:2] + eps)
        shift = nl.multiply(moments[:, 0:1], scale)
        normed = nisa.tensor_scalar(t, op0=np.multiply, operand0=scale, op1=np.subtract, operand1=shift)
        nl.store(out[i * 128 + ip, iF], value=normed * g + b, mask=inside)
    return out
"""

SOFTMAX = """
@nki.jit
def softmax(x: tensor[256, 100]):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        t = nl.load(x[i * 128:(i + 1) * 128])
        nl.store(out[i * 128:(i + 1) * 128], nl.softmax(t, axis=1))
    return out
"""

CAUSAL = """
@nki.jit
def causal(x: tensor[64, 64]):
    # by affine_select, by a mask that is no box, and by a number for each element
    out = nl.ndarray((3, 64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    iq, ik = nl.arange(64)[:, None], nl.arange(64)[None, :]
    t = nl.load(x)
    nl.store(out[0, iq, ik], nisa.affine_select(pred=(iq >= ik), on_true_tile=t[iq, ik], on_false_value=-2.0))
    u = nl.full((64, 64), -2.0, dtype=x.dtype)
    u[iq, ik] = nl.copy(t, mask=(iq >= ik))
    nl.store(out[1, iq, ik], u)
    distance = nisa.iota(iq - ik, dtype=nl.float32)
    nl.store(out[2, iq, ik], nl.where(distance >= 0, t, -2.0))
    return out
"""

BILINEAR = """
@nki.jit
def bilinear(x: tensor[48, 8, 10]):
    # twice as many columns: an even one is a copy, an odd one the mean of its neighbours
    C, H, W = x.shape
    out = nl.ndarray((C, H, 2 * W - 1), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    r = nl.ndarray((nl.par_dim(C), H, 2 * W - 1), dtype=x.dtype)
    e, o = nl.mgrid[0:C, 0:H, 0:W], nl.mgrid[0:C, 0:H, 0:W - 1]
    r[e.p, e.x, 2 * e.y] = t[e.p, e.x, e.y]
    r[o.p, o.x, 2 * o.y + 1] = (t[o.p, o.x, o.y] + t[o.p, o.x, o.y + 1]) * 0.5
    nl.store(out, r)
    return out
"""


def _attention(q, k, v):
    s = q.astype("f4").T @ k.astype("f4")
    e = np.exp(s - s.max(1, keepdims=True))
    return ((e / e.sum(1, keepdims=True)) @ v.astype("f4").T).astype(q.dtype)


def _mamba(delta, u, A, B, C):
    out = np.zeros_like(delta)
    for s in range(A.shape[1]):
        h = np.zeros(delta.shape[:2], np.float32)
        for t in range(delta.shape[2]):
            h = np.exp(delta[:, :, t] * A[:, s]) * h + delta[:, :, t] * u[:, :, t] * B[:, s, t, None]
            out[:, :, t] += h * C[:, s, t, None]
    return out


def _maxpool(x):
    w = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2]
    return w.max((3, 4))


def _layernorm(x, g, b):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def _matmul(l, r):
    return (l.astype("f4").T @ r.astype("f4")).astype(l.dtype)


def _softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _bilinear(x):
    out = np.repeat(x, 2, axis=2)[:, :, :-1]
    out[:, :, 1::2] = (x[:, :, :-1] + x[:, :, 1:]) / 2
    return out


# name: (source, formula on the inputs, the largest error as a share of the largest result)
KERNELS = {
    "tensor_add": (TENSOR_ADD, lambda a, b: a + b, 0),
    "transpose2d": (TRANSPOSE2D, lambda x: x.reshape(128, 4, 6).transpose(0, 2, 1).reshape(128, 24), 0),
    "average_pool": (AVERAGE_POOL, lambda x: x.reshape(32, 4, 3, 6, 3).mean((2, 4)), 1e-6),
    "matmul_basic": (MATMUL_BASIC, _matmul, 0.01),
    "matmul_tiled": (MATMUL_TILED, _matmul, 0.01),
    "matmul_hoisted": (MATMUL_HOISTED, _matmul, 0.01),
    "matmul_blocked": (MATMUL_BLOCKED, _matmul, 0.01),
    "matmul_optimised": (MATMUL_OPTIMISED, _matmul, 0.01),
    "attention_v1": (ATTENTION_V1, _attention, 1e-5),
    "attention_v2": (ATTENTION_V2, _attention, 1e-5),
    "attention_v3": (ATTENTION_V3, _attention, 0.01),
    "attention_v4": (ATTENTION_V4, _attention, 0.01),
    "flash": (FLASH, lambda q, k, v: _attention(q, k, v.T), 1e-5),
    "mamba_v2": (MAMBA_V2, _mamba, 1e-5),
    "mamba_v3": (MAMBA_V3, _mamba, 1e-5),
    "mamba": (MAMBA, _mamba, 1e-5),
    "maxpool": (MAXPOOL, _maxpool, 0),
    "rmsnorm": (RMSNORM, lambda x, g: x / np.sqrt((x * x).mean(1, keepdims=True)) * g, 1e-5),
    "layernorm_v1": (LAYERNORM_V1, _layernorm, 1e-5),
    "layernorm_v2": (LAYERNORM_V2, _layernorm, 1e-5),
    "softmax": (SOFTMAX, _softmax, 1e-6),
    "causal": (CAUSAL, lambda x: np.stack([np.where(np.tri(64), x, -2)] * 3), 0),
    "bilinear": (BILINEAR, _bilinear, 1e-6),
    **nki_beta1_layers.KERNELS,
}
