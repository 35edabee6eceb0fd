"""How much of SBUF and PSUM a program takes at every point, read off its text and none of our code.

    live = on_chip.walk(text)          # memref stages after insert-memref-dealloc, NISA in its readable and generic form
    live.sbuf, live.psum               # the most bytes per partition at once; PSUM in whole banks
    on_chip.USABLE["trn2"]             # what there is

The walk goes down the lines with the buffers that exist there.  A loop's body must leave what it found, so that every
iteration takes as much as the first; Broken is raised if it does not, if a buffer is freed twice or not at all, or used
when it does not exist.
"""
import dataclasses
import re

# bytes per partition: SBUF that programs may use, PSUM (8 banks of 2 KiB)
USABLE = {"trn1": 180224, "trn2": 212984, "trn3": 245752}
PSUM, BANK = 16384, 2048

BYTES = {"i1": 1, "i8": 1, "f8E4M3FN": 1, "f8E4M3": 1, "f8E5M2": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4,
         "i64": 8, "f64": 8}
SPACES = {"3": "sbuf", "2": "psum", "sbuf": "sbuf", "psum": "psum"}
MADE = re.compile(r'\s*(%[\w$.-]+) = "?(?:memref|nisa)\.alloc"?\b')
FREED = re.compile(r'\s*"?(?:memref\.dealloc|nisa\.release)"?[ (]+(%[\w$.-]+)')
TYPE = re.compile(r'memref<((?:\d+x)+)(\w+), (?:strided<[^>]*>, )?(?:(\d) : i32|#nisa\.mem<"?(\w+)"?>)>\s*$')


class Broken(Exception):
    """Buffers are not freed as they should be; str() says which and where."""


@dataclasses.dataclass
class Live:
    sbuf: int = 0
    psum: int = 0
    sbuf_line: int = 0  # where the peak is
    n_buffers: int = 0


def size_of(line):
    """(space, bytes per partition) of the buffer that an allocation makes; space is None for HBM."""
    line = re.sub(r" loc\(.*\)$", "", line.rstrip())
    m = TYPE.search(line)
    if not m:
        raise Broken(f"not understood: {line.strip()}")
    dims, element, number, name = m.groups()
    space = SPACES.get(number or name)
    n = BYTES[element]
    for d in dims.split("x")[1:-1]:
        n *= int(d)
    return space, -(-n // BANK) * BANK if space == "psum" else n


def walk(text):
    live, peak, regions, ended = {}, Live(), [], set()
    total = {"sbuf": 0, "psum": 0}
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r'"[^"]*"', lambda m: m.group() if re.fullmatch(r'"[\w.]+"', m.group()) else '""', line)
        made, freed = MADE.match(line), FREED.match(line)
        for v in re.findall(r"%[\w$.-]+", line):
            if v in ended:
                raise Broken(f"line {number}: {v} is used after its end")
        if line.strip().startswith("}") and regions:
            found, ended_before = regions.pop()
            if set(live) != found:
                raise Broken(f"line {number}: a block does not free {sorted(set(live) ^ found)}")
            ended = ended_before  # names of the block may come again for something else
        if line.rstrip().endswith("{"):
            regions.append((set(live), set(ended)))
        if made:
            space, n = size_of(line)
            if not space:
                continue
            v = made.group(1)
            if v in live:
                raise Broken(f"line {number}: {v} exists already")
            live[v] = (space, n)
            peak.n_buffers += 1
            total[space] += n
            if total["sbuf"] > peak.sbuf:
                peak.sbuf, peak.sbuf_line = total["sbuf"], number
            peak.psum = max(peak.psum, total["psum"])
        elif freed:
            v = freed.group(1)
            if v not in live:
                raise Broken(f"line {number}: {v} is freed and does not exist")
            space, n = live.pop(v)
            ended.add(v)
            total[space] -= n
    if live:
        raise Broken(f"{sorted(live)} are never freed")
    return peak
