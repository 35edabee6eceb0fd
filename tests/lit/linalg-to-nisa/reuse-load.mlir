// RUN: nkx opt --linalg-to-nisa --nisa-verify %s | FileCheck %s
// RUN: nkx opt --linalg-to-nisa=sbuf-capacity=511 --nisa-verify %s | FileCheck %s --check-prefix=FULL

// The second load of the same rows is the buffer of the first one, which lives longer; other rows are loaded.
// CHECK-LABEL: func.func @twice
// CHECK-COUNT-3: "nisa.dma_copy"
// CHECK-NOT:     "nisa.dma_copy"
// CHECK:         return
// FULL-LABEL:  func.func @twice
// FULL-COUNT-4:  "nisa.dma_copy"
// FULL-NOT:      "nisa.dma_copy"
// FULL:          return
func.func @twice(%x: memref<128x64xf32, 4 : i32>, %y: memref<128x64xf32, 4 : i32>) -> memref<128x64xf32, 4 : i32> {
  %r = memref.alloc() : memref<128x64xf32, 4 : i32>
  %a = memref.alloc() : memref<128x64xf32, 3 : i32>
  %s = memref.alloc() : memref<128x64xf32, 3 : i32>
  memref.copy %x, %a : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 3 : i32>
  linalg.exp ins(%a : memref<128x64xf32, 3 : i32>) outs(%s : memref<128x64xf32, 3 : i32>)
  memref.dealloc %a : memref<128x64xf32, 3 : i32>
  %b = memref.alloc() : memref<128x64xf32, 3 : i32>
  memref.copy %x, %b : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 3 : i32>
  linalg.add ins(%s, %b : memref<128x64xf32, 3 : i32>, memref<128x64xf32, 3 : i32>) outs(%s : memref<128x64xf32, 3 : i32>)
  memref.dealloc %b : memref<128x64xf32, 3 : i32>
  %c = memref.alloc() : memref<128x64xf32, 3 : i32>
  memref.copy %y, %c : memref<128x64xf32, 4 : i32> to memref<128x64xf32, 3 : i32>
  linalg.mul ins(%s, %c : memref<128x64xf32, 3 : i32>, memref<128x64xf32, 3 : i32>) outs(%s : memref<128x64xf32, 3 : i32>)
  memref.dealloc %c : memref<128x64xf32, 3 : i32>
  memref.copy %s, %r : memref<128x64xf32, 3 : i32> to memref<128x64xf32, 4 : i32>
  memref.dealloc %s : memref<128x64xf32, 3 : i32>
  return %r : memref<128x64xf32, 4 : i32>
}
