"""Hostile HLO (category 16), as text and as bytes of a serialized module: name, request, the verdicts that are right.

The readers run in the worker, within the limits of a job.  Whatever is no module is refused with words; what is one, however
large or odd, may meet a limit.  A worker that dies is never right.
"""
import base64

REFUSED, LARGE = {"hlo-invalid"}, {"ok", "time-limit", "memory-limit", "output-limit", "too-many-operations", "pass-failed"}
ODD = {"hlo-invalid", "unsupported-op", "unsupported-dtype"}

MODULE = """HloModule m

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  y = f32[4,8]{1,0} multiply(x, x)
  ROOT z = f32[4,8]{1,0} add(x, y)
}
"""


def text(body, head="HloModule m\n\n"):
    return f"{head}ENTRY main {{\n  x = f32[4,8]{{1,0}} parameter(0)\n{body}\n}}\n"


def chain(n):
    lines = ["  v0 = f32[4,8]{1,0} add(x, x)"] + [f"  v{i} = f32[4,8]{{1,0}} add(v{i - 1}, x)" for i in range(1, n)]
    return text("\n".join(lines[:-1] + ["  ROOT " + lines[-1].strip()]))


RING = """HloModule m

a {
  p = f32[] parameter(0)
  ROOT r = f32[] call(p), to_apply=b
}

b {
  q = f32[] parameter(0)
  ROOT s = f32[] call(q), to_apply=a
}

ENTRY main {
  x = f32[] parameter(0)
  ROOT y = f32[] call(x), to_apply=a
}
"""

TEXTS = [
    ("half a module", MODULE[:80], ODD),
    ("no entry", "HloModule m\n", REFUSED),
    ("NULs", "HloModule m\n" + "\0" * 1000, REFUSED),
    ("unknown opcode", MODULE.replace("multiply", "steal"), ODD),
    ("operand that is none", MODULE.replace("(x, y)", "(x, nobody)"), REFUSED),
    ("use before definition", text("  a = f32[4,8]{1,0} add(b, x)\n  ROOT b = f32[4,8]{1,0} add(x, x)"), REFUSED),
    ("operand of itself", MODULE.replace("(x, y)", "(z, z)"), REFUSED),
    ("a name twice", MODULE.replace("  y =", "  x ="), REFUSED),
    ("shapes that differ", MODULE.replace("y = f32[4,8]", "y = f32[8,4]"), REFUSED),
    ("negative size", MODULE.replace("[4,8]", "[-4,8]"), REFUSED),
    ("size beyond 2^64", MODULE.replace("[4,8]", "[99999999999999999999999,8]"), REFUSED),
    ("sizes whose product is beyond 2^64", MODULE.replace("[4,8]", "[4611686018427387904,4]"), REFUSED | LARGE),
    ("rank 1000", MODULE.replace("f32[4,8]{1,0}", f"f32[{','.join('1' * 1000)}]"), REFUSED),
    ("layout of another rank", MODULE.replace("{1,0}", "{7,0,99}"), REFUSED | {"ok"}),
    ("unknown type", MODULE.replace("f32", "f99"), ODD),
    ("deep tuple", MODULE.replace("y = f32[4,8]{1,0}", "y = " + "(" * 50000 + "f32[]" + ")" * 50000), REFUSED | {"nesting-too-deep"}),
    ("deep braces", MODULE.replace("(x, y)", "(x, y), frontend_attributes=" + "{" * 50000), REFUSED | {"nesting-too-deep"}),
    ("recursive computations", RING, REFUSED),
    ("constant of the wrong length", text("  ROOT c = f32[4,8]{1,0} constant({1, 2, 3})"), REFUSED),
    ("constant without an end", text("  ROOT c = f32[4,8]{1,0} constant(" + "{" * 1000), REFUSED | {"nesting-too-deep"}),
    ("dot without dimensions", text("  ROOT c = f32[4,4]{1,0} dot(x, x)"), REFUSED),
    ("slice out of bounds", text("  ROOT c = f32[4,8]{1,0} slice(x), slice={[0:4], [0:99]}"), REFUSED),
    ("broadcast to petabytes", text("  ROOT c = f32[4,8,1000000,1000000]{3,2,1,0} broadcast(x), dimensions={0,1}"),
     REFUSED | LARGE | {"unsupported-op"}),
    ("custom call", text('  ROOT c = f32[4,8]{1,0} custom-call(x), custom_call_target="system"'), ODD | {"pass-failed"}),
    ("endless while", """HloModule m

c {
  p = f32[4,8]{1,0} parameter(0)
  ROOT t = pred[] constant(true)
}

b {
  ROOT p = f32[4,8]{1,0} parameter(0)
}

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT w = f32[4,8]{1,0} while(x), condition=c, body=b
}
""", ODD | LARGE),
    ("chain of 1000", chain(1000), LARGE),
    ("name of 200 kB", MODULE.replace("z =", "z" * 200000 + " ="), REFUSED | LARGE),
]


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def part(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


F32 = 11


def shape(*dims, dtype=F32):
    return number(2, dtype) + part(3, b"".join(map(varint, dims))) + part(5, part(1, b"".join(varint(i) for i in range(len(dims))[::-1])))


def instr(name, opcode, id_, operands=(), of=None, rest=b""):
    of = shape(4, 8) if of is None else of
    return part(2, part(1, name) + part(2, opcode) + part(3, of) + number(35, id_) + (part(36, b"".join(map(varint, operands))) if operands else b"") + rest)


def program(n=1, of=None):
    of = shape(4, 8) if of is None else of
    return part(1, of) * n + part(2, of) + part(3, "x") * n


def module(*instrs, root=3, entry=1, program_shape=None, before=b""):
    ps = program() if program_shape is None else program_shape
    main = part(1, "main") + b"".join(instrs) + part(4, ps) + number(5, 1) + number(6, root)
    return part(1, "m") + part(2, "main") + before + part(3, main) + part(4, ps) + number(6, entry)


X, Y, Z = instr("x", "parameter", 1), instr("y", "multiply", 2, (1, 1)), instr("z", "add", 3, (1, 2))
WHOLE = module(X, Y, Z)
deep = shape(4, 8)
for _ in range(2000):
    deep = number(2, 13) + part(4, deep)  # a tuple of one

PROTOS = [
    ("whole, as proof that the others are wrong by what is wrong in them", WHOLE, {"ok"}),
    ("cut short", WHOLE[:-20], REFUSED), ("nothing", b"\x0a", REFUSED), ("bytes of no proto", b"\xff\xfe\x00\x01" * 100, REFUSED),
    ("a length beyond the end", b"\x0a\xff\xff\xff\xff\x0f" + WHOLE, REFUSED), ("a number without an end", b"\x08" + b"\xff" * 50, REFUSED),
    ("operand that is none", module(X, Y, instr("z", "add", 3, (1, 99))), REFUSED),
    ("operand of itself", module(X, Y, instr("z", "add", 3, (3, 3))), REFUSED),
    ("negative id", module(X, Y, instr("z", "add", -1, (1, 2)), root=-1), REFUSED | {"ok"}),
    ("an id twice", module(X, instr("y", "multiply", 1, (1, 1)), Z), REFUSED),
    ("no root", module(X, Y, Z, root=77), REFUSED), ("no entry", module(X, Y, Z, entry=77), REFUSED | {"ok"}),
    ("no instructions", module(), REFUSED), ("unknown opcode", module(X, Y, instr("z", "steal", 3, (1, 2))), ODD),
    ("unknown type", module(X, Y, instr("z", "add", 3, (1, 2), of=shape(4, 8, dtype=99))), ODD),
    ("negative size", module(X, Y, instr("z", "add", 3, (1, 2), of=shape(-4, 8))), REFUSED),
    ("size 2^62", module(X, Y, instr("z", "broadcast", 3, (1,), of=shape(1 << 62, 4), rest=part(14, b"\x00\x01"))), REFUSED),
    ("deep tuple", module(X, Y, instr("z", "add", 3, (1, 2), of=deep)), REFUSED | {"nesting-too-deep"}),
    ("parameter 2^40", module(instr("x", "parameter", 1, rest=number(9, 1 << 40)), Y, Z), REFUSED),
    ("a computation that calls itself", module(X, Y, instr("z", "call", 3, (1,), rest=part(38, b"\x01"))), REFUSED),
    ("literal of the wrong length", module(X, Y, instr("z", "constant", 3, rest=part(8, part(1, shape(4, 8)) + part(8, b"\0" * 7)))), REFUSED),
    ("names of bytes", module(X, Y, instr(b"\xff\xfe\0", "add", 3, (1, 2))), REFUSED | {"ok"}),
]

CASES = {"16 malformed HLO": [(f"text: {name}", {"source": source, "language": "hlo"}, want) for name, source, want in TEXTS]
         + [(f"bytes: {name}", {"source_base64": base64.b64encode(data).decode(), "language": "hlo"}, want) for name, data, want in PROTOS]}
