/* verify_packed: what the hardware demands of packed elements with scales (trn3). */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/verify_ops.h"

enum { MX_GROUP = 32, MX_ROWS = 4 }; /* partitions of a group, and those of them that have scales */

/* Packed elements of `format`, and the partitions that have their scales. */
static void check_packed(struct nisa_check *c, const struct nisa_instr *in, const char *name, const char *scale_name,
                         const char *format) {
  const struct nisa_access *x = nisa_operand(in, name), *scale = nisa_operand(in, scale_name);
  const int64_t partitions = nisa_partitions(x), rows = nisa_partitions(scale);
  const int64_t bytes = !strcmp(format, "f4E2M1FN") ? 2 : 4;
  if (!mlirTypeIsAInteger(nisa_element(x)) || nisa_element_bytes(nisa_element(x)) != bytes)
    nisa_complain(c, in->op, "%s must be integers of %lld bits, which have four %s", name, (long long)(8 * bytes),
                  format);
  if (!mlirTypeIsAInteger(nisa_element(scale)) || nisa_element_bytes(nisa_element(scale)) != 1)
    nisa_complain(c, in->op, "%s must be integers of 8 bits", scale_name);
  if (partitions % MX_GROUP)
    nisa_complain(c, in->op, "%s has %lld partitions, which are no groups of %d", name, (long long)partitions,
                  MX_GROUP);
  if (rows > partitions || rows < partitions - MX_GROUP + MX_ROWS || nisa_free_elements(scale) != nisa_free_elements(x))
    nisa_complain(c, in->op, "%s has %lld partitions of %lld elements, which do not fit %s", scale_name,
                  (long long)rows, (long long)nisa_free_elements(scale), name);
  if (c->target != TARGET_TRN3)
    nisa_complain(c, in->op, "packed elements with scales are of trn3");
}

void nisa_check_matmul_mx(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0];
  const struct nisa_machine *m = c->machine;
  check_packed(c, in, "stationary", "stationary_scale", nisa_text_attr(in->op, "stationary_format"));
  check_packed(c, in, "moving", "moving_scale", nisa_text_attr(in->op, "moving_format"));
  nisa_check_product(c, in);
  if (!mlirTypeIsAF32(nisa_element(dst)) && !(m->bf16_psum && mlirTypeIsABF16(nisa_element(dst))))
    nisa_complain(c, in->op, "a product is f32%s", m->bf16_psum ? " or bf16" : "");
  nisa_check_position(c, in, 5, nisa_partitions(&in->operand[1]));
}

void nisa_check_quantize(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = nisa_operand(in, "src");
  check_packed(c, in, "dst", "dst_scale", nisa_text_attr(in->op, "format"));
  if (!mlirTypeIsABF16(nisa_element(src)) && !mlirTypeIsAF16(nisa_element(src)))
    nisa_complain(c, in->op, "src must be bf16 or f16");
  if (nisa_partitions(src) != nisa_partitions(dst) || nisa_free_elements(src) != 4 * nisa_free_elements(dst))
    nisa_complain(c, in->op, "src must have dst's partitions, and four elements for each of dst's");
}
