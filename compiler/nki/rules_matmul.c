/* rules_matmul: the operands of products on the Tensor engine. */
#include <string.h>

#include "nki/rules.h"

#define VIEW(name) (nki_value(c, name)->view)

/* The elements of each partition that are rows or columns of the product: with double rows, half of them. */
struct product {
  int64_t k, rows, columns;
};

static bool is_double_row(const struct nki_call *c) {
  const struct nki_value *mode = nki_value(c, "perf_mode");
  return mode->kind == NKI_WORD && !strcmp(mode->word, "double_row");
}

static bool check_sizes(const struct nki_program *p, const struct nki_call *c, const struct product *x,
                        struct nki_error *err) {
  const struct nisa_machine *m = nisa_machine(p->target);
  const struct nki_view *dst = VIEW("dst");
  if (x->rows > m->matmul_m)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "use tiles of nl.tile_size.gemm_stationary_fmax",
                      "stationary has %lld elements in each partition, but at most %lld fit", (long long)x->rows,
                      (long long)m->matmul_m);
  if (x->columns > m->matmul_n)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "use tiles of nl.tile_size.gemm_moving_fmax",
                      "moving has %lld elements in each partition, but at most %lld fit", (long long)x->columns,
                      (long long)m->matmul_n);
  if (dst->dim[0].size != x->rows || nki_free_elements(dst) != x->columns)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                      "the product has the shape (%lld, %lld), but dst has (%lld, %lld)", (long long)x->rows,
                      (long long)x->columns, (long long)dst->dim[0].size, (long long)nki_free_elements(dst));
  return true;
}

static bool check_types(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const enum dtype st = VIEW("stationary")->tensor->dtype, mv = VIEW("moving")->tensor->dtype,
                   dst = VIEW("dst")->tensor->dtype;
  const bool passes = nki_value(c, "is_transpose")->integer;
  if (!dtype_is_float(st) || !dtype_is_float(mv))
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy",
                      "%s has the type %s, but the Tensor engine multiplies floats",
                      dtype_is_float(st) ? "moving" : "stationary", dtype_numpy_name(dtype_is_float(st) ? mv : st));
  if ((st == DT_F32) != (mv == DT_F32))
    return nki_refuse(err, DG_NKI_DTYPE, "float32 is multiplied by float32 and tfloat32 only",
                      "stationary is %s, but moving is %s", nki_type_name(VIEW("stationary")->tensor),
                      nki_type_name(VIEW("moving")->tensor));
  if ((st == DT_F8E4M3 && mv == DT_F8E4M3FN) || (st == DT_F8E4M3FN && mv == DT_F8E4M3))
    return nki_refuse(err, DG_NKI_DTYPE, "use one of both", "stationary is %s, but moving is %s", dtype_numpy_name(st),
                      dtype_numpy_name(mv));
  if (passes ? dst != st : dst != DT_F32 && !(dst == DT_BF16 && nisa_machine(p->target)->bf16_psum))
    return nki_refuse(err, DG_NKI_DTYPE, passes ? "a transpose does not convert" : "make dst of float32",
                      passes ? "dst is %s, but stationary is %s"
                             : "dst is %s, which the product of %s cannot be written to",
                      dtype_numpy_name(dst), dtype_numpy_name(st));
  return true;
}

/* moving is the identity matrix; its values are not known here. */
static bool check_transpose(const struct nki_call *c, const struct product *x, struct nki_error *err) {
  if (!nki_value(c, "is_transpose")->integer || x->columns == x->k)
    return true;
  return nki_refuse(err, DG_NKI_OPERAND, "moving is the identity matrix of as many rows as stationary has partitions",
                    "moving has the shape (%lld, %lld), which is not that of an identity matrix", (long long)x->k,
                    (long long)x->columns);
}

/* A part of the array. */
static bool check_tiles(const struct nki_program *p, const struct nki_call *c, const struct product *x,
                        struct nki_error *err) {
  static const char *const names[] = {"rows", "columns"};
  const struct nki_value *position = nki_value(c, "tile_position"), *size = nki_value(c, "tile_size");
  const int64_t used[] = {x->k, x->rows}, starts[] = {VIEW("stationary")->partition, VIEW("dst")->partition};
  if (!position->n && !size->n)
    return true;
  if (position->n != 2 || size->n != 2)
    return nki_refuse(err, DG_NKI_CALL, "give both, as (row, column) and (rows, columns)",
                      "tile_position and tile_size go together");
  for (int k = 0; k < 2; k++) {
    const int64_t n = size->ints[k], at = position->ints[k];
    if (n != NISA_PARTITIONS && n != 64 && (n != 32 || p->target == TARGET_TRN1))
      return nki_refuse(err, DG_NKI_OPERAND, p->target == TARGET_TRN1 ? "use 64 or 128" : "use 32, 64 or 128",
                        "a tile has %lld %s", (long long)n, names[k]);
    if (at < 0 || at % n || at + n > NISA_PARTITIONS)
      return nki_refuse(err, DG_NKI_OPERAND, "tiles begin at multiples of their size",
                        "a tile of %lld %s begins at %lld", (long long)n, names[k], (long long)at);
    if (used[k] > n)
      return nki_refuse(err, DG_NKI_SIZE_LIMIT, "use a larger tile", "the product has %lld %s, but the tile %lld",
                        (long long)used[k], names[k], (long long)n);
    if (starts[k] != at)
      return nki_refuse(err, DG_NKI_ADDRESS,
                        "rows of the array take the partitions of stationary and moving, columns those of dst",
                        "the tile begins at %s %lld, but %s at partition %lld", names[k], (long long)at,
                        k ? "dst" : "stationary", (long long)starts[k]);
  }
  if (VIEW("moving")->partition != position->ints[0])
    return nki_refuse(err, DG_NKI_ADDRESS, "stationary and moving are in the same partitions",
                      "the tile begins at rows %lld, but moving at partition %lld", (long long)position->ints[0],
                      (long long)VIEW("moving")->partition);
  return true;
}

/* Two rows at once: each operand has two elements for one of the product, as dimension 1 of its shape. */
static bool check_double_row(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  static const char *const names[] = {"stationary", "moving"};
  if (p->target == TARGET_TRN1)
    return nki_refuse(err, DG_NKI_UNSUPPORTED, "choose another target", "trn1 does not have double rows");
  for (int k = 0; k < 2; k++) {
    const struct nki_view *v = VIEW(names[k]);
    if (dtype_size(v->tensor->dtype) != 1)
      return nki_refuse(err, DG_NKI_DTYPE, "double rows are of 8-bit floats", "%s is %s", names[k],
                        dtype_numpy_name(v->tensor->dtype));
    if (v->rank != 3 || v->dim[1].size != 2)
      return nki_refuse(err, DG_NKI_OPERAND, "give it the shape (partitions, 2, n)",
                        "%s has no dimension 1 of size 2 for double rows", names[k]);
  }
  if (nki_value(c, "is_transpose")->integer || nki_value(c, "tile_size")->n)
    return nki_refuse(err, DG_NKI_OPERAND, "leave them out", "double rows go with no transpose and no tiles");
  return true;
}

bool nki_rules_matmul(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *st = VIEW("stationary"), *mv = VIEW("moving");
  const struct nki_value *mode = nki_value(c, "perf_mode");
  const int parts = is_double_row(c) ? 2 : 1;
  const struct product x = {st->dim[0].size, nki_free_elements(st) / parts, nki_free_elements(mv) / parts};
  if (mode->kind == NKI_WORD && strcmp(mode->word, "none") != 0 && parts == 1)
    return nki_refuse(err, DG_NKI_CALL, "use nisa.matmul_perf_mode.none or double_row", "%s is no perf_mode",
                      mode->word);
  if (parts == 2 && !check_double_row(p, c, err))
    return false;
  if (mv->dim[0].size != x.k)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "the partitions of both are the axis that is summed",
                      "stationary has %lld partitions, but moving has %lld", (long long)x.k,
                      (long long)mv->dim[0].size);
  return check_sizes(p, c, &x, err) && check_types(p, c, err) && check_transpose(c, &x, err) &&
         check_tiles(p, c, &x, err);
}
