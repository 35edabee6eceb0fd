/* rules_gather: the operands of shuffles, gathers, random numbers, and of what concerns several cores. */
#include <string.h>

#include "nki/rules.h"

#define VIEW(name) (nki_value(c, name)->view)

enum {
  QUADRANT = 32,
  KEEPS = 255,
  CORE = 16,
  INDICES_MOST = 4096,
  GENERATOR_WORDS = 6,
  GPSIMD_DMA_ELEMENTS = 256,
  TOPK_LEAST = 8,
  TOPK_MOST = 65535
};

static bool same_type(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err) {
  return v->tensor->dtype == dst->tensor->dtype ||
         nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy", "%s is %s, but dst is %s", name,
                    dtype_numpy_name(v->tensor->dtype), dtype_numpy_name(dst->tensor->dtype));
}

static bool check_shuffle(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const struct nki_value *mask = nki_value(c, "shuffle_mask");
  if (!nki_same_shape("src", src, dst, err) || !same_type("src", src, dst, err))
    return false;
  if (mask->n != QUADRANT)
    return nki_refuse(err, DG_NKI_OPERAND, "one entry for each partition of a quadrant",
                      "shuffle_mask has %d entries, but it must have %d", mask->n, QUADRANT);
  for (int64_t p = 0; p < src->dim[0].size; p++) {
    const int64_t from = mask->ints[p % QUADRANT];
    if (from != KEEPS && (from < 0 || from >= QUADRANT || p - p % QUADRANT + from >= src->dim[0].size))
      return nki_refuse(err, DG_NKI_BOUNDS, "entries are 0 to 31 inside src, or 255, which leaves the partition",
                        "shuffle_mask takes partition %lld from place %lld of its quadrant", (long long)p,
                        (long long)from);
  }
  return true;
}

static bool check_index_type(const char *name, const struct nki_view *v, enum dtype t, struct nki_error *err) {
  return v->tensor->dtype == t ||
         nki_refuse(err, DG_NKI_DTYPE, "make the indices in this type", "%s is %s, but it must be %s", name,
                    dtype_numpy_name(v->tensor->dtype), dtype_numpy_name(t));
}

static bool check_gather(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *data = VIEW("data"), *indices = VIEW("indices");
  return nki_same_partitions("data", data, dst, err) && same_type("data", data, dst, err) &&
         nki_same_shape("indices", indices, dst, err) && check_index_type("indices", indices, DT_U32, err);
}

static bool check_local_gather(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src_buffer"), *index = VIEW("index");
  const int64_t run = nki_first_int(nki_value(c, "num_elem_per_idx"), 1), room = CORE * nki_free_elements(index),
                n = nki_first_int(nki_value(c, "num_valid_indices"), room);
  if (!nki_same_partitions("src_buffer", src, dst, err) || !nki_same_partitions("index", index, dst, err) ||
      !same_type("src_buffer", src, dst, err) || !check_index_type("index", index, DT_U16, err))
    return false;
  if (dst->dim[0].size % CORE || dst->partition % 32)
    return nki_refuse(err, DG_NKI_OPERAND, "a core of GpSimd has 16 partitions",
                      "dst has %lld partitions, which is no multiple of 16", (long long)dst->dim[0].size);
  if (run < 1 || run > 32 || run & (run - 1))
    return nki_refuse(err, DG_NKI_OPERAND, "use 1, 2, 4, 8, 16 or 32", "num_elem_per_idx is %lld", (long long)run);
  if (n < 1 || n > room || n > INDICES_MOST)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT,
                      "a core takes at most 4096 indices, and not more than its partitions have",
                      "there are %lld indices for each core", (long long)n);
  if (nki_free_elements(src) % run)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                      "src_buffer has %lld elements in each partition, which are no runs of %lld",
                      (long long)nki_free_elements(src), (long long)run);
  if (nki_free_elements(dst) != n * run)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                      "%lld indices of %lld elements are gathered, but dst has %lld in each partition", (long long)n,
                      (long long)run, (long long)nki_free_elements(dst));
  return true;
}

static bool check_bounds(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *ids = VIEW("segment_ids");
  if (ids->dim[0].size != 1 || dst->dim[0].size != 1 || nki_free_elements(dst) != 2 * nki_free_elements(ids))
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "segment_ids is (1, n), dst is (1, 2, n)",
                      "segment_ids has the shape (%lld, %lld), dst has %lld elements in %lld partitions",
                      (long long)ids->dim[0].size, (long long)nki_free_elements(ids), (long long)nki_free_elements(dst),
                      (long long)dst->dim[0].size);
  return true;
}

static bool check_nonzero(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  if (!nki_is_from(p, TARGET_TRN2, c, err) || !nki_same_partitions("src", src, dst, err) ||
      !check_index_type("dst", dst, DT_I32, err))
    return false;
  if (nki_free_elements(dst) != nki_free_elements(src) + 1)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "the last element of dst is the number of places",
                      "src has %lld elements in each partition, so dst must have %lld, not %lld",
                      (long long)nki_free_elements(src), (long long)nki_free_elements(src) + 1,
                      (long long)nki_free_elements(dst));
  return true;
}

static bool check_topk(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *values = VIEW("val_dst"), *numbers = VIEW("idx_dst"), *src = VIEW("src");
  const int64_t n = nki_first_int(nki_value(c, "n"), 0), k = CORE * nki_free_elements(values),
                room = CORE * nki_free_elements(src);
  const struct nki_view *floats[] = {values, src};
  for (int i = 0; i < 2; i++)
    if (floats[i]->tensor->dtype != DT_BF16)
      return nki_refuse(err, DG_NKI_DTYPE, "use bfloat16", "%s is %s", i ? "src" : "val_dst",
                        nki_type_name(floats[i]->tensor));
  if (numbers->tensor->dtype != DT_U16 && numbers->tensor->dtype != DT_U32)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint16 or uint32", "idx_dst is %s", nki_type_name(numbers->tensor));
  if (!nki_same_partitions("src", src, values, err) || !nki_same_shape("idx_dst", numbers, values, err))
    return false;
  if (src->dim[0].size % CORE)
    return nki_refuse(err, DG_NKI_OPERAND, "use a multiple of 16", "src has %lld partitions, no groups of 16",
                      (long long)src->dim[0].size);
  if (n < TOPK_LEAST || n > TOPK_MOST || n > room)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "n counts the elements of 16 partitions",
                      "n is %lld, but it can be %d to %d, and 16 partitions of src have %lld elements", (long long)n,
                      TOPK_LEAST, TOPK_MOST, (long long)room);
  return k <= n || nki_refuse(err, DG_NKI_SIZE_LIMIT, "make val_dst smaller",
                              "16 partitions of val_dst have %lld elements, more than n, which is %lld", (long long)k,
                              (long long)n);
}

static bool check_random(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const enum dtype t = VIEW("dst")->tensor->dtype;
  if (c->kind == NKI_RAND2)
    return nki_is_from(p, TARGET_TRN3, c, err) && nki_check_number("min", nki_value(c, "min"), VIEW("dst"), err) &&
           nki_check_number("max", nki_value(c, "max"), VIEW("dst"), err);
  if (!dtype_is_int(t))
    return nki_refuse(err, DG_NKI_DTYPE, "random bits are integers", "dst has the type %s", dtype_numpy_name(t));
  return p->target != TARGET_TRN1 || c->engine != NISA_ENGINE_GPSIMD ||
         nki_refuse(err, DG_NKI_UNSUPPORTED, "use the engine vector", "trn1 has random numbers on Vector only");
}

static bool check_seed(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *seed = VIEW("src_seeds");
  if (!dtype_is_int(seed->tensor->dtype) || dtype_size(seed->tensor->dtype) != 4)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint32", "src_seeds has the type %s",
                      dtype_numpy_name(seed->tensor->dtype));
  return nki_elements(seed) == 1 || nki_refuse(err, DG_NKI_OPERAND, "give a tensor of shape (1, 1)",
                                               "src_seeds has %lld elements", (long long)nki_elements(seed));
}

static bool check_state(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const bool sets = c->kind == NKI_RAND_SET_STATE, vector = c->engine == NISA_ENGINE_VECTOR;
  const char *name = sets ? "src_seeds" : "dst";
  const int64_t words = (vector ? 4 : 1) * GENERATOR_WORDS, n = nki_free_elements(VIEW(name));
  if (!nki_is_from(p, vector ? TARGET_TRN3 : TARGET_TRN2, c, err) || !check_index_type(name, VIEW(name), DT_U32, err))
    return false;
  return n == words || nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                                  "%s has %lld elements in each partition, but the state of a lane has %lld words",
                                  name, (long long)n, (long long)words);
}

/* GpSimd's DMA engine moves at most 256 elements of each partition, of 4, 2 or 1 bytes. */
static bool check_dma_engine(const struct nki_call *c, const struct nki_view *src, struct nki_error *err) {
  const struct nki_value *by = nki_value(c, "dma_engine");
  const bool is_gpsimd = by->kind == NKI_WORD && !strcmp(by->word, "gpsimd_dma");
  const int64_t n = nki_free_elements(src), size = (int64_t)dtype_size(src->tensor->dtype);
  if (by->kind == NKI_WORD && !is_gpsimd && strcmp(by->word, "dma") != 0)
    return nki_refuse(err, DG_NKI_CALL, "use nisa.dma_engine.dma or gpsimd_dma", "%s is no dma_engine", by->word);
  return !is_gpsimd || n <= GPSIMD_DMA_ELEMENTS ||
         nki_refuse(err, DG_NKI_SIZE_LIMIT, "use nisa.dma_engine.dma, or send parts",
                    "src has %lld bytes in each partition, but gpsimd_dma moves at most %lld of %s",
                    (long long)(n * size), (long long)(GPSIMD_DMA_ELEMENTS * size), nki_type_name(src->tensor));
}

static bool check_sendrecv(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  const int64_t to = nki_first_int(nki_value(c, "send_to_rank"), 0),
                from = nki_first_int(nki_value(c, "recv_from_rank"), 0);
  if (!nki_is_from(p, TARGET_TRN2, c, err) || !nki_same_shape("src", src, dst, err) ||
      !same_type("src", src, dst, err) || !check_dma_engine(c, src, err))
    return false;
  if (p->grid.cores < 2)
    return (!to && !from) ||
           nki_refuse(err, DG_NKI_OPERAND, "guard it with nl.num_programs() > 1, or launch on two cores",
                      "data is sent to core %lld and comes from core %lld, but the kernel runs on one core",
                      (long long)to, (long long)from);
  const int own = nki_instance_core(p);
  return (to == 1 - own && from == 1 - own) ||
         nki_refuse(err, DG_NKI_CORES, "send to and receive from 1 - nl.program_id(0)",
                    "core %d exchanges data with the other core, %d, but send_to_rank is %lld and recv_from_rank %lld",
                    own, 1 - own, (long long)to, (long long)from);
}

static bool check_barrier(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_value *cores = nki_value(c, "cores");
  if (!nki_is_from(p, TARGET_TRN2, c, err))
    return false;
  if (cores->n != 2 || cores->ints[0] != 0 || cores->ints[1] != 1)
    return nki_refuse(err, DG_NKI_OPERAND, "write cores=(0, 1)", "a barrier is between the cores 0 and 1");
  return true;
}

bool nki_rules_gather(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  switch (c->kind) {
  case NKI_NC_STREAM_SHUFFLE:
    return check_shuffle(c, err);
  case NKI_NC_N_GATHER:
    return check_gather(c, err);
  case NKI_LOCAL_GATHER:
    return check_local_gather(c, err);
  case NKI_SEQUENCE_BOUNDS:
    return check_bounds(c, err);
  case NKI_NONZERO_WITH_COUNT:
    return check_nonzero(p, c, err);
  case NKI_TOPK:
    return check_topk(c, err);
  case NKI_RNG:
  case NKI_RAND2:
    return check_random(p, c, err);
  case NKI_SET_RNG_SEED:
    return check_seed(c, err);
  case NKI_RAND_SET_STATE:
  case NKI_RAND_GET_STATE:
    return check_state(p, c, err);
  case NKI_CORE_BARRIER:
    return check_barrier(p, c, err);
  case NKI_SENDRECV:
    return check_sendrecv(p, c, err);
  default:
    return nki_refuse(err, DG_INTERNAL, NULL, "a call has no rules");
  }
}
