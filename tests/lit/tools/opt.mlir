// RUN: nkx opt --canonicalize %s | FileCheck %s
// RUN: not nkx opt --nonsense %s 2>&1 | FileCheck %s --check-prefix=ERR
// CHECK: func.func @f
// ERR: there is no such pass
func.func @f() { return }
