"""What a stage's text computes, found with none of our code.

    xla          HLO, by XLA on the CPU
    llvm         linalg and memref, by mlir-opt, clang and ctypes
    nisa_eval    NISA, instruction by instruction in NumPy
"""
