"""The same kernel in NKI beta 1 and in NKI 0.3 and later, instruction by instruction."""
BETA_1 = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

"""
GA = """import nki
import nki.isa as nisa
import nki.language as nl

"""

# name: (parameters, body in beta 1, body in 0.3)
PAIRS = {
    "add": ("a: nl.tensor[256, 96], b: nl.tensor[256, 96]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        ip, jf = i * 128 + nl.arange(128)[:, None], nl.arange(96)[None, :]
        x = nl.load(a[ip, jf])
        y = nl.load(b[ip, jf])
        nl.store(out[ip, jf], value=x + y)
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        x = nl.load(a[i * 128:i * 128 + 128, :])
        y = nl.load(b[i * 128:i * 128 + 128, :])
        nl.store(out[i * 128:i * 128 + 128, :], nl.add(x, y))
    return out
"""),
    "masked tail": ("a: nl.tensor[200, 96]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        ip, jf = i * 128 + nl.arange(128)[:, None], nl.arange(96)[None, :]
        x = nl.load(a[ip, jf], mask=(ip < 200))
        nl.store(out[ip, jf], value=nl.exp(x, mask=(ip < 200)), mask=(ip < 200))
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        n = min(128, 200 - i * 128)
        x, y = nl.ndarray((128, 96), a.dtype), nl.ndarray((128, 96), a.dtype)
        nisa.dma_copy(dst=x[0:n], src=a[i * 128:i * 128 + n])
        nisa.activation(dst=y[0:n], op=nl.exp, data=x[0:n])
        nisa.dma_copy(dst=out[i * 128:i * 128 + n], src=y[0:n])
    return out
"""),
    "transpose2d": ("a: nl.tensor[64, 24]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    u = nl.ndarray((nl.par_dim(64), 24), dtype=a.dtype)
    ip, r, c = nl.arange(64)[:, None, None], nl.arange(4)[None, :, None], nl.arange(6)[None, None, :]
    u[ip, c * 4 + r] = nl.copy(t[ip, r * 6 + c])
    nl.store(out, u)
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    u = nl.ndarray((64, 24), a.dtype)
    nisa.tensor_copy(u.ap([[24, 64], [1, 4], [4, 6]]), t.ap([[24, 64], [6, 4], [1, 6]]))
    nl.store(out, u)
    return out
"""),
    "average pool": ("a: nl.tensor[32, 12, 18]", """
    out = nl.ndarray((32, 4, 6), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    i = nl.mgrid[0:32, 0:4, 0:6, 0:3, 0:3]
    s = nl.sum(t[i.p, 3 * i.x + i.z, 3 * i.y + i.w], axis=[3, 4])
    nl.store(out, nl.multiply(s, 1 / 9))
    return out
""", """
    out = nl.ndarray((32, 4, 6), a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    s = nl.ndarray((32, 4, 6), a.dtype)
    nisa.tensor_reduce(s, nl.add, t.ap([[216, 32], [54, 4], [3, 6], [18, 3], [1, 3]]), axis=(3, 4))
    nl.store(out, nl.multiply(s, 1 / 9))
    return out
"""),
    "matmul": ("l: nl.tensor[256, 128], r: nl.tensor[256, 512]", """
    out = nl.ndarray((128, 512), dtype=l.dtype, buffer=nl.shared_hbm)
    acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
    il, ir = nl.mgrid[0:128, 0:128], nl.mgrid[0:128, 0:512]
    for k in nl.affine_range(2):
        lt = nl.load(l[k * 128 + il.p, il.x])
        rt = nl.load(r[k * 128 + ir.p, ir.x])
        acc += nisa.nc_matmul(lt, rt)
    nl.store(out, value=nl.copy(acc, dtype=out.dtype))
    return out
""", """
    out = nl.ndarray((128, 512), l.dtype, buffer=nl.shared_hbm)
    acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
    for k in nl.affine_range(2):
        lt = nl.load(l[k * 128:(k + 1) * 128])
        rt = nl.load(r[k * 128:(k + 1) * 128])
        nisa.nc_matmul(acc, lt, rt)
    nl.store(out, nl.copy(acc, dtype=out.dtype))
    return out
"""),
    "matmul hoisted": ("l: nl.tensor[256, 128], r: nl.tensor[256, 1024]", """
    out = nl.ndarray((128, 1024), dtype=l.dtype, buffer=nl.shared_hbm)
    il, ir = nl.mgrid[0:128, 0:128], nl.mgrid[0:128, 0:512]
    ls = nl.ndarray((2, nl.par_dim(128), 128), dtype=l.dtype)
    for k in nl.affine_range(2):
        ls[k, il.p, il.x] = nl.load(l[k * 128 + il.p, il.x])
    for n in nl.affine_range(2):
        acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            acc += nisa.nc_matmul(ls[k], nl.load(r[k * 128 + ir.p, n * 512 + ir.x]))
        nl.store(out[ir.p, n * 512 + ir.x], value=nl.copy(acc, dtype=out.dtype))
    return out
""", """
    out = nl.ndarray((128, 1024), l.dtype, buffer=nl.shared_hbm)
    ls = [nl.ndarray((128, 128), l.dtype) for k in range(2)]
    for k in range(2):
        nisa.dma_copy(ls[k], l[k * 128:(k + 1) * 128])
    for n in range(2):
        acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
        for k in range(2):
            nisa.nc_matmul(acc, ls[k], nl.load(r[k * 128:(k + 1) * 128, n * 512:(n + 1) * 512]))
        nl.store(out[:, n * 512:(n + 1) * 512], nl.copy(acc, dtype=out.dtype))
    return out
"""),
    "matmul in blocks of K": ("l: nl.tensor[512, 128], r: nl.tensor[512, 512]", """
    out = nl.ndarray((128, 512), dtype=l.dtype, buffer=nl.shared_hbm)
    sums = nl.zeros((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
    for b in nl.sequential_range(2):
        acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            rows = nl.ds((b * 2 + k) * 128, 128)
            acc += nisa.nc_matmul(nl.load(l[rows, 0:128]), nl.load(r[rows, 0:512]))
        sums += acc
    nl.store(out, sums)
    return out
""", """
    out = nl.ndarray((128, 512), l.dtype, buffer=nl.shared_hbm)
    sums = nl.zeros((128, 512), nl.float32)
    for b in range(2):
        acc = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
        for k in range(2):
            rows = nl.ds((b * 2 + k) * 128, 128)
            nisa.nc_matmul(acc, nl.load(l[rows]), nl.load(r[rows]))
        nisa.tensor_tensor(sums, sums, acc, op=nl.add)
    nl.store(out, sums)
    return out
"""),
    "softmax": ("a: nl.tensor[128, 300]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    e = nl.exp(t - nl.max(t, axis=1))
    nl.store(out, e / nl.sum(e, axis=1))
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    top = nl.max(t, axis=1)
    d = nl.ndarray(t.shape, t.dtype)
    nisa.tensor_scalar(d, t, nl.subtract, top)
    e = nl.exp(d)
    total = nl.sum(e, axis=1)
    r, q = nl.ndarray((128, 1), nl.float32), nl.ndarray(t.shape, t.dtype)
    nisa.reciprocal(r, total)
    nisa.tensor_scalar(q, e, nl.multiply, r)
    nl.store(out, q)
    return out
"""),
    "rmsnorm": ("a: nl.tensor[128, 256], w: nl.tensor[128, 256]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    total = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32)
    nisa.activation_reduce(np.square, t, reduce_op=np.add, reduce_res=total)
    mean = nisa.tensor_scalar(total, np.multiply, 1 / 256, op1=np.add, operand1=1e-5)
    scaled = nisa.tensor_scalar(t, np.multiply, nisa.activation(nl.rsqrt, mean))
    nl.store(out, nisa.tensor_tensor(scaled, nl.load(w), np.multiply))
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    total, mean, scale = (nl.ndarray((128, 1), nl.float32) for i in range(3))
    square, scaled, r = (nl.ndarray(t.shape, nl.float32) for i in range(3))
    nisa.activation_reduce(square, nl.square, t, reduce_op=nl.add, reduce_res=total)
    nisa.tensor_scalar(mean, total, nl.multiply, 1 / 256, op1=nl.add, operand1=1e-5)
    nisa.activation(scale, nl.rsqrt, mean)
    nisa.tensor_scalar(scaled, t, nl.multiply, scale)
    nisa.tensor_tensor(r, scaled, nl.load(w), nl.multiply)
    nl.store(out, r)
    return out
"""),
    "layernorm": ("a: nl.tensor[128, 256]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    moments = nisa.bn_aggr(nisa.bn_stats(t))
    scale = nl.rsqrt(moments[:, 1:2] + 1e-5)
    nl.store(out, nisa.tensor_scalar(t, np.subtract, moments[:, 0:1], op1=np.multiply, operand1=scale))
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    stats, moments = nl.ndarray((128, 6), nl.float32), nl.ndarray((128, 2), nl.float32)
    nisa.bn_stats(stats, t)
    nisa.bn_aggr(moments, stats)
    scale = nl.rsqrt(nl.add(moments[:, 1:2], 1e-5))
    r = nl.ndarray(t.shape, t.dtype)
    nisa.tensor_scalar(r, t, nl.subtract, moments[:, 0:1], op1=nl.multiply, operand1=scale)
    nl.store(out, r)
    return out
"""),
    "attention": ("q: nl.tensor[128, 128], k: nl.tensor[128, 128], v: nl.tensor[128, 128]", """
    out = nl.ndarray((128, 128), dtype=q.dtype, buffer=nl.shared_hbm)
    qs, ks, vs = nl.load(q), nl.load(k), nl.load(v)
    qk = nisa.nc_matmul(qs, ks)
    top = nisa.tensor_reduce(nl.max, qk, axis=1, negate=True)
    e = nl.exp(qk + top)
    scores = e * nisa.reciprocal(nl.sum(e, axis=1))
    st, vt = nisa.tensor_copy(nisa.nc_transpose(scores)), nisa.tensor_copy(nisa.nc_transpose(vs))
    nl.store(out, nl.matmul(st, vt, transpose_x=True))
    return out
""", """
    out = nl.ndarray((128, 128), q.dtype, buffer=nl.shared_hbm)
    qs, ks, vs = nl.load(q), nl.load(k), nl.load(v)
    qk, p, u, o = (nl.ndarray((128, 128), nl.float32, buffer=nl.psum) for i in range(4))
    d, e, scores, st, vt = (nl.ndarray((128, 128), nl.float32) for i in range(5))
    top, total, r = (nl.ndarray((128, 1), nl.float32) for i in range(3))
    nisa.nc_matmul(qk, qs, ks)
    nisa.tensor_reduce(top, nl.max, qk, axis=1, negate=True)
    nisa.tensor_scalar(d, qk, nl.add, top)
    nisa.activation(e, nl.exp, d)
    nisa.tensor_reduce(total, nl.add, e, axis=1)
    nisa.reciprocal(r, total)
    nisa.tensor_scalar(scores, e, nl.multiply, r)
    nisa.nc_transpose(p, scores)
    nisa.tensor_copy(st, p)
    nisa.nc_transpose(u, vs)
    nisa.tensor_copy(vt, u)
    nisa.nc_matmul(o, st, vt)
    nl.store(out, nl.copy(o))
    return out
"""),
    "scan": ("a: nl.tensor[128, 64], b: nl.tensor[128, 64]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nisa.activation(nl.exp, nl.load(a), scale=-1.0)
    nl.store(out, nisa.tensor_tensor_scan(x, nl.load(b), initial=0.0, op0=np.multiply, op1=np.add))
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t, x, h = nl.load(a), nl.ndarray(a.shape, a.dtype), nl.ndarray(a.shape, a.dtype)
    nisa.activation(x, nl.exp, t, scale=-1.0)
    nisa.tensor_tensor_scan(h, x, nl.load(b), initial=0.0, op0=nl.multiply, op1=nl.add)
    nl.store(out, h)
    return out
"""),
    "max pool": ("a: nl.tensor[64, 21, 19]", """
    out = nl.ndarray((64, 10, 9), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    w = nl.mgrid[0:64, 0:10, 0:9, 0:3, 0:3]
    nl.store(out, nl.max(t[w.p, 2 * w.x + w.z, 2 * w.y + w.w], axis=[3, 4]))
    return out
""", """
    out = nl.ndarray((64, 10, 9), a.dtype, buffer=nl.shared_hbm)
    t, m = nl.load(a), nl.ndarray((64, 10, 9), a.dtype)
    nisa.tensor_reduce(m, nl.maximum, t.ap([[399, 64], [38, 10], [2, 9], [19, 3], [1, 3]]), axis=(3, 4))
    nl.store(out, m)
    return out
"""),
    "causal mask": ("a: nl.tensor[64, 64]", """
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    iq, ik = nl.arange(64)[:, None], nl.arange(64)[None, :]
    nl.store(out, nisa.affine_select(pred=(iq >= ik), on_true_tile=nl.load(a), on_false_value=-9.0))
    return out
""", """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t, r = nl.load(a), nl.ndarray(a.shape, a.dtype)
    nisa.affine_select(r, [[-1, 64]], 1, t, -9.0, cmp_op=nl.greater_equal)
    nl.store(out, r)
    return out
"""),
    "gather of columns": ("a: nl.tensor[64, 40]", """
    out = nl.ndarray((64, 20), dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.arange(64)[:, None], nl.arange(20)[None, :]
    t = nl.load(a[ip, 2 * jf + 1])
    nl.store(out, nl.maximum(t, 0.0) - nl.minimum(t, 0.0))
    return out
""", """
    out = nl.ndarray((64, 20), a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a[:, 1::2])
    nl.store(out, nl.subtract(nl.maximum(t, 0.0), nl.minimum(t, 0.0)))
    return out
"""),
    "eight largest": ("a: nl.tensor[128, 64]", """
    out = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nisa.max8(src=nl.load(a)))
    return out
""", """
    out = nl.ndarray((128, 8), a.dtype, buffer=nl.shared_hbm)
    t, m = nl.load(a), nl.ndarray((128, 8), a.dtype)
    nisa.max8(m, t)
    nl.store(out, m)
    return out
"""),
}


def source_of(name, generation):
    """The kernel's source for NKI beta 1 (1) or 0.3 (2); its function is called kernel."""
    parameters, *bodies = PAIRS[name]
    return (BETA_1 if generation == 1 else GA) + f"@nki.jit\ndef kernel({parameters}):" + bodies[generation - 1]
