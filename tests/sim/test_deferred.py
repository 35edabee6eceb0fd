"""Transfers into SBUF that the simulator carries out late (compiler/sim/deferred.c) have the values of those at their place
in the program: random loads, stores, sums and releases of large tiles, against NumPy."""
import numpy as np
import pytest

from support.nisa_programs import memref
from support.simulator import Simulator

HBM, SBUF, STEPS = (256, 512), (128, 512), 60
BUFFERS = 3


class Moves:
    """A program with an argument %a, a buffer %h in HBM and the buffers %s0 … in SBUF, and the values that they have."""

    def __init__(self, rng, has_places):
        self.rng, self.has_places, self.lines = rng, has_places, []
        self.a = rng.standard_normal(HBM).astype(np.float32)
        self.h = self.a[::-1].copy()
        self.b = self.h.copy()
        self.s = [np.empty(SBUF, np.float32) for _ in range(BUFFERS)]
        self.names = [self.allocate(k) for k in range(BUFFERS)]

    def allocate(self, k):
        name = f"%s{len(self.lines)}_{k}"
        place = f" at=[0, {k * SBUF[1] * 4}]" if self.has_places else ""
        self.lines.append(f"{name} = nisa.alloc alignment=64{place} : {memref(SBUF, 'f32', 'sbuf')}")
        return name

    def on_chip(self, role, k, rows, columns):
        r, c = rows.start, columns.start
        n, w = rows.stop - r, columns.stop - c
        return f"{role}<{n}| {w}>={memref(SBUF, 'f32', 'sbuf')} {self.names[k]}[d0 + {r}, d1 + {c}]"

    def in_hbm(self, role, name, n, w, row, column):
        space = "hbm" if name == "%h" else "shared_hbm"
        return f"{role}<{n}| {w}>={memref(HBM, 'f32', space)} {name}[{row}, d1 + {column}]"

    def box(self):
        """Rows and columns of a buffer in SBUF."""
        rows = self.rng.choice([(0, 128), (0, 128), (0, 128), (0, 64), (64, 128)])
        w = int(self.rng.choice([64, 128, 256, 512]))
        c = int(self.rng.integers(0, SBUF[1] // w)) * w
        return slice(*map(int, rows)), slice(c, c + w)

    def pick(self):
        return int(self.rng.integers(0, BUFFERS))

    def load(self, k=None, box=None):
        k, (rows, columns) = self.pick() if k is None else k, box or self.box()
        n, w = rows.stop - rows.start, columns.stop - columns.start
        name, data = [("%a", self.a), ("%h", self.h)][int(self.rng.integers(0, 2))]
        r, c = int(self.rng.integers(0, HBM[0] - n + 1)), int(self.rng.integers(0, HBM[1] - w + 1))
        one_row = self.rng.random() < 0.15
        src = self.in_hbm("src", name, n, w, f"{r}" if one_row else f"d0 + {r}", c)
        self.lines.append(f"nisa.dma_copy({self.on_chip('dst', k, rows, columns)}, {src}) engine=dma")
        self.s[k][rows, columns] = data[r:r + (1 if one_row else n), c:c + w]

    def store(self):
        k, (rows, columns) = self.pick(), self.box()
        n, w = rows.stop - rows.start, columns.stop - columns.start
        r, c = int(self.rng.integers(0, HBM[0] - n + 1)), int(self.rng.integers(0, HBM[1] - w + 1))
        self.lines.append(f"nisa.dma_copy({self.in_hbm('dst', '%h', n, w, f'd0 + {r}', c)}, {self.on_chip('src', k, rows, columns)}) engine=dma")
        self.h[r:r + n, c:c + w] = self.s[k][rows, columns]

    def add(self):
        (rows, columns), (x, y, z) = self.box(), (self.pick(), self.pick(), self.pick())
        shift = int(self.rng.choice([0, 0, 64])) if columns.stop + 64 <= SBUF[1] else 0
        other = slice(columns.start + shift, columns.stop + shift)
        self.lines.append(f"nisa.tensor_tensor_arith({self.on_chip('dst', z, rows, columns)}, {self.on_chip('lhs', x, rows, columns)}, "
                          f"{self.on_chip('rhs', y, rows, other)}, op=add) engine=vector")
        self.s[z][rows, columns] = self.s[x][rows, columns] + self.s[y][rows, other]

    def renew(self):
        """Releases a buffer and allocates another one, which may get its memory."""
        k = self.pick()
        self.lines.append(f"nisa.release {self.names[k]} : {memref(SBUF, 'f32', 'sbuf')}")
        self.names[k] = self.allocate(k)
        self.load(k, (slice(0, 128), slice(0, 512)))

    def text(self):
        whole = slice(0, 128), slice(0, 512)
        hbm = memref(HBM, "f32", "hbm")
        shared = memref(HBM, "f32", "shared_hbm")
        at = " at=[0]" if self.has_places else ""
        first = [f"%h = nisa.alloc alignment=64{at} : {hbm}"]
        first += [f"nisa.dma_copy(dst<128| 512>={hbm} %h[d0 + {r}, d1], src<128| 512>={shared} %b[d0 + {r}, d1]) engine=dma" for r in (0, 128)]
        last = []
        for k in range(BUFFERS):
            out = memref(SBUF, "f32", "shared_hbm")
            last += [f"%r{k} = nisa.alloc alignment=64 : {out}",
                     f"nisa.dma_copy(dst<128| 512>={out} %r{k}[d0, d1], {self.on_chip('src', k, *whole)}) engine=dma",
                     f"nisa.release {self.names[k]} : {memref(SBUF, 'f32', 'sbuf')}"]
        last += [f"%r = nisa.alloc alignment=64 : {shared}"]
        last += [f"nisa.dma_copy(dst<128| 512>={shared} %r[d0 + {r}, d1], src<128| 512>={hbm} %h[d0 + {r}, d1]) engine=dma" for r in (0, 128)]
        out = ", ".join([memref(SBUF, "f32", "shared_hbm")] * BUFFERS + [shared])
        names = ", ".join([f"%r{k}" for k in range(BUFFERS)] + ["%r"])
        body = "\n    ".join([*first, *self.lines, *last, f"return {names} : {out}"])
        return f"""module attributes {{nisa.target = #nisa.target<trn2>}} {{
  func.func @k(%a: {shared}, %b: {shared}) -> ({out}) {{
    {body}
  }}
}}
"""


@pytest.mark.parametrize("has_places", [False, True], ids=["buffers", "places"])
def test_late_transfers_have_the_values_of_those_at_their_place(has_places):
    with Simulator() as simulator:
        for seed in range(40):
            m = Moves(np.random.default_rng([seed, has_places]), has_places)
            for k in range(BUFFERS):
                m.load(k, (slice(0, 128), slice(0, 512)))
            for _ in range(STEPS):
                m.rng.choice([m.load, m.load, m.add, m.store, m.renew], p=[0.25, 0.2, 0.3, 0.2, 0.05])()
            got = simulator.run(m.text(), [m.a, m.b])
            for x, want in zip(got, [*m.s, m.h]):
                np.testing.assert_array_equal(x, want, err_msg=f"seed {seed}")
