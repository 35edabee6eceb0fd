// RUN: nkx opt --linalg-to-nisa %s | FileCheck %s

// A body of any length: each operation gets a buffer, which is released after its last use.
// CHECK-LABEL: func.func @long_body
// CHECK-COUNT-80: nisa.tensor_tensor_arith
// CHECK-NOT: nisa.tensor_tensor_arith
func.func @long_body(%a: memref<128x8xf32, 4 : i32>) {
  %x = memref.alloc() : memref<128x8xf32, 3 : i32>
  %y = memref.alloc() : memref<128x8xf32, 3 : i32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%x : memref<128x8xf32, 3 : i32>) outs(%y : memref<128x8xf32, 3 : i32>) {
  ^bb0(%e: f32, %o: f32):
    %0 = arith.addf %e, %e : f32
    %1 = arith.addf %0, %e : f32
    %2 = arith.addf %1, %e : f32
    %3 = arith.addf %2, %e : f32
    %4 = arith.addf %3, %e : f32
    %5 = arith.addf %4, %e : f32
    %6 = arith.addf %5, %e : f32
    %7 = arith.addf %6, %e : f32
    %8 = arith.addf %7, %e : f32
    %9 = arith.addf %8, %e : f32
    %10 = arith.addf %9, %e : f32
    %11 = arith.addf %10, %e : f32
    %12 = arith.addf %11, %e : f32
    %13 = arith.addf %12, %e : f32
    %14 = arith.addf %13, %e : f32
    %15 = arith.addf %14, %e : f32
    %16 = arith.addf %15, %e : f32
    %17 = arith.addf %16, %e : f32
    %18 = arith.addf %17, %e : f32
    %19 = arith.addf %18, %e : f32
    %20 = arith.addf %19, %e : f32
    %21 = arith.addf %20, %e : f32
    %22 = arith.addf %21, %e : f32
    %23 = arith.addf %22, %e : f32
    %24 = arith.addf %23, %e : f32
    %25 = arith.addf %24, %e : f32
    %26 = arith.addf %25, %e : f32
    %27 = arith.addf %26, %e : f32
    %28 = arith.addf %27, %e : f32
    %29 = arith.addf %28, %e : f32
    %30 = arith.addf %29, %e : f32
    %31 = arith.addf %30, %e : f32
    %32 = arith.addf %31, %e : f32
    %33 = arith.addf %32, %e : f32
    %34 = arith.addf %33, %e : f32
    %35 = arith.addf %34, %e : f32
    %36 = arith.addf %35, %e : f32
    %37 = arith.addf %36, %e : f32
    %38 = arith.addf %37, %e : f32
    %39 = arith.addf %38, %e : f32
    %40 = arith.addf %39, %e : f32
    %41 = arith.addf %40, %e : f32
    %42 = arith.addf %41, %e : f32
    %43 = arith.addf %42, %e : f32
    %44 = arith.addf %43, %e : f32
    %45 = arith.addf %44, %e : f32
    %46 = arith.addf %45, %e : f32
    %47 = arith.addf %46, %e : f32
    %48 = arith.addf %47, %e : f32
    %49 = arith.addf %48, %e : f32
    %50 = arith.addf %49, %e : f32
    %51 = arith.addf %50, %e : f32
    %52 = arith.addf %51, %e : f32
    %53 = arith.addf %52, %e : f32
    %54 = arith.addf %53, %e : f32
    %55 = arith.addf %54, %e : f32
    %56 = arith.addf %55, %e : f32
    %57 = arith.addf %56, %e : f32
    %58 = arith.addf %57, %e : f32
    %59 = arith.addf %58, %e : f32
    %60 = arith.addf %59, %e : f32
    %61 = arith.addf %60, %e : f32
    %62 = arith.addf %61, %e : f32
    %63 = arith.addf %62, %e : f32
    %64 = arith.addf %63, %e : f32
    %65 = arith.addf %64, %e : f32
    %66 = arith.addf %65, %e : f32
    %67 = arith.addf %66, %e : f32
    %68 = arith.addf %67, %e : f32
    %69 = arith.addf %68, %e : f32
    %70 = arith.addf %69, %e : f32
    %71 = arith.addf %70, %e : f32
    %72 = arith.addf %71, %e : f32
    %73 = arith.addf %72, %e : f32
    %74 = arith.addf %73, %e : f32
    %75 = arith.addf %74, %e : f32
    %76 = arith.addf %75, %e : f32
    %77 = arith.addf %76, %e : f32
    %78 = arith.addf %77, %e : f32
    %79 = arith.addf %78, %e : f32
    linalg.yield %79 : f32
  }
  memref.dealloc %x : memref<128x8xf32, 3 : i32>
  memref.dealloc %y : memref<128x8xf32, 3 : i32>
  return
}
