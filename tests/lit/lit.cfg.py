"""Golden tests of passes: IR text before and after, side by side, checked with FileCheck.

    // RUN: nkx opt --remove-redundant-zero-fill %s | FileCheck %s
    // RUN: not nkx opt --decompose-batch-matmul %s 2>&1 | FileCheck %s

BUILD says where the product was built (default build, as for make).  `nkx` is the worker program itself: it holds the
compiler, and starting it directly saves a process per line.
"""
import os
import pathlib

import lit.formats

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
LLVM = pathlib.Path("/usr/lib/llvm-22/bin")

config.name = "nkx passes"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py"]
config.excludes = ["lit.cfg.py", "Inputs"]
config.test_source_root = str(ROOT / "tests/lit")
config.test_exec_root = str(BUILD / "test/lit")
# whole words only, and not as a part of a path or an option
config.substitutions += [
    (r"(?<![\w/.-])nkx(?![\w/.-])", str(BUILD / "bin/nkx-worker")),
    (r"(?<![\w/.-])mlir-opt(?![\w/.-])", f"{LLVM}/mlir-opt --irdl-file={BUILD}/dialects.irdl"),
    (r"(?<![\w/.-])FileCheck(?![\w/.-])", str(LLVM / "FileCheck")),
    (r"(?<![\w/.-])not(?![\w/.-])", str(LLVM / "not")),
]
config.environment["PATH"] = os.environ["PATH"]
if not (BUILD / "bin/nkx-worker").exists():
    lit_config.fatal(f"{BUILD}/bin/nkx-worker is not built")
