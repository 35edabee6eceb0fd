/* rules_packed: the operands of calls on packed elements with scales (trn3). */
#include <string.h>

#include "nki/rules.h"

#define VIEW(name) (nki_value(c, name)->view)

enum { GROUP = 32, ROWS = 4 }; /* partitions of a group, and those of them that have scales */

/* Packed elements, in groups of partitions. */
static bool check_data(const struct nki_call *c, const char *name, struct nki_error *err) {
  const struct nki_view *v = VIEW(name);
  if (v->tensor->packed == NKI_PLAIN || v->tensor->packed == NKI_E8M0)
    return nki_refuse(err, DG_NKI_DTYPE, "use nl.float8_e4m3fn_x4, float8_e5m2_x4 or float4_e2m1fn_x4", "%s is %s",
                      name, nki_type_name(v->tensor));
  return v->dim[0].size % GROUP == 0 ||
         nki_refuse(err, DG_NKI_OPERAND, "pad it with zeros", "%s has %lld partitions, which is no multiple of %d",
                    name, (long long)v->dim[0].size, GROUP);
}

static bool check_scale(const struct nki_call *c, const char *name, const char *of, struct nki_error *err) {
  const struct nki_view *scale = VIEW(name), *v = VIEW(of);
  const int64_t rows = scale->dim[0].size, most = v->dim[0].size;
  if (scale->tensor->dtype != DT_U8)
    return nki_refuse(err, DG_NKI_DTYPE, "use uint8 or nl.float8_e8m0fnu", "%s is %s", name,
                      nki_type_name(scale->tensor));
  if (rows > most || rows < most - GROUP + ROWS || nki_free_elements(scale) != nki_free_elements(v))
    return nki_refuse(
        err, DG_NKI_SHAPE_MISMATCH,
        "it has the partitions of the data, of which 4 in each 32 have scales, one for each packed element",
        "%s has the shape (%lld, %lld), but %s has (%lld, %lld)", name, (long long)rows,
        (long long)nki_free_elements(scale), of, (long long)most, (long long)nki_free_elements(v));
  return true;
}

static bool check_quantize(const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *src = VIEW("src");
  if (!check_data(c, "dst", err) || !check_scale(c, "dst_scale", "dst", err) ||
      !nki_same_partitions("src", src, dst, err))
    return false;
  if (dst->tensor->packed == NKI_E2M1FN_X4)
    return nki_refuse(err, DG_NKI_DTYPE, "use nl.float8_e4m3fn_x4 or float8_e5m2_x4", "dst is float4_e2m1fn_x4");
  if (src->tensor->dtype != DT_BF16 && src->tensor->dtype != DT_F16)
    return nki_refuse(err, DG_NKI_DTYPE, "cast it with nisa.tensor_copy",
                      "src is %s, but it must be bfloat16 or float16", nki_type_name(src->tensor));
  if (nki_free_elements(src) != 4 * nki_free_elements(dst))
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "four elements in a row become one",
                      "src has %lld elements in each partition, but dst has %lld", (long long)nki_free_elements(src),
                      (long long)nki_free_elements(dst));
  return true;
}

static bool check_tile(const struct nki_call *c, struct nki_error *err) {
  const struct nki_value *at = nki_value(c, "tile_position"), *size = nki_value(c, "tile_size");
  const int64_t k = VIEW("stationary")->dim[0].size;
  if (!at->n && !size->n)
    return true;
  if (at->n != 2 || size->n != 2 || at->ints[1] || size->ints[1] != NISA_PARTITIONS)
    return nki_refuse(err, DG_NKI_CALL, "write tile_position=(row, 0), tile_size=(rows, 128)",
                      "products of packed elements have tiles of rows only");
  if (at->ints[0] < 0 || at->ints[0] % GROUP || k > size->ints[0] || at->ints[0] + size->ints[0] > NISA_PARTITIONS ||
      VIEW("stationary")->partition != at->ints[0] || VIEW("moving")->partition != at->ints[0])
    return nki_refuse(err, DG_NKI_OPERAND, "a tile takes the partitions of its operands",
                      "a tile of %lld rows from %lld on does not fit the operands", (long long)size->ints[0],
                      (long long)at->ints[0]);
  return true;
}

static bool check_product(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  const struct nki_view *dst = VIEW("dst"), *st = VIEW("stationary"), *mv = VIEW("moving");
  const struct nisa_machine *m = nisa_machine(p->target);
  const int64_t rows = nki_free_elements(st), columns = nki_free_elements(mv);
  if (!check_data(c, "stationary", err) || !check_data(c, "moving", err) ||
      !check_scale(c, "stationary_scale", "stationary", err) || !check_scale(c, "moving_scale", "moving", err))
    return false;
  if (mv->dim[0].size != st->dim[0].size)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, "the partitions of both are the axis that is summed",
                      "stationary has %lld partitions, but moving has %lld", (long long)st->dim[0].size,
                      (long long)mv->dim[0].size);
  if (rows > m->matmul_m || columns > m->matmul_n)
    return nki_refuse(err, DG_NKI_SIZE_LIMIT, "use smaller tiles",
                      "the product has the shape (%lld, %lld), but at most (%lld, %lld) fit", (long long)rows,
                      (long long)columns, (long long)m->matmul_m, (long long)m->matmul_n);
  if (dst->dim[0].size != rows || nki_free_elements(dst) != columns)
    return nki_refuse(err, DG_NKI_SHAPE_MISMATCH, NULL,
                      "the product has the shape (%lld, %lld), but dst has (%lld, %lld)", (long long)rows,
                      (long long)columns, (long long)dst->dim[0].size, (long long)nki_free_elements(dst));
  if (dst->tensor->dtype != DT_F32 && dst->tensor->dtype != DT_BF16)
    return nki_refuse(err, DG_NKI_DTYPE, "make dst of float32 or bfloat16", "dst is %s", nki_type_name(dst->tensor));
  return check_tile(c, err);
}

bool nki_rules_packed(const struct nki_program *p, const struct nki_call *c, struct nki_error *err) {
  if (!nki_is_from(p, TARGET_TRN3, c, err))
    return false;
  return c->kind == NKI_QUANTIZE_MX ? check_quantize(c, err) : check_product(p, c, err);
}
