"""Kernels as people write them.

    suite                  how one is stated; elementwise, layers, … state them; left_out says what is not asked yet
    matrix                 them in batches, and what is asked of a compiled batch
    fori_loops             small kernels with fori_loop; feedforward: one of any size
"""
