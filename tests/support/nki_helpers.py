"""Kernels of beta 1 that call functions without a decorator, which `nkx nki upgrade` rewrites with them: {name: (functions, kernel)}.
The inputs are a and b, of the shape (128, 64), and c, (64, 128)."""
_KERNEL = """
@nki.jit
def kernel(a: tensor[128, 64], b: tensor[128, 64], c: tensor[64, 128]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.arange(128)[:, None], nl.arange(64)[None, :]
    x, y = nl.load(a[ip, jf]), nl.load(b[ip, jf])
    {body}
    return out
"""

_CASES = {
    "operators": ("def mixed(t, u, s):\n    return t * s + u\n", "nl.store(out[ip, jf], mixed(x, y, 2.0))"),
    "functions of nl": ("def scaled(t, s):\n    return nl.multiply(t, s)\n", "nl.store(out[ip, jf], scaled(x, 2.0) + scaled(y, s=0.5))"),
    "calls of nisa": ("def softmaxed(t):\n    e = nisa.activation(op=nl.exp, data=t)\n    s = nisa.tensor_reduce(np.add, e, axis=[1])\n"
                      "    return nl.multiply(e, nisa.reciprocal(s))\n", "nl.store(out[ip, jf], softmaxed(x))"),
    "of HBM": ("def loaded(h, p, f):\n    ip = nl.arange(128)[:, None]\n    jf = nl.arange(f)[None, :]\n    return nl.load(h[p + ip, jf])\n\n\n"
               "def stored(h, t):\n    nl.store(h, value=t)\n", "stored(out, loaded(a, 0, 64) + y)"),
    "through others": ("def twice(t):\n    return nl.add(t, t)\n\n\ndef four_times(t):\n    return twice(twice(t))\n",
                       "nl.store(out[ip, jf], four_times(x))"),
    "several results": ("def both(t, u):\n    return nl.maximum(t, u), nl.minimum(t, u)\n",
                        "high, low = both(x, y)\n    nl.store(out[ip, jf], high - low)"),
    "written in place": ("def add_to(t, u):\n    t[...] = nl.exp(u)\n    t += u\n", "add_to(x, y)\n    nl.store(out[ip, jf], x)"),
    "a product": ("def multiplied(acc, l, r):\n    acc += nisa.nc_matmul(l, r)\n\n\ndef rows_of(h):\n    return nl.load(h)\n",
                  "p = nl.zeros((nl.par_dim(128), 64), dtype=nl.float32, buffer=nl.psum)\n    l = rows_of(c)\n"
                  "    multiplied(p, l, nl.load(a[nl.arange(64)[:, None], jf]))\n    nl.store(out[ip, jf], nl.copy(p))"),
    "a name that changes": ("def chained(t, s=3.0):\n    t = nl.exp(t)\n    t = t * s\n    return t\n", "nl.store(out[ip, jf], chained(x))"),
    "masks around": ("def doubled(t):\n    return nl.multiply(t, 2.0)\n",
                     "nl.store(out, y)\n    for i in nl.affine_range(2):\n        t = nl.load(a[i * 100 + ip, jf], mask=(i * 100 + ip < 128))\n"
                     "        nl.store(out[i * 100 + ip, jf], doubled(t), mask=(i * 100 + ip < 128))"),
    "tiles of its own": ("def filled(n, v):\n    t = nl.full((nl.par_dim(128), n), v, dtype=nl.float32)\n    return t\n",
                         "nl.store(out[ip, jf], x * filled(64, 3.0))"),
}
KERNELS = {name: "\n" + functions + "\n" + _KERNEL.replace("{body}", body) for name, (functions, body) in _CASES.items()}
