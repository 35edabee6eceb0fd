"""Kernels with fori_loop: source(name) is the text of each of KERNELS, kernel(body, specs) that of another one."""

HEAD = "import numpy as np\nfrom nkigen import trace\nfrom nkigen.apis import fori_loop\n"


def kernel(body, specs, params="x, y"):
    names = ", ".join(params.split(", ")[: specs.count("((")])
    return f"{HEAD}@trace(input_specs=[{specs}])\ndef kernel({names}):\n" + "".join(f"    {l}\n" for l in body.split("\n"))


# name: (body, specs, number of while instructions)
KERNELS = {
    "sum": ("return fori_loop(0, 10, lambda i, a: a + x[i], np.float32(0))", "((10,), 'f32')"),
    "sum from a Python number": ("return fori_loop(0, 10, lambda i, a: a + x[i], 0.0)", "((10,), 'f32')"),
    "scaled accumulation": ("return fori_loop(0, 5, lambda i, a: a * 0.5 + x, np.zeros(8, np.float32))", "((8,), 'f32')"),
    "two accumulators": ("def body(i, s):\n    a, b = s\n    return a + x[i], b * (x[i] + 2.0)\n"
                         "return fori_loop(0, 6, body, (np.zeros((1,), np.float32), np.ones((1,), np.float32)))", "((6, 1), 'f32')"),
    "row sums": ("def body(i, a):\n    a[i] = np.sum(x[i])\n    return a\nreturn fori_loop(0, 4, body, np.zeros(4, np.float32))",
                 "((4, 6), 'f32')"),
    "tiles": ("return fori_loop(0, 4, lambda i, a: a + x[i * 2:(i * 2) + 2], np.zeros(2, np.float32))", "((8,), 'f32')"),
    "tiles by product": ("return fori_loop(0, 4, lambda i, a: a + x[i * 2:(i + 1) * 2], np.zeros(2, np.float32))", "((8,), 'f32')"),
    "f16 chunks": ("return fori_loop(0, 4, lambda i, a: a + x[:, i * 2:(i + 1) * 2], np.zeros((4, 2), np.float16))",
                   "((4, 8), 'f16')"),
    "rms norm": ("def body(i, a):\n    r = x[i]\n    a[i] = r / np.sqrt(np.mean(r * r) + 1e-5)\n    return a\n"
                 "return fori_loop(0, 6, body, np.zeros((6, 16), np.float32))", "((6, 16), 'f32')"),
    "matmul in chunks of k": ("return fori_loop(0, 4, lambda k, a: a + x[:, k * 2:(k + 1) * 2] @ y[k * 2:(k + 1) * 2, :],"
                              " np.zeros((4, 5), np.float16))", "((4, 8), 'f16'), ((8, 5), 'f16')"),
    "one iteration": ("return fori_loop(3, 4, lambda i, a: a + x[i], np.zeros(4, np.float32))", "((5, 4), 'f32')"),
    "matrix": ("return fori_loop(0, 3, lambda i, a: a @ x, x)", "((4, 4), 'f32')"),
    "nested": ("def outer(i, a):\n    return fori_loop(0, 3, lambda j, b: b + x[i, j] * y[i * 3 + j], a)\n"
               "return fori_loop(0, 2, outer, np.zeros(5, np.float32))", "((2, 3, 5), 'f32'), ((6, 5), 'f32')"),
    "one loop after another": ("a = fori_loop(0, 3, lambda i, a: a + x[i], x[0])\n"
                               "return fori_loop(1, 3, lambda i, b: b * x[i], a) + a", "((3, 4), 'f32')"),
    "the index as a number": ("return fori_loop(-2, 5, lambda i, a: a + x * i - i * 0.5 + i // 2, x)", "((4,), 'f32')"),
    "the index is compared": ("return fori_loop(0, 5, lambda i, a: np.where(i < 2, a + x, a - y), x)",
                              "((4,), 'f32'), ((4,), 'f32')"),
    "backwards": ("def body(i, a):\n    a[3 - i] = x[i]\n    return a\nreturn fori_loop(0, 4, body, np.zeros((4, 3), np.float32))",
                  "((4, 3), 'f32')"),
    "from the end": ("return fori_loop(0, 4, lambda i, a: a + x[i - 4], x[0])", "((5, 3), 'f32')"),
    "a step": ("return fori_loop(0, 3, lambda i, a: a + x[i:i + 5:2, ::2], np.zeros((3, 2), np.float32))", "((7, 4), 'f32')"),
    "a block": ("def body(i, a):\n    a[i * 2:i * 2 + 2, 1:3] = x[i, :, None]\n    return a\n"
                "return fori_loop(0, 3, body, np.ones((6, 4), np.float32))", "((3, 2), 'f32')"),
    "index and array": ("return fori_loop(0, 3, lambda i, a: a + x[i, [2, 0]] + x[[2, 0], i], np.zeros(2, np.float32))",
                        "((3, 3), 'f32')"),
    "constants from outside": ("t = np.arange(4, dtype=np.float32)\nreturn fori_loop(0, 3, lambda i, a: a + t * x, t + x)",
                               "((4,), 'f32')"),
    "swap": ("return fori_loop(0, 3, lambda i, s: (s[1], s[0] + s[1]), (x, y))", "((4,), 'f32'), ((4,), 'f32')"),
    "integers": ("return fori_loop(0, 5, lambda i, a: a + x[i] * i, np.int32(0))", "((5,), 'i32')"),
    "writes into an input": ("def body(i, a):\n    a[i] = a[i] * 2.0 + y\n    return a\nr = fori_loop(0, 3, body, x)\nreturn r + x",
                             "((5, 4), 'f32'), ((4,), 'f32')"),
    "the old value is read later": ("def body(i, a):\n    a[i] = a[i] * 2.0 + y\n    return a\nold = np.copy(x[1])\nfori_loop(0, 3, body, x)\nreturn old",
                                    "((5, 4), 'f32'), ((4,), 'f32')"),
    "a row from the other end": ("def body(i, a):\n    a[i] = a[4 - i] * 2.0\n    return a\nreturn fori_loop(0, 5, body, x + 0.5)",
                                 "((5, 4), 'f32')"),
    "two accumulators of one value": ("z = np.zeros(4, np.float32)\nreturn fori_loop(0, 3, lambda i, s: (s[0] + x[i], s[1] - x[i]), (z, z))",
                                      "((3, 4), 'f32')"),
    "one initial value for two loops": ("z = x[0] * 2.0\na = fori_loop(0, 3, lambda i, a: a + x[i], z)\n"
                                        "return fori_loop(0, 3, lambda i, a: a * x[i], z) + a + z", "((3, 4), 'f32')"),
    "written, then read": ("def body(i, a):\n    a[i] = x[i] + 1.0\n    return a * 2.0\nz = np.zeros((3, 4), np.float32)\n"
                           "return fori_loop(0, 3, body, z)", "((3, 4), 'f32')"),
    "in place": ("def body(i, a):\n    a += x[i]\n    return a\nz = y + 1.0\nfori_loop(0, 3, body, z)\nreturn z",
                 "((3, 4), 'f32'), ((4,), 'f32')"),
    "a knob inside": ("from nkigen import knob\ndef body(i, a):\n    z = x[i] + 1.0\n    knob(z).tile_op(tile_size=[2, 2])\n    return a + z\n"
                      "return fori_loop(0, 3, body, y)", "((3, 4, 4), 'f32'), ((4, 4), 'f32')"),
}  # fmt: skip


def source(name):
    return kernel(*KERNELS[name])
