"""Random NKI kernels with nested loops: places that are affine in the rounds and places that are not, rounds that differ, tensors
that live for one round, for all rounds, or from one round to the next, sums in PSUM."""

ROWS, COLUMNS = 256, 256  # of the input; parts of 32 rows and 32 columns are read

# of the rounds of a loop: of a place (below 8, by `% 8`), and of a number
PLACES = ["{i}", "{i}", "{i}", "7 - {i}", "2 * {i}", "{i} + 1", "3", "{i} * {i}", "{i} % 3", "{i} // 2", "(5 if {i} == {last} else {i})"]
NUMBERS = ["2.0", "2.0", "2.0", "float({i} + 1)", "(0.5 if {i} == 0 else 2.0)"]


class Kernel:
    def __init__(self, rng, name):
        self.rng, self.name, self.lines, self.n = rng, name, [], 0

    def line(self, depth, text):
        self.lines.append("    " * (depth + 1) + text)

    def new(self, prefix):
        self.n += 1
        return f"{prefix}{self.n}"

    def of_loops(self, choices, loops):
        i, trips = loops[self.rng.integers(len(loops))] if loops else ("0", 1)
        return choices[self.rng.integers(len(choices))].format(i=i, last=trips - 1)

    def place(self, loops):
        """The start of a part of 32 among 256."""
        parts = [self.of_loops(PLACES, loops) for _ in range(self.rng.integers(1, 3))]
        return f"32 * (({' + '.join(parts)}) % 8)"

    def part(self, array, loops):
        r, c = self.place(loops), self.place(loops)
        return f"{array}[{r}:{r} + 32, {c}:{c} + 32]"

    def tile(self, depth, loops, source="x"):
        t = self.new("t")
        self.line(depth, f"{t} = nl.ndarray((32, 32), nl.float32)")
        self.line(depth, f"nisa.dma_copy(dst={t}, src={self.part(source, loops)})")
        return t

    def store(self, depth, loops, tile):
        self.line(depth, f"nisa.dma_copy(dst={self.part('out', loops)}, src={tile})")

    def scale(self, depth, loops, tile):
        self.line(depth, f"nisa.tensor_scalar(dst={tile}, data={tile}, op0=nl.multiply, operand0={self.of_loops(NUMBERS, loops)})")

    def loop(self, depth, trips):
        i = self.new("i")
        self.line(depth, f"for {i} in {('range', 'nl.affine_range', 'nl.sequential_range')[self.rng.integers(3)]}({trips}):")
        return i, trips

    def tiles_in_a_list(self, depth, loops):
        """Loaded in one loop, used in another."""
        tiles, trips = self.new("v"), int(self.rng.integers(2, 6))
        self.line(depth, f"{tiles} = []")
        i = self.loop(depth, trips)
        self.line(depth + 1, f"{tiles}.append({self.tile(depth + 1, [*loops, i])})")
        k = self.loop(depth, trips)
        self.store(depth + 1, [*loops, k], f"{tiles}[{self.of_loops(['{i}', '{last} - {i}', '{i} * {i} % {last}'], [k])}]")

    def sum_in_psum(self, depth, loops):
        total = self.new("p")
        self.line(depth, f"{total} = nl.{('ndarray', 'zeros')[self.rng.integers(2)]}((32, 32), nl.float32, buffer=nl.psum)")
        k = self.loop(depth, int(self.rng.integers(1, 6)))
        first = [", accumulate={0} > 0", ""][self.rng.integers(2)].format(k[0])
        a, b = self.tile(depth + 1, [*loops, k]), self.tile(depth + 1, [*loops, k])
        self.line(depth + 1, f"nisa.nc_matmul(dst={total}, stationary={a}, moving={b}{first})")
        self.copy_and_store(depth, loops, total)

    def copy_and_store(self, depth, loops, tile):
        t = self.new("t")
        self.line(depth, f"{t} = nl.ndarray((32, 32), nl.float32)")
        self.line(depth, f"nisa.tensor_copy(dst={t}, src={tile})")
        self.store(depth, loops, t)

    def carried(self, depth, loops):
        """Each round reads the tensor of the round before."""
        last = self.new("c")
        self.line(depth, f"{last} = {self.tile(depth, loops)}")
        i = self.loop(depth, int(self.rng.integers(2, 6)))
        t = self.tile(depth + 1, [*loops, i])
        self.line(depth + 1, f"nisa.tensor_tensor(dst={t}, data1={t}, data2={last}, op=nl.add)")
        self.line(depth + 1, f"{last} = {t}")
        self.store(depth, loops, last)

    def several_parts_of_one(self, depth, loops):
        """A tensor from outside of the loop, of which each round writes a part; partitions and free dimensions move."""
        t = self.new("w")
        self.line(depth, f"{t} = nl.ndarray((128, 256), nl.float32)")
        self.line(depth, f"nisa.memset(dst={t}, value=1.0)")
        i = self.loop(depth, int(self.rng.integers(2, 5)))
        row = self.of_loops(["0", "32 * {i}", "32 * (3 - {i})"], [i])
        column = self.place([*loops, i])
        part = f"{t}[{row}:{row} + 32, {column}:{column} + 32]"
        self.line(depth + 1, f"nisa.dma_copy(dst={part}, src={self.part('x', [*loops, i])})")
        self.line(depth + 1, f"nisa.tensor_scalar(dst={part}, data={part}, op0=nl.add, operand0={self.of_loops(NUMBERS, [*loops, i])})")
        self.line(depth, f"nisa.dma_copy(dst=out[0:128, :], src={t})")

    def numbers(self, depth, loops):
        t = self.new("n")
        self.line(depth, f"{t} = nl.ndarray((32, 32), nl.float32)")
        self.line(depth, f"nisa.iota({t}, [[1, 32]], offset={self.of_loops(['{i} * 5', '{i} * {i}', '7'], loops)}, channel_multiplier=2)")
        self.store(depth, loops, t)

    def scaled(self, depth, loops):
        t = self.tile(depth, loops)
        self.scale(depth, loops, t)
        self.store(depth, loops, t)

    def body(self, depth, loops):
        kinds = [self.scaled, self.scaled, self.sum_in_psum, self.tiles_in_a_list, self.carried, self.several_parts_of_one, self.numbers]
        for _ in range(self.rng.integers(1, 3)):
            if depth < 3 and self.rng.random() < 0.5:
                i = self.loop(depth, int(self.rng.integers(1, 5)))
                if self.rng.random() < 0.2:
                    self.line(depth + 1, f"if {i[0]} == {self.rng.integers(i[1])}:")
                    self.line(depth + 2, "continue")
                self.body(depth + 1, [*loops, i])
            else:
                kinds[self.rng.integers(len(kinds))](depth, loops)

    def source(self):
        self.body(0, [])
        head = f"\n@nki.jit\ndef {self.name}(x: nl.tensor[{ROWS}, {COLUMNS}]):\n"
        # every element is written at first
        head += "    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)\n    nisa.dma_copy(dst=out, src=x)\n"
        return head + "\n".join(self.lines) + "\n    return out\n"
