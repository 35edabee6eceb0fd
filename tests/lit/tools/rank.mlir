// RUN: not nkx opt --simplify-linalg %s 2>&1 | FileCheck %s

// No pass has room for a value of more than 16 dimensions, so that it is refused before the first one.
// CHECK: 5:8: error: a value has more than 16 dimensions
  %x = tensor.empty() : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>
