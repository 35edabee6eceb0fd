"""The pictures of all stages of all examples: every operation is there, and boxes overlap only where one is around the other."""
import json
import os
import pathlib
import subprocess

import pytest

from support.marks import few
from support.paths import BUILD, EXAMPLES, NKX, ROOT


def run(*command) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def drawings(tmp_path_factory):
    """Runs drawings.ts with these arguments; its output."""
    script = tmp_path_factory.mktemp("drawings") / "drawings.mjs"
    run(ROOT / "web/node_modules/.bin/esbuild", ROOT / "tests/browser/drawings.ts", "--bundle", "--platform=node", "--format=esm", f"--outfile={script}")
    node = pathlib.Path(os.environ.get("VENV", BUILD / "venv")) / "bin/node"
    return lambda *arguments: run(node if node.exists() else "node", script, *arguments)


@pytest.mark.parametrize("example", few(EXAMPLES, 6, lambda e: e.stem))
def test_every_stage_is_drawn_with_all_its_operations(drawings, tmp_path, example):
    result = tmp_path / "result.json"
    run(NKX, "compile", example, "--quiet", "--json", result)
    found = json.loads(drawings("check", result))
    assert found["wrong"][:5] == []
    assert found["boxes"] > 100


LOOPS = """#map = affine_map<(d0, d1) -> (d1, d0)>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @f(%arg0: memref<64x256xf32>, %arg1: memref<256x64xf32>, %arg2: memref<256xf32>) {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %cst = arith.constant 2.500000e-01 : f32
    scf.for %i = %c0 to %c4 step %c1 {
      %0 = arith.muli %i, %c64 : index
      %subview = memref.subview %arg1[%0, 0] [64, 64] [1, 1] : memref<256x64xf32> to memref<64x64xf32, strided<[64, 1], offset: ?>>
      %subview_0 = memref.subview %arg0[0, %0] [64, 64] [1, 1] : memref<64x256xf32> to memref<64x64xf32, strided<[256, 1], offset: ?>>
      linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%subview_0 : memref<64x64xf32, strided<[256, 1], offset: ?>>) outs(%subview : memref<64x64xf32, strided<[64, 1], offset: ?>>) {
      ^bb0(%in: f32, %out: f32):
        %1 = arith.addf %in, %cst : f32
        %2 = arith.mulf %1, %1 : f32
        linalg.yield %2 : f32
      }
    }
    scf.for %j = %c0 to %c4 step %c1 {
      linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "reduction"]} ins(%arg1 : memref<256x64xf32>) outs(%arg2 : memref<256xf32>) {
      ^bb0(%in: f32, %out: f32):
        %1 = arith.maximumf %out, %in : f32
        linalg.yield %1 : f32
      }
    }
    scf.for %k = %c0 to %c4 step %c1 {
      memref.copy %arg0, %arg1 : memref<64x256xf32> to memref<64x256xf32>
    }
    scf.while : () -> () {
      %true = arith.constant true
      scf.condition(%true)
    } do {
      linalg.fill ins(%cst : f32) outs(%arg2 : memref<256xf32>)
      scf.yield
    }
    return
  }
}
"""


def test_loops_and_what_a_round_does_are_read_from_the_text(drawings, tmp_path):
    path = tmp_path / "loops.mlir"
    path.write_text(LOOPS)
    assert drawings("loops", path).splitlines() == [
        "for %i  0..4 · 4 rounds · parallel · tiles of 64",
        "  linalg.generic  64×64 f32 → 64×64 f32",
        "    d0  0..64 · parallel",
        "      d1  0..64 · parallel",
        "        %arg1[64·i + d0, d1] ← (%arg0[d1, 64·i + d0] + 0.25) × (%arg0[d1, 64·i + d0] + 0.25)   64×64 f32 → 64×64 f32",
        "for %j  0..4 · 4 rounds · reduction",
        "  linalg.generic  256×64 f32 → 256 f32",
        "    d0  0..256 · parallel",
        "      d1  0..64 · reduction",
        "        %arg2[d0] ← max(%arg2[d0], %arg1[d0, d1])   256×64 f32 → 256 f32",
        "for %k  0..4 · 4 rounds · in order",
        "  memref.copy  %arg1 ← %arg0   64×256 f32",
        "while",
        "  linalg.fill  f32 → 256 f32",
        "    d0  0..256 · parallel",
        "      %arg2[d0] ← 0.25   f32 → 256 f32",
    ]


FLOW = """HloModule m, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%helper (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[4]{0} broadcast(%half), dimensions={}
  ROOT %scaled = f32[4]{0} multiply(%p, %halves)
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %zero = f32[] constant(0)
  %total = f32[] reduce(%x, %zero), dimensions={0}, to_apply=%add
  %one = f32[4]{0} call(%x), to_apply=%helper
  %two = f32[4]{0} call(%one), to_apply=%helper
  %wide = f32[4]{0} broadcast(%total), dimensions={}
  ROOT %result = f32[4]{0} subtract(%two, %wide)
}
"""


def test_the_graph_is_read_from_the_text(drawings, tmp_path):
    path = tmp_path / "flow.hlo"
    path.write_text(FLOW)
    assert sorted(line.strip() for line in drawings("flow", path).splitlines()) == sorted([
        "x  parameter 0 · 4 f32",
        "reduce add dims 0  total · f32",
        "call one  2 operations · 4 f32",
        "call two  2 operations · 4 f32",
        "p  p · 4 f32",
        "p  p · 4 f32",
        "multiply(·, 0.5)  scaled · 4 f32",
        "multiply(·, 0.5)  scaled · 4 f32",
        "broadcast  wide · 4 f32",
        "subtract  result · 4 f32",
    ])
