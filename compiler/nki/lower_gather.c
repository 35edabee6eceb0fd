/* lower_gather: shuffles, gathers, random numbers, and what concerns several cores, as instructions. */
#include "nisa/streams.h"
#include "nki/lower_emit.h"

static void lower_shuffle(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *mask = nki_value(c, "shuffle_mask");
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("src"))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "shuffle_mask", ir_i64_array(&l->b, mask->n, mask->ints));
  emit(l, NISA_STREAM_SHUFFLE, c->engine, c, x, &attrs);
}

static void lower_gather(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("data")),
                            nki_access_on_chip(l, VIEW("indices"))};
  emit(l, NISA_GATHER, c->engine, c, x, NULL);
}

static void lower_local_gather(struct nki_lower *l, const struct nki_call *c) {
  const int64_t run = nki_first_int(nki_value(c, "num_elem_per_idx"), 1);
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("src_buffer")),
                            nki_access_on_chip(l, VIEW("index"))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "elements_per_index", ir_i64_attr(&l->b, run));
  add_attr(l, &attrs, "n_indices", ir_i64_attr(&l->b, nki_free_elements(VIEW("dst")) / run));
  emit(l, NISA_LOCAL_GATHER, c->engine, c, x, &attrs);
}

static void lower_nonzero(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("src"))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "index_offset", ir_i64_attr(&l->b, nki_first_int(nki_value(c, "index_offset"), 0)));
  add_attr(l, &attrs, "padding", ir_i64_attr(&l->b, nki_first_int(nki_value(c, "padding_val"), -1)));
  emit(l, NISA_NONZERO_WITH_COUNT, c->engine, c, x, &attrs);
}

static void lower_topk(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("val_dst")), nki_access_on_chip(l, VIEW("idx_dst")),
                            nki_access_on_chip(l, VIEW("src"))};
  struct attrs attrs = {0};
  add_attr(l, &attrs, "n_elements", ir_i64_attr(&l->b, nki_first_int(nki_value(c, "n"), 0)));
  emit(l, NISA_TOPK, c->engine, c, x, &attrs);
}

static void lower_random(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[3] = {nki_access_on_chip(l, VIEW("dst"))};
  if (c->kind == NKI_RAND2) {
    x[1] = number_or_column(l, nki_value(c, "min"), 0, DT_NONE);
    x[2] = number_or_column(l, nki_value(c, "max"), 0, DT_NONE);
  }
  emit(l, NISA_RANDOM, c->engine, c, x, NULL);
}

static void lower_state(struct nki_lower *l, const struct nki_call *c, enum nisa_kind kind, const char *name) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW(name))};
  emit(l, kind, c->engine, c, x, NULL);
}

/* ---- packed elements --------------------------------------------------------------------------------------------- */

static const char *format_of(const struct nki_view *v) {
  switch (v->tensor->packed) {
  case NKI_E4M3FN_X4:
    return "f8E4M3FN";
  case NKI_E5M2_X4:
    return "f8E5M2";
  default:
    return "f4E2M1FN";
  }
}

static void lower_quantize(struct nki_lower *l, const struct nki_call *c) {
  struct nisa_access x[] = {nki_access_on_chip(l, VIEW("dst")), nki_access_on_chip(l, VIEW("dst_scale")),
                            nki_access_on_chip(l, VIEW("src"))};
  struct attrs attrs = {0};
  add_text(l, &attrs, "format", format_of(VIEW("dst")));
  emit(l, NISA_QUANTIZE_MX, c->engine, c, x, &attrs);
}

static void lower_packed_product(struct nki_lower *l, const struct nki_call *c) {
  const struct nki_value *at = nki_value(c, "tile_position");
  struct nisa_access x[] = {
      nki_access_on_chip(l, VIEW("dst")),          nki_access_on_chip(l, VIEW("stationary")),
      nki_access_on_chip(l, VIEW("moving")),       nki_access_on_chip(l, VIEW("stationary_scale")),
      nki_access_on_chip(l, VIEW("moving_scale")), scalar(ir_index(&l->b, nki_first_int(at, 0)))};
  struct attrs attrs = {0};
  add_text(l, &attrs, "stationary_format", format_of(VIEW("stationary")));
  add_text(l, &attrs, "moving_format", format_of(VIEW("moving")));
  emit(l, NISA_MATMUL_MX, c->engine, c, x, &attrs);
}

enum status nki_lower_more(struct nki_lower *l, const struct nki_call *c) {
  switch (c->kind) {
  case NKI_DMA_COMPUTE:
  case NKI_DMA_TRANSPOSE:
    return nki_lower_dma(l, c);
  case NKI_NC_STREAM_SHUFFLE:
    lower_shuffle(l, c);
    break;
  case NKI_NC_N_GATHER:
    lower_gather(l, c);
    break;
  case NKI_LOCAL_GATHER:
    lower_local_gather(l, c);
    break;
  case NKI_SEQUENCE_BOUNDS:
    nki_lower_copy(l, c, NISA_SEQUENCE_BOUNDS, "segment_ids");
    break;
  case NKI_NONZERO_WITH_COUNT:
    lower_nonzero(l, c);
    break;
  case NKI_TOPK:
    lower_topk(l, c);
    break;
  case NKI_RNG:
  case NKI_RAND2:
    lower_random(l, c);
    break;
  case NKI_SET_RNG_SEED:
    lower_state(l, c, NISA_RANDOM_SEED, "src_seeds");
    break;
  case NKI_RAND_SET_STATE:
    lower_state(l, c, NISA_RANDOM_SET_STATE, "src_seeds");
    break;
  case NKI_RAND_GET_STATE:
    lower_state(l, c, NISA_RANDOM_GET_STATE, "dst");
    break;
  case NKI_QUANTIZE_MX:
    lower_quantize(l, c);
    break;
  case NKI_NC_MATMUL_MX:
    lower_packed_product(l, c);
    break;
  case NKI_CORE_BARRIER: /* on one core there is nothing to wait for */
    if (l->n_cores > 1)
      mlirBlockAppendOwnedOperation(l->b.block, nisa_create_core_barrier(l->b.loc));
    break;
  case NKI_SENDRECV:
    nki_lower_copy(l, c, l->n_cores > 1 ? NISA_SENDRECV : NISA_DMA_COPY, "src");
    break;
  default:
    return ST_BUG; /* compose.c has taken it apart */
  }
  return ST_OK;
}
