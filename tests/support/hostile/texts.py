"""Hostile texts for the readers of the terminal's path, by category (8, 11, 15, 18): arguments of `nkx opt`, text.

Programs are read here, not run.  Every text must be
refused with a diagnostic (exit status 1) or be taken (0): never a crash, a hang or endless memory.
"""
MARK = "// nisa text 1\n"
MEM = "memref<64x64xf32, #nisa.mem<sbuf>>"


def func(body, args=f"%a: {MEM}, %b: {MEM}"):
    return f"func.func @k({args}) {{\n{body}  return\n}}\n"


def regions(n, kind):
    return func(f"{kind} {{\n" * n + "}\n" * n, args="%c: i1")


def nisa(line):
    return MARK + func("  " + line + "\n")


COPY = f"nisa.tensor_copy(dst<64|64>={MEM} %a[d0, d1], src<64|64>={MEM} %b[d0, d1]) engine=vector"

CASES = {
    "08 deep MLIR": [(f"{n} {name}", ["--canonicalize"], make(n)) for n in (100, 600, 6000) for name, make in (
        ("regions", lambda n: regions(n, "scf.if %c")),
        ("arrays", lambda n: f"module attributes {{a = {'[' * n}{']' * n}}} {{}}\n"),
        ("dictionaries", lambda n: "module attributes {a = " + "{a = " * n + "1" + "}" * n + "} {}\n"),
        ("tuples", lambda n: f"func.func private @k({'tuple<' * n}i1{'>' * n})\n"),
        ("affine parentheses", lambda n: f"module attributes {{a = affine_map<(d0) -> ({'(' * n}d0{')' * n})>}} {{}}\n"))],
    # crashes of MLIR: texts of the kinds that have crashed its parser or its passes
    "11 crash of MLIR": [
        ("empty", [], ""), ("NULs", [], "\0" * 1000), ("bytes", [], "\xff\xfe\x00\x01" * 100), ("half an operation", [], "func.func @k(%a: i1) {\n  %b = arith."),
        ("unknown dialect", [], '"x.y"() : () -> ()\n'), ("forged successor", [], '"cf.br"()[^bb9] : () -> ()\n'),
        ("huge integer", [], "module attributes {a = " + "9" * 10000 + " : i64} {}\n"), ("huge width", [], "func.func private @k(i99999999)\n"),
        ("huge shape", [], "func.func private @k(tensor<99999999999999999999999xf32>)\n"), ("negative shape", [], "func.func private @k(tensor<-5xf32>)\n"),
        ("dense of the wrong length", [], "module attributes {a = dense<\"0x00\"> : tensor<1000000xf32>} {}\n"),
        ("splat of petabytes", ["--canonicalize"], "func.func @k() -> tensor<1000000x1000000xf64> {\n  %c = arith.constant dense<1.0> : tensor<1000000x1000000xf64>\n  return %c : tensor<1000000x1000000xf64>\n}\n"),
        ("use before definition", [], "func.func @k() {\n  %a = arith.addi %b, %b : i32\n  %b = arith.addi %a, %a : i32\n  return\n}\n"),
        ("recursive alias", [], "!a = tuple<!a>\nfunc.func private @k(!a)\n"), ("division by zero", ["--canonicalize"], "func.func @k() -> i32 {\n  %z = arith.constant 0 : i32\n  %r = arith.divsi %z, %z : i32\n  return %r : i32\n}\n"),
        ("shift too far", ["--canonicalize"], "func.func @k() -> i32 {\n  %z = arith.constant 99 : i32\n  %r = arith.shli %z, %z : i32\n  return %r : i32\n}\n"),
        ("no such pass", ["--no-such-pass"], "module {}\n"),
        ("pass with wrong options", ["--canonicalize=max-iterations=x"], "module {}\n"),
    ],
    # programs without an end are read, verified and printed; only a check would run them, and it has a deadline
    "15 programs without an end": [
        ("loop of 2^40", ["--canonicalize"], func("  %0 = arith.constant 0 : index\n  %1 = arith.constant 1 : index\n  %n = arith.constant 1099511627776 : index\n  scf.for %i = %0 to %n step %1 {\n  }\n")),
        ("loop without step", ["--canonicalize"], func("  %0 = arith.constant 0 : index\n  %n = arith.constant 9 : index\n  scf.for %i = %0 to %n step %0 {\n    memref.store %x, %m[%i] : memref<9xf32>\n  }\n", args="%x: f32, %m: memref<9xf32>")),
        ("loop backwards", ["--canonicalize"], func("  %0 = arith.constant 0 : index\n  %n = arith.constant -9 : index\n  %1 = arith.constant 1 : index\n  scf.for %i = %0 to %n step %1 {\n  }\n")),
        ("while true", ["--canonicalize"], func("  %t = arith.constant true\n  scf.while : () -> () {\n    scf.condition(%t)\n  } do {\n    scf.yield\n  }\n")),
        ("jump to itself", ["--canonicalize"], "func.func @k() {\n  cf.br ^a\n^a:\n  cf.br ^a\n}\n"),
        ("a copy onto itself", ["--cse"], nisa(COPY.replace("%b", "%a"))),
        ("recursion", ["--inline"], "func.func @k() {\n  call @k() : () -> ()\n  return\n}\n"),
        ("mutual recursion", ["--inline"], "func.func @k() {\n  call @l() : () -> ()\n  return\n}\nfunc.func @l() {\n  call @k() : () -> ()\n  return\n}\n"),
        ("unroll 2^40", ["--affine-loop-unroll=unroll-factor=1000"], "func.func @k() {\n  affine.for %i = 0 to 1099511627776 {\n  }\n  return\n}\n"),
        ("nests of loops", ["--canonicalize"], "func.func @k() {\n" + "affine.for %i = 0 to 9 {\n" * 60 + "}\n" * 60 + "return\n}\n"),
    ],
    "18 NISA text": [
        (name, ["--print-nisa"], nisa(line)) for name, line in (
            ("whole", COPY), ("half", COPY[:40]), ("no engine", COPY.rsplit(" ", 1)[0]), ("no such engine", COPY.replace("vector", "warp")),
            ("no such operation", COPY.replace("tensor_copy", "tensor_steal")), ("size 0", COPY.replace("64|64", "0|64")),
            ("size negative", COPY.replace("64|64", "-1|64")), ("size 2^64", COPY.replace("64|64", "64|18446744073709551616")),
            ("size beyond the memory", COPY.replace("64|64", "64|65")), ("index unknown", COPY.replace("d1]", "d9]")),
            ("index of 10^30", COPY.replace("[d0, d1]", f"[d0, d1 + {10 ** 30}]")), ("no brackets", COPY.replace("[d0, d1]", "")),
            ("two destinations", COPY.replace("src<", "dst<")), ("unknown value", COPY.replace("%a", "%zz")), ("NUL", COPY.replace("%a", "\0")),
            ("long name", COPY.replace("%a", "%" + "a" * 10 ** 6)), ("brackets", COPY.replace("[d0", "[" * 5000 + "d0")), ("a million blanks", COPY + " " * 10 ** 6))
    ],
}
