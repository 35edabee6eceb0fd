/* rules: what the hardware demands of the operands of a call.  rules_basic.c checks the commonest calls, rules.c the others. */
#ifndef NKI_RULES_H
#define NKI_RULES_H

#include "nki/nki.h"

/* Each returns false with *err.  name: of the operand v.
 *
 * v has as many partitions as dst. */
bool nki_same_partitions(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err);
/* v corresponds to dst element by element. */
bool nki_same_shape(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err);
/* v has one element for each partition of dst. */
bool nki_is_column(const char *name, const struct nki_view *v, const struct nki_view *dst, struct nki_error *err);
bool nki_not_both_in_psum(const char *x, const struct nki_view *v, const char *y, const struct nki_view *w,
                          struct nki_error *err);
/* The `pattern` of the call has as many elements as dst. */
bool nki_check_pattern(const struct nki_call *c, struct nki_error *err);

/* The engine of an nc_transpose: the one that it names, or the one that can write to dst's memory. */
enum nisa_engine nki_transpose_engine(const struct nki_call *c);

bool nki_check_number(const char *name, const struct nki_value *v, const struct nki_view *dst, struct nki_error *err);
/* The operator computes with numbers, and the Vector engine has it. */
bool nki_check_arith(const struct nki_program *p, const char *name, const struct nki_value *v, struct nki_error *err);
/* The machine has it: operators of trn3. */
bool nki_machine_has(const struct nki_program *p, const struct nki_op *op, struct nki_error *err);
/* The call is not of a later machine than `first`. */
bool nki_is_from(const struct nki_program *p, enum target first, const struct nki_call *c, struct nki_error *err);
/* What the call does with the accumulator registers: reduce_res is a column, and the registers hold something. */
bool nki_check_registers(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);

/* rules_basic.c: all rules of the call c but those of its engine and its scopes.  The bias of an activation has any type but tfloat32 (0.2
 * took float32, float16 and bfloat16 only). */
bool nki_check_call(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);
/* rules_dma.c: the operands dst_index and src_index of a transfer. */
bool nki_check_rows(const struct nki_call *c, struct nki_error *err);
bool nki_rules_dma(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);
/* rules_matmul.c: products.  tile_position and tile_size may choose tiles of rows and of columns (the text of nc_matmul has both; its
 * list of parameters demands all columns). */
bool nki_rules_matmul(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);
/* Products of packed elements, and how they are made. */
bool nki_rules_packed(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);
/* rules_gather.c: shuffles, gathers, random numbers, several cores. */
bool nki_rules_gather(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);
/* rules_registers.c: registers, and loops and branches on the device.  A register that is written gets its type. */
bool nki_rules_registers(const struct nki_call *c, struct nki_error *err);
/* regions.c: the call uses no tensor of a loop or branch on the device that has ended, and writes in one that is open to no
 * register that it may not write. */
bool nki_check_scopes(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);
/* record.c: adds an item, with its round and number. */
void nki_item_add(struct nki_program *p, struct nki_item x);
/* The rules of the calls that rules_basic.c does not know. */
bool nki_rules_more(const struct nki_program *p, const struct nki_call *c, struct nki_error *err);

#endif
