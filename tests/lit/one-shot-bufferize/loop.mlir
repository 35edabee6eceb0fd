// A loop that yields a new value writes it back into the buffer that it carries.
// RUN: nkx opt --one-shot-bufferize --canonicalize %s | FileCheck %s
// RUN: nkx opt --remarks --one-shot-bufferize %s 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: func.func: buffers: 1, copies: 1
func.func @new(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%x = %a) -> (tensor<8x8xf32>) {
    %e = tensor.empty() : tensor<8x8xf32>
    %y = linalg.exp ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %y : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
// CHECK-LABEL: @new
// CHECK:         scf.for
// CHECK:           %[[E:.*]] = memref.alloc
// CHECK-NEXT:      linalg.exp ins(%[[X:.*]] : {{.*}}) outs(%[[E]]
// CHECK-NEXT:      memref.copy %[[E]], %[[X]]

// One that swaps two rows of what it carries reads what it overwrites.
func.func @swap(%a: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%x = %a) -> (tensor<2x8xf32>) {
    %u = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<1x8xf32>
    %v = tensor.extract_slice %x[1, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<1x8xf32>
    %y = tensor.insert_slice %v into %x[0, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<2x8xf32>
    %z = tensor.insert_slice %u into %y[1, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<2x8xf32>
    scf.yield %z : tensor<2x8xf32>
  }
  return %r : tensor<2x8xf32>
}
// CHECK-LABEL: @swap
// CHECK:         scf.for
// CHECK:           memref.alloc
// CHECK:         }

// A loop over tiles needs nothing.
func.func @tiles(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x8xf32>
  %r = scf.for %i = %c0 to %c8 step %c4 iter_args(%x = %e) -> (tensor<8x8xf32>) {
    %s = tensor.extract_slice %a[%i, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
    %o = tensor.extract_slice %x[%i, 0] [4, 8] [1, 1] : tensor<8x8xf32> to tensor<4x8xf32>
    %y = linalg.exp ins(%s : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
    %z = tensor.insert_slice %y into %x[%i, 0] [4, 8] [1, 1] : tensor<4x8xf32> into tensor<8x8xf32>
    scf.yield %z : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
// CHECK-LABEL: @tiles
// CHECK-COUNT-1: memref.alloc
// CHECK-NOT:     memref.alloc
