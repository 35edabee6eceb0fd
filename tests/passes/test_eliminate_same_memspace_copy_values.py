"""Random programs that copy buffers and slices to and fro: the same results without the copies that go."""
import pytest

from support import values

ROWS, COLS = 4, 6
BIG, TILE = f"memref<{2 * ROWS}x{COLS}xf32, 3 : i32>", f"memref<{ROWS}x{COLS}xf32, 3 : i32>"
HBM = f"memref<{2 * ROWS}x{COLS}xf32, 4 : i32>"


class Program:
    """A function on four large buffers; names of views and tiles that are visible, innermost block last."""

    def __init__(self, rng):
        self.rng, self.lines, self.n = rng, [], 0
        self.big = ["%b0", "%b1", "%b2", "%b3"]
        self.seen = [[]]

    def name(self):
        self.n += 1
        return f"%v{self.n}"

    def line(self, text):
        self.lines.append("    " + "  " * (len(self.seen) - 1) + text)

    def tile(self):
        """A slice of a large buffer, at a constant or at the loop's place; or a tile made before."""
        made = [v for block in self.seen for v in block]
        if made and self.rng.random() < 0.6:
            return made[self.rng.integers(len(made))]
        v = self.name()
        if len(self.seen) > 1 and self.rng.random() < 0.7:
            kind, at = f"memref<{ROWS}x{COLS}xf32, strided<[{COLS}, 1], offset: ?>, 3 : i32>", "%o"
        else:
            at = ROWS * int(self.rng.integers(0, 2))
            kind = f"memref<{ROWS}x{COLS}xf32, strided<[{COLS}, 1]{f', offset: {at * COLS}' if at else ''}>, 3 : i32>"
        self.line(f"{v} = memref.subview {self.rng.choice(self.big)}[{at}, 0] [{ROWS}, {COLS}] [1, 1] : {BIG} to {kind}")
        return v, kind

    def step(self):
        what = self.rng.random()
        if what < 0.25:  # a new tile, a copy or computed
            v = self.name()
            self.line(f"{v} = memref.alloc() : {TILE}")
            x, kind = self.tile()
            self.line(f"memref.copy {x}, {v} : {kind} to {TILE}" if self.rng.random() < 0.5 else
                      f"linalg.negf ins({x} : {kind}) outs({v} : {TILE})")
            self.seen[-1].append((v, TILE))
        elif what < 0.6:
            (x, kx), (y, ky) = self.tile(), self.tile()
            self.line(f"memref.copy {x}, {y} : {kx} to {ky}")
        else:
            (x, kx), (y, ky), (z, kz) = self.tile(), self.tile(), self.tile()
            self.line(f"linalg.{self.rng.choice(['add', 'max', 'sub'])} ins({x}, {y} : {kx}, {ky}) outs({z} : {kz})")

    def text(self):
        for k, b in enumerate(self.big):
            self.line(f"{b} = memref.alloc() : {BIG}")
            self.line(f"memref.copy %arg{k}, {b} : {HBM} to {BIG}")
        for k in range(3):
            for _ in range(5):
                self.step()
            self.line(f"scf.for %i{k} = %c0 to %c2 step %c1 {{")
            self.seen.append([])
            self.line(f"%o = arith.muli %i{k}, %c{ROWS} : index")
            for _ in range(5):
                self.step()
            self.seen.pop()
            self.line("}")
        for k, b in enumerate(self.big):
            self.line(f"%r{k} = memref.alloc() : {HBM}")
            self.line(f"memref.copy {b}, %r{k} : {BIG} to {HBM}")
        arguments = ", ".join(f"%arg{k}: {HBM}" for k in range(4))
        results = ", ".join([HBM] * 4)
        return "\n".join([f"func.func @f({arguments}) -> ({results}) {{", "    %c0 = arith.constant 0 : index",
                          "    %c1 = arith.constant 1 : index", "    %c2 = arith.constant 2 : index",
                          f"    %c{ROWS} = arith.constant {ROWS} : index", *self.lines,
                          f"    return %r0, %r1, %r2, %r3 : {results}", "}"])


@pytest.mark.parametrize("k", range(12))
def test_random_programs_keep_their_values(rng, k):
    text = Program(rng).text()
    after = values.check(text, "eliminate-same-memspace-copy", rng)
    assert after.count("memref.copy") < text.count("memref.copy")
