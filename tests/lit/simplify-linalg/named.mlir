// RUN: nkx opt --simplify-linalg %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#turned = affine_map<(i, j) -> (j, i)>
#column = affine_map<(i, j) -> (i, 0)>

// Operands in the body's order, the number goes along.
// CHECK-LABEL: func.func @swapped
// CHECK: linalg.sub {nkipy.op_id = 7 : i64} ins(%arg1, %arg0 : {{.*}}) outs(%arg2
func.func @swapped(%x: memref<8x8xf32, 3 : i32>, %y: memref<8x8xf32, 3 : i32>, %z: memref<8x8xf32, 3 : i32>) {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : memref<8x8xf32, 3 : i32>, memref<8x8xf32, 3 : i32>) outs(%z : memref<8x8xf32, 3 : i32>) attrs = {nkipy.op_id = 7 : i64} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.subf %b, %a : f32
    linalg.yield %s : f32
  }
  return
}

// A constant 0 where the extent is 1 is the dimension.
// CHECK-LABEL: func.func @unit
// CHECK: linalg.max ins(%arg0, %arg1
func.func @unit(%x: memref<8x1xi32, 3 : i32>, %y: memref<8x1xi32, 3 : i32>, %z: memref<8x1xi32, 3 : i32>) {
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : memref<8x1xi32, 3 : i32>, memref<8x1xi32, 3 : i32>) outs(%z : memref<8x1xi32, 3 : i32>) {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %s = arith.maxsi %a, %b : i32
    linalg.yield %s : i32
  }
  return
}

// Left alone: turned, broadcast, booleans, another body.
// CHECK-LABEL: func.func @left
// CHECK-COUNT-4: linalg.generic
func.func @left(%x: memref<8x8xf32, 3 : i32>, %v: memref<8x1xf32, 3 : i32>, %p: memref<8x8xi1, 3 : i32>, %z: memref<8x8xf32, 3 : i32>) {
  linalg.generic {indexing_maps = [#id, #turned, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %x : memref<8x8xf32, 3 : i32>, memref<8x8xf32, 3 : i32>) outs(%z : memref<8x8xf32, 3 : i32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %v : memref<8x8xf32, 3 : i32>, memref<8x1xf32, 3 : i32>) outs(%z : memref<8x8xf32, 3 : i32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %p : memref<8x8xi1, 3 : i32>, memref<8x8xi1, 3 : i32>) outs(%p : memref<8x8xi1, 3 : i32>) {
  ^bb0(%a: i1, %b: i1, %c: i1):
    %s = arith.addi %a, %b : i1
    linalg.yield %s : i1
  }
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %x : memref<8x8xf32, 3 : i32>, memref<8x8xf32, 3 : i32>) outs(%z : memref<8x8xf32, 3 : i32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }
  return
}
