"""NKI beta 1: flash attention as a pipeline, with memory that the kernel allocates itself.

q has shape (heads, d, queries), k (heads, d, keys), v (heads, keys, d); the result (heads, queries, d).  The keys come in
sections, each as long as the memory for its exponentials; within a section, tiles of 512 keys.  Between sections the
maximum and the sum of each row run on, and what was added up before is scaled to the new maximum.
"""
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
from neuronxcc.nki.language import par_dim

ROWS, KEYS = 128, 512
BANK = 2048


def bank_of(first, count):
    """Places of tiles of a bank each, that take `count` banks in turn."""
    def place(index, partitions, row_bytes):
        number = index[-1] if index else 0
        return first + number % count, 0, 0
    return place


@nki.compiler.skip_middle_end_transformations
@nki.jit
def attention_pipelined(q, k, v, softmax_scale=None, section=1024):
    heads, d, queries = q.shape
    keys = k.shape[2]
    assert tuple(v.shape) == (heads, keys, d) and d <= 128
    assert queries % ROWS == 0 and keys % section == 0 and section % KEYS == 0
    scale = softmax_scale or 1.0 / float(np.sqrt(d))
    sections, tiles, parts = keys // section, section // KEYS, section // ROWS
    out = nl.ndarray((heads, queries, d), dtype=q.dtype, buffer=nl.shared_hbm)
    head = nl.program_id(0)

    identity_at, q_at = 0, ROWS * 2
    k_at = q_at + 2 * ROWS * 2
    v_at = k_at + 2 * section * 2
    e_at = v_at + 2 * parts * d * 2
    et_at = e_at + 2 * section * 2
    o_at = et_at + 2 * ROWS * 4 * 2
    small_at = o_at + 2 * d * 4

    identity_hbm = nl.shared_constant(np.identity(ROWS, dtype=np.uint8), dtype=nl.bfloat16)
    identity = nl.ndarray((par_dim(ROWS), ROWS), dtype=nl.bfloat16, buffer=ncc.sbuf.mod_alloc(base_addr=identity_at))
    ip, jf = nl.mgrid[0:ROWS, 0:ROWS]
    identity[ip, jf] = nl.load(identity_hbm)

    for i in nl.affine_range(queries // ROWS):
        q_tile = nl.ndarray((par_dim(d), ROWS), dtype=nl.bfloat16, buffer=ncc.sbuf.mod_alloc(base_addr=q_at))
        raw = nl.load(q[head, :, nl.ds(i * ROWS, ROWS)])
        q_tile[...] = nisa.tensor_scalar(raw, np.multiply, scale, dtype=nl.bfloat16)

        top = nl.ndarray((2, par_dim(ROWS), 1), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=small_at, num_free_tiles=(2,)))
        total = nl.ndarray((par_dim(ROWS), 1), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=small_at + 8))
        acc = nl.ndarray((par_dim(ROWS), d), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=o_at))
        top[1] = nisa.memset((ROWS, 1), -3.0e38, nl.float32)
        total[...] = nisa.memset((ROWS, 1), 0.0, nl.float32)
        acc[...] = nisa.memset((ROWS, d), 0.0, nl.float32)

        for s in nl.sequential_range(sections):
            k_tile = nl.ndarray((tiles, par_dim(d), KEYS), dtype=nl.bfloat16,
                                buffer=ncc.sbuf.mod_alloc(base_addr=k_at, num_free_tiles=(tiles,)))
            v_tile = nl.ndarray((parts, par_dim(ROWS), d), dtype=nl.bfloat16,
                                buffer=ncc.sbuf.mod_alloc(base_addr=v_at, num_free_tiles=(parts,)))
            for t in nl.affine_range(tiles):
                k_tile[t] = nl.load(k[head, :, nl.ds(s * section + t * KEYS, KEYS)], dtype=nl.bfloat16)
            for t in nl.affine_range(parts):
                v_tile[t] = nl.load(v[head, nl.ds(s * section + t * ROWS, ROWS), :], dtype=nl.bfloat16)

            # scores of the section stay in PSUM until their exponentials are taken
            scores = nl.ndarray((tiles, par_dim(ROWS), KEYS), dtype=nl.float32, buffer=ncc.psum.alloc(bank_of(0, tiles)))
            tops = nl.ndarray((par_dim(ROWS), tiles), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=small_at + 16))
            for t in nl.affine_range(tiles):
                scores[t] = nisa.nc_matmul(q_tile, k_tile[t])
                tops[:, nl.ds(t, 1)] = nisa.tensor_reduce(np.max, scores[t], axis=(1,))
            higher = nisa.tensor_reduce(np.max, tops, axis=(1,))
            top[s % 2] = nisa.tensor_tensor(higher, top[(s + 1) % 2], op=np.maximum)
            minus_top = nisa.tensor_scalar(top[s % 2], np.multiply, -1.0)
            shrink = nisa.activation(np.exp, top[(s + 1) % 2], bias=minus_top)

            e = nl.ndarray((tiles, par_dim(ROWS), KEYS), dtype=nl.bfloat16,
                           buffer=ncc.sbuf.mod_alloc(base_addr=e_at, num_free_tiles=(tiles,)))
            sums = nl.ndarray((par_dim(ROWS), tiles), dtype=nl.float32, buffer=ncc.sbuf.mod_alloc(base_addr=small_at + 64))
            for t in nl.affine_range(tiles):
                e[t] = nisa.activation_reduce(np.exp, scores[t], bias=minus_top, reduce_op=np.add, reduce_res=sums[:, nl.ds(t, 1)])
            section_sum = nisa.tensor_reduce(np.add, sums, axis=(1,))
            total[...] = nisa.scalar_tensor_tensor(data=total, op0=np.multiply, operand0=shrink, op1=np.add, operand1=section_sum)

            # the products of the section: groups of four tiles in PSUM, which are added up in SBUF
            section_acc = nl.zeros((par_dim(ROWS), d), dtype=nl.float32)
            for t in nl.affine_range(tiles):
                group = nl.ndarray((par_dim(ROWS), d), dtype=nl.float32, buffer=ncc.psum.mod_alloc(base_bank=6))
                for j in nl.affine_range(KEYS // ROWS):
                    turned = nl.ndarray((par_dim(ROWS), ROWS), dtype=nl.float32, buffer=ncc.psum.mod_alloc(base_bank=7))
                    turned[...] = nisa.nc_matmul(e[t, :, nl.ds(j * ROWS, ROWS)], identity)
                    e_t = nl.ndarray((par_dim(ROWS), ROWS), dtype=nl.bfloat16,
                                     buffer=ncc.sbuf.mod_alloc(base_addr=et_at))
                    e_t[...] = nisa.tensor_copy(turned, dtype=nl.bfloat16)
                    group[...] += nisa.nc_matmul(e_t, v_tile[t * (KEYS // ROWS) + j])
                section_acc = nl.loop_reduce(group, op=np.add, loop_indices=[t], dtype=nl.float32)
            acc[...] = nisa.scalar_tensor_tensor(data=acc, op0=np.multiply, operand0=shrink, op1=np.add, operand1=section_acc)

        inverse = nisa.reciprocal(total)
        result = nisa.tensor_scalar(acc, np.multiply, inverse, dtype=out.dtype)
        nl.store(out[head, nl.ds(i * ROWS, ROWS), :], value=result)
    return out
