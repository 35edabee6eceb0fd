/* nisa: the NeuronCore's instructions as MLIR operations.
 *
 * The dialect is declared in ir/dialects.irdl, and its operations are listed in ops.def.  This header says how C code
 * makes and reads them, and what they mean.  Beside them a module has func, scf.for, scf.while and scf.if, arith on
 * indices and scalars, and memref views of HBM (collapse_shape, expand_shape, subview, cast, reinterpret_cast,
 * get_global); nothing else.  The module names its machine: nisa.target = #nisa.target<"trn2">.
 *
 * A program is one sequence at first.  streams.h says what it looks like when each engine has a program of its own, and
 * cores.h what a program of two cores looks like.
 *
 * Control flow.  The sequencers of all engines branch together, on registers: constants, counters, what arith computes
 * from them, and what register_load reads from memory.  A sequencer has 64: counters and what is loaded are in one as long
 * as they are used.  What changes from round to round is in memory, where register_store writes it.
 *
 *     scf.for     counts in a register; bounds and step are registers.
 *     scf.if      the first region runs if its register is not 0, otherwise the second.
 *     scf.while   a loop whose trips depend on data.  The first region computes the condition in memory, loads it, and
 *                 ends in scf.condition; if that register is not 0 the second region runs, then the first again.  It
 *                 has no operands and no results: what it carries is in buffers that are allocated outside.
 *
 *         scf.while : () -> () {
 *           … nisa.tensor_scalar_arith(dst=%c, src=%x, operand0=%limit, op0=is_lt) …
 *           %reg = nisa.register_load(src=%c) : i1
 *           scf.condition(%reg)
 *         } do {
 *           … %x = f(%x) in place …
 *           scf.yield
 *         }
 *
 * Order.  An instruction with after = "a,b" begins when those before it that have label = "a" and label = "b" are complete.
 * With the unit attribute `in_order` it executes, or its transfer starts, in its engine after all that are before it there,
 * and before all that follow.  Both are the kernel's decision (nki/order.h): passes move neither.
 *
 * Memories.  The memory space of a memref is #nisa.mem<"hbm" | "psum" | "sbuf" | "shared_hbm">.  Arguments and results
 * of a kernel are in shared_hbm.  HBM is flat and row-major, with the memref's strides.  On chip, dimension 0 of the
 * memref is the partition; the other dimensions are row-major inside each partition, without gaps, whatever the strides
 * of the type are.  A bool (i1) takes one byte, 0 or 1.
 *
 * Accesses.  An operand that is data names a part of a memref:
 *
 *     base        the memref, an SSA operand                                    %x
 *     indices     SSA operands of type index                                    %x_indices…
 *     map         attribute X_ap: (d0, …, dn-1)[s0, …] -> one result per dimension of the base
 *     tile        attribute X_tile: the extents of d0, …, dn-1
 *     par_dims    attribute X_par_dims: the number of leading d that are partitions; the others are the free dimensions
 *     type        attribute X_type, which may be missing: the bytes are read and written as elements of this type, not of
 *                 the memref's; then indices of the last dimension count these elements.  The memref has no gaps, its rows
 *                 are a whole number of such elements, and in PSUM the elements have the same size
 *
 * The symbols are the indices.  Each result is a constant plus a sum of positive multiples of d's and s's.  Element
 * (t0, …, tn-1) of the operand is base[map(t; indices)].  A d that the map does not use repeats the same data (stride
 * 0).  An instruction goes over its operands together: partition by partition, and inside each in row-major order of
 * the free dimensions.  Only the map of a DMA operand may mix partitions and free dimensions (a copy that transposes).
 * Operands that correspond element by element have the same number of partitions, and of elements in each partition.  A
 * tile has at least one partition dimension and one free dimension.
 *
 *     memref<128x2x2x128>, view [0, %i, 1, 0][128, 1, 1, 128] as 128x128
 *       ==>  indices (%i), map (d0, d1)[s0] -> (d0, s0, 1, d1), tile [128, 128], par_dims 1
 *     a row that each of 64 partitions reads: memref<1x128>, map (d0, d1) -> (0, d1), tile [64, 128], par_dims 1
 *
 * In the operand list, an operand X is its base and then its indices; operandSegmentSizes has one entry for each of the
 * two.  Scalars (S in ops.def, or E that is not a memref) have no indices and no X_… attributes.
 *
 * Every operation but alloc and release has the attribute engine = "tensor" | "vector" | "scalar" | "gpsimd" | "dma" |
 * "sync".
 *
 * Arithmetic.  The vector and scalar engines convert what they read to f32, compute in f32, and convert the result to
 * the type of the destination: to a narrower float by rounding to nearest even; to an integer in the same way, and if
 * out of range to the nearest value, NaN to 0 (as the simulator of NKI 0.6 does; older public material does not say it).
 * What must be truncated, as in HLO's convert, goes through the activation trunc.  With engine = "gpsimd" integers stay integers: operands are extended to 32 bits, and
 * results wrap around at the width of the destination.  Bit operations (bitwise_…) never convert: they read and write
 * the bits of a float, and then all operands have the same width.  Integers are signed, except that i1 is 0 or 1; with
 * the unit attribute `unsigned`, all integers that the operation reads and writes are unsigned.  Scalars are converted
 * like elements.
 *
 *   alloc             memory that is not initialised, which is a fault to read (the vendor's simulator reads NaN, and 4 for
 *                     integers); in psum it is zero, see matmul.  alignment = N : i64, in bytes, if given.  After
 *                     allocate-memory it has a place, see below.
 *   release           the memory may be reused.  HBM is never released.
 *   dma_copy          dst = src, with conversion as above.
 *   dma_transpose     permutation = [1, 0]: dst(i, j) = src(j, i), where i and j count what each side has as partitions and
 *                     as elements of a partition.  No conversion.
 *   dma_copy_indirect dst(p, f…) = src(p, f…), where the index of base dimension `src_index_dim` of src is increased by
 *                     src_index(p, 0); src_indirect_max_index is the extent of that dimension.  With the unit attribute
 *                     skips_out_of_range, dst(p) stays where the index is not below it; otherwise that is an error.
 *   dma_scatter       dst(p, f…) = src(p, f…), where the index of base dimension `dst_index_dim` of dst is increased by
 *                     dst_index(p, 0), and so on as above; with op = "add", dst(p, f…) = dst(p, f…) + src(p, f…), in f32.
 *                     Partition by partition: of equal indices the last one stays, or all are added.
 *   dma_compute       dst = src `op` other, in f32; op is add.
 *   sendrecv          dst = src of the other core's sendrecv, of as many elements and the same type, see cores.h.
 *   all_gather all_reduce reduce_scatter all_to_all collective_permute
 *                     exchange arrays with other devices: dst and src are whole arrays of one element type in HBM.
 *                     replica_groups = dense<[[0, 1], [2, 3]]>: each row is a group of devices; without it all devices
 *                     are one group.  channel_id = N : i64 if given.  With n devices in a group:
 *     all_gather          dst is the src of all devices, concatenated along dimension `dim`.
 *     all_reduce          dst = `op` over the src of all devices.
 *     reduce_scatter      device k gets part k of n of that, along `dim`.
 *     all_to_all          src is cut into n parts along `dim`; device k gets part k of all devices, concatenated.
 *     collective_permute  source_target_pairs = dense<[[0, 1], …]>: device 1 gets the src of device 0.
 *                     op is add, multiply, max, min, bitwise_and or bitwise_or, in the type of src.
 *   matmul            dst(m, n) += sum over k of stationary(k, m) * moving(k, n), products and sum in f32.  An allocation
 *                     in psum starts an accumulation group: the first matmul that writes an element overwrites it
 *                     (psum_zero_region = "size2048": the group is one bank).  is_transpose = true: moving is the identity
 *                     matrix, and dst, of stationary's type or f32, gets the elements of stationary unchanged, transposed.
 *                     row_pos and col_pos: the part of the array that is used begins there; the values do not depend on
 *                     them.  perf_opt = "double_row": one of two products of 8-bit floats that the array computes at once, which
 *                     together take the time of one.  perf_opt = "tf32": the elements, of f32, are rounded to 10 bits of the mantissa,
 *                     nearest even, and the product takes the time of one of 16-bit floats; "tf32_stationary" and "tf32_moving":
 *                     those of one operand, in the time of f32.
 *   tensor_copy       dst = src; between equal types the bits do not change, as in every copy.
 *   tensor_copy_predicated  dst = src where predicate != 0 (reverse_pred = true: where it is 0), else unchanged.
 *   tensor_tensor_arith     dst = lhs `op` rhs.
 *   tensor_tensor_power     dst = lhs to the power rhs.
 *   tensor_scalar_arith     r = src `op0` operand0, dst = r `op1` operand1.  An operand is a scalar or has one element per
 *                     partition.  reverse_operands = "none" | "first" | "second" | "both": the operations that have the
 *                     operand on their left.  op0 and op1 may also be functions of one value (abs square relu rsqrt
 *                     reciprocal), which do not use the operand.
 *   scalar_tensor_tensor    r = src `op0` operand0, dst = r `op1` operand1, in f32.  operand0 is a scalar or has one element per
 *                     partition, operand1 is as large as src.  reverse_operands as above.
 *   tensor_reduce_arith     dst = op over the last num_r_dim free dimensions of src; negated: of -src.  dst has as many
 *                     elements per partition as remain.  Does not read dst.
 *   cross_lane_reduce_arith dst = reduce_op over the partitions of src; dst has one partition.
 *   activation        dst = op(src * scale + bias), in f32; reduce_res(p, 0) += its sum over the free dimensions.
 *   reciprocal        dst = 1 / src.
 *   tensor_tensor_scan      r(i) = (lhs(i) `op0` r(i - 1)) `op1` rhs(i) over the free elements, dst = r, with r(-1) = initial.
 *                     reverse_operands as above: r on the left, rhs on the left.
 *   tensor_scalar_cumulative  r(i) = r(i - 1) `op1` (src(i) `op0` operand0), dst = r, with r(-1) = initial.
 *   bn_stats          dst has six elements per partition: of the elements of src with even numbers, and then of the others,
 *                     how many they are, their mean, and their variance times their number.
 *   bn_aggr           src has such groups of three; dst has two elements per partition, mean and variance of all.
 *   max8              the eight largest elements of each partition, the largest first; NaN is not among them.
 *   find_index8       for each of the eight elements of values, where it is in src: the first place; if it was among the
 *                     values n times before, the one after n such places; all bits are 1 if there is none.
 *   match_replace8    dst = src, where for each of the eight elements of values, the last one first, the first place that has
 *                     it and was not replaced becomes replacement.  dst_index: these places, or all bits 1.
 *   stream_shuffle    dst(p) = src(32 * (p / 32) + shuffle_mask[p % 32]); where the mask is 255, dst(p) stays.
 *   transpose         dst(i, j) = src(j, i), of at most 32 by 32 elements of one type.
 *   gather            dst(p, i) = src(p, src_index(p, i)), with unsigned indices.
 *   local_gather      the same for groups of 16 partitions, a core of GpSimd, which share their indices: number k of
 *                     n_indices is src_index(16 g + k % 16, k / 16), and names elements_per_index elements of src, in each
 *                     partition of group g, which are counted in such runs.
 *   sequence_bounds   src has one partition of n segment numbers; dst has the shape (1, 2, n): for each element, where the
 *                     run of equal numbers that it is in begins, and the place after its end; n and -1 where src is 0.
 *   nonzero_with_count  in partitions 0, 16, 32, …: the places of the n elements of src that are not 0, plus index_offset,
 *                     then padding, and as element n of dst how many they are.  Other partitions of dst stay.
 *   topk              for each group of 16 partitions: dst has the K largest of the n_elements elements of src, the smallest
 *                     first, and dst_index their numbers; NaN is smaller than all, and of equal ones the later.  Element k of
 *                     a group is in column k / 16, in its partition k % 16 if the column is even, else 15 - k % 16; so are
 *                     results in dst and dst_index, which have K elements.  The vendor's text says that elements go through
 *                     the partitions like a snake, and no more.
 *   random            dst has the next numbers of the engine's generators: 32 bits each, of which a narrower integer gets the
 *                     low ones; with low and high, low + (the high 24 bits / 2^24) * (high - low), in f32.
 *   random_seed random_set_state random_get_state
 *                     set and read the state of the engine's generators.  Each lane, which is a partition, has 1 on GpSimd and
 *                     4 on Vector, which go by turns from element to element, anew in each instruction.  A generator is
 *                     XORWOW, six words x0 … x4, d: t = x0 ^ (x0 >> 2), then x0 … x3 = x1 … x4, x4 = x4 ^ (x4 << 4) ^ t ^ (t << 1),
 *                     d += 362437, and its number is x4 + d.  A state has the words of a lane's generators one after the other.
 *                     A seed s makes word w of generator k of lane p  f(s + 0x9e3779b9 (1 + w + 6 (k + 4 p))), f the
 *                     finalizer of MurmurHash3; a program starts with the seed 0.  The vendor does not publish its seeding.
 *   matmul_mx         the same as matmul, of packed elements times their scales (trn3): dst(m, n) += sum over k and j < 4 of
 *                     stationary(k, m)[j] * s * moving(k, n)[j] * t.  An integer of 32 bits has four f8E4M3FN or f8E5M2, one of
 *                     16 bits has four f4E2M1FN, element 0 in the low bits; stationary_format and moving_format say which.
 *                     Eight partitions share their scales: those of partitions 32 q + 8 r … + 7 are in partition 32 q + r of
 *                     stationary_scale or moving_scale, one for each packed element; the other partitions of these are not
 *                     read.  A scale is an integer x of 8 bits (f8E8M0) that means 2^(x - 127); 255 is NaN.
 *   quantize_mx       src, of bf16 or f16, in this form (trn3): four elements in a row become one of dst, and the scale of
 *                     32 elements, with the largest magnitude a, is 2^(floor(log2 a) - 7) for f8E4M3FN and
 *                     2^(floor(log2 a) - 14) for f8E5M2, at least 2^-127, which is also the scale of zeros, and NaN if a is not
 *                     finite.  An element is divided by its scale (by 1 if that is NaN) and rounded to nearest even.
 *   memset            dst = value.
 *   iota              dst(t) = offset + sum of coefficients[k] * t[k], an integer, then converted.
 *   register_load     the one element of src as an SSA value, for indices and conditions.  engine = "sync", and in engine
 *                     programs the engine whose register it is.
 *   register_store    the one element of dst = value, a register of the same type.  Only the Sync engine's sequencer stores.
 *
 * Places.  The pass allocate-memory gives every alloc on chip a place, and those in HBM whose memory does not leave the
 * kernel.  The place is in attributes of type i64:
 *
 *     sbuf    partition, the first one, and offset, in bytes, in each partition
 *     psum    bank, and offset, in bytes, in that bank; what is longer than a bank begins at one
 *     hbm     offset, in bytes, in the scratch space of the kernel, for shared_hbm, too
 *     copies  K, and stride, in bytes: an alloc in the body of an scf.for has K places in turn.  The memory that its i-th
 *             execution makes, with i = 0 for the first of all, lies (i mod K) * stride bytes after the first place; in psum a
 *             stride is a number of banks.  Without them K is 1.
 *
 * The bytes from the first copy to the end of the last belong to the alloc until the memory is released.  An alloc on chip
 * with address = array<i64: A, B> has one copy, and its place is that: partition or bank A, offset B.
 *
 * Operators (op, op0, op1): add subtract multiply divide max min mod pow (f32; max and min yield NaN if an operand is
 * NaN; mod has the sign of the left side), divide_int mod_int (integers, truncating), is_eq is_ne is_gt is_ge is_lt
 * is_le logical_and logical_or logical_xor (1 or 0; is_ne is 1 for NaN, the others are 0), bitwise_and bitwise_or
 * bitwise_xor shift_left shift_right_arith shift_right_logical, abs_max abs_min (trn3: of both values, with its sign, the
 * one that is larger or smaller without its sign; the left one if they are equal).  Functions (activation): copy exp log sqrt rsqrt square
 * abs tanh sin (of every x; the vendor's simulator extrapolates beyond pi: sin(9) is 27.65 there) erf sign floor ceil round
 * (half away from zero) round_even trunc arctan reciprocal, and with s(x) = 1 / (1 + exp(-x)), P(x) = (1 + erf(x / sqrt(2))) / 2: relu max(x, 0), sigmoid s(x), gelu x P(x), gelu_apprx_tanh x (1 + tanh(y)) / 2
 * with y = sqrt(2 / pi) (x + 0.044715 x^3), gelu_apprx_sigmoid x s(1.702 x), silu x s(x), softplus log(1 + exp(x)), mish x
 * tanh(softplus(x)), and the derivatives gelu_apprx_sigmoid_dx gelu_dx silu_dx erf_dx.  sign keeps zeros and NaN.
 */
#ifndef NISA_NISA_H
#define NISA_NISA_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/AffineMap.h"
#include "mlir-c/IR.h"

#include "base/diag.h"
#include "nisa/kinds.h"

enum nisa_engine nisa_engine_from_name(MlirStringRef name);

/* The memory space attribute, and the space of a memref type (MEM_NONE for other types and other attributes). */
MlirAttribute nisa_space_attr(MlirContext ctx, enum mem_space s);
enum mem_space nisa_type_space(MlirType memref);
MlirAttribute nisa_target_attr(MlirContext ctx, enum target t);
/* The target that the module's attribute names; false when it has none. */
bool nisa_module_target(MlirOperation module, enum target *out);

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* NULL for an operation that is not a NISA operation. */
const struct nisa_op_def *nisa_op_of(MlirOperation op);

/* True if the kernel fixes its order: it has a label, waits for others, or is in_order. */
bool nisa_keeps_order(MlirOperation op);

/* ---- operands --------------------------------------------------------------------------------------------------- */

/* An access; or a scalar, whose base is the value and whose other members are zero.  A null base: the operand is
 * absent. */
struct nisa_access {
  MlirValue base;
  int n_indices;
  MlirValue indices[NISA_RANK_MAX];
  MlirAffineMap map; /* null for scalars */
  int n_dims;
  int64_t tile[NISA_TILE_MAX];
  int par_dims;
  MlirType type; /* of the elements, if it is not that of the memref; else null */
};

static inline bool nisa_is_absent(const struct nisa_access *x) {
  return mlirValueIsNull(x->base);
}
static inline bool nisa_is_scalar(const struct nisa_access *x) {
  return !nisa_is_absent(x) && mlirAffineMapIsNull(x->map);
}
/* True if x reads or writes a buffer. */
static inline bool nisa_is_data(const struct nisa_access *x) {
  return !nisa_is_absent(x) && !nisa_is_scalar(x);
}
int64_t nisa_partitions(const struct nisa_access *x);    /* product of the partition dimensions */
int64_t nisa_free_elements(const struct nisa_access *x); /* product of the others */
enum mem_space nisa_access_space(const struct nisa_access *x);
/* Of an access: the type of its elements, and how many indices dimension r of its memref has. */
MlirType nisa_access_element(const struct nisa_access *x);
int64_t nisa_access_extent(const struct nisa_access *x, int r);

/* One result of the map: constant + sum dim[k] * d_k + sum sym[k] * s_k. */
struct nisa_index {
  int64_t constant;
  int64_t dim[NISA_TILE_MAX];
  int64_t sym[NISA_RANK_MAX];
};
/* False when result r has another form. */
bool nisa_access_index(const struct nisa_access *x, int r, struct nisa_index *out);

/* One index of x as an expression: the tile's coordinates first, as the text's parser has them. */
MlirAffineExpr nisa_index_expr(MlirContext ctx, const struct nisa_access *x, const struct nisa_index *i);
/* Adds factor * v to an index of x; sym are its factors.  v joins x's indices unless it is one of those from number `first` on.  Those belong
 * to this dimension: the text form has indices of its own for each dimension.  False if there are too many. */
bool nisa_add_index(struct nisa_access *x, int first, int64_t *sym, MlirValue v, int64_t factor);
/* The first rows and columns of a matrix; the rows are partitions. */
struct nisa_access nisa_matrix(MlirContext ctx, MlirValue base, int64_t rows, int64_t columns);

struct nisa_instr {
  const struct nisa_op_def *def;
  MlirOperation op;
  enum nisa_engine engine;
  struct nisa_access operand[NISA_OPERANDS_MAX]; /* as in def */
};

/* Reads an operation.  False, with a reason, when it is not a NISA operation or its attributes do not fit together. */
bool nisa_read(MlirOperation op, struct nisa_instr *out, const char **why);
/* The operand of this name; NULL if it is absent, or the operation has none of this name. */
const struct nisa_access *nisa_operand(const struct nisa_instr *in, const char *name);
/* The number of the operand that the attribute describes (X_ap, X_tile, X_par_dims or X_type of an operand X); -1: none. */
int nisa_operand_of_attr(const struct nisa_op_def *def, MlirStringRef name);
/* True if the attribute describes neither an operand nor the engine: nisa_create does not set it. */
bool nisa_is_own_attr(const struct nisa_op_def *def, MlirStringRef name);

/* A new operation of in's def, engine and operands, with further attributes; in no block yet.  register_load has one
 * result, of its operand's element type. */
MlirOperation nisa_create(const struct nisa_instr *in, MlirLocation loc, int n_attrs, MlirNamedAttribute const *attrs);
/* The same, with the location of `like`, an operation of the same kind, and its attributes that describe neither operands
 * nor the engine. */
MlirOperation nisa_create_like(struct arena *a, const struct nisa_instr *in, MlirOperation like);
MlirOperation nisa_create_alloc(MlirLocation loc, MlirType memref, int64_t alignment); /* alignment 0: no attribute */
MlirOperation nisa_create_release(MlirLocation loc, MlirValue buffer);

/* The place of an allocation.  copies and stride are 1 and 0 if the attributes are missing; what its memory does not use
 * is 0. */
struct nisa_place {
  int64_t partition, bank, offset, copies, stride;
};
/* False if the allocation has no place, or not all attributes of one, as i64. */
bool nisa_place_of(MlirOperation alloc, struct nisa_place *out);
/* The place that `address` asks for; false if the allocation has no such attribute, or not in this form. */
bool nisa_address_of(MlirOperation alloc, struct nisa_place *out);
/* Asks for this place: partition or bank, and offset. */
void nisa_set_address(MlirOperation alloc, const struct nisa_place *p);
/* Both allocations ask for an address, in the same memory, and have a byte in common there. */
bool nisa_addresses_meet(MlirOperation x, MlirOperation y, const struct nisa_machine *m);
/* True if the allocation has an attribute of a place. */
bool nisa_has_place_attr(MlirOperation alloc);
void nisa_set_place(MlirOperation alloc, const struct nisa_place *p);

/* A string attribute of an operation ("op", "op0"); "" when it is missing.  NUL-terminated, owned by the context. */
const char *nisa_text_attr(MlirOperation op, const char *name);

/* ---- the machine ------------------------------------------------------------------------------------------------ */

/* The bytes that a static memref type takes: in each partition if on chip, of the whole array in HBM; -1 if dynamic. */
int64_t nisa_type_bytes(MlirType memref);
/* The bytes of an element in memory; 0 for a type that no memory holds. */
int64_t nisa_element_bytes(MlirType element);

/* Checks a module, which MLIR's verifier has accepted, against the rules of the hardware: engines, memories, sizes,
 * types, access patterns, lifetimes, places, and the memory in use at every point.  Each violation becomes a diagnostic at the
 * operation's place.  ST_OK without violations, otherwise ST_INPUT. */
MUST_USE enum status nisa_verify(MlirOperation module, enum target target, struct arena *a, struct diags *ds);
/* The most bytes in each partition that are allocated at the same time under root, of PSUM in whole banks. */
void nisa_memory_peak(MlirOperation root, enum target target, struct arena *a, int64_t *sbuf, int64_t *psum);

#endif
