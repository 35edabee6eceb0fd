/* attr_plain: attributes that are one number, one word, one text, or a list of numbers.
 *
 * Each kind stands as a whole: how its value is copied and compared, its text both ways, its proto field both ways.
 */
#include <assert.h>
#include <string.h>

#include "base/index.h"
#include "hlo/attrs.h"

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static bool number_is_none(const void *v) {
  return *(const int64_t *)v == 0;
}

static uint64_t number_hash(const struct hlo_instr *i, const void *v, uint64_t h) {
  (void)i;
  return hash_mix(h, *(const uint64_t *)v);
}

static void number_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  (void)i;
  buf_put_int(out, *(const int64_t *)v);
}

static bool number_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  (void)i;
  return hlo_cur_int(c, v);
}

static void number_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  (void)a, (void)i;
  *(int64_t *)to.field = *(const int64_t *)v;
}

static bool number_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                              void *v) {
  (void)r, (void)i;
  *(int64_t *)v = *(const int64_t *)from.field;
  return true;
}

const struct hlo_attr_kind hlo_kind_number = {.is_none = number_is_none,
                                              .hash = number_hash,
                                              .put = number_put,
                                              .read = number_read,
                                              .to_proto = number_to_proto,
                                              .from_proto = number_from_proto};

/* ---- counts: 1 where the text says nothing, and 1 for a proto's 0 -------------------------------------------------- */

static void count_start(void *v) {
  *(int64_t *)v = 1;
}

static bool count_is_none(const void *v) {
  return *(const int64_t *)v == 1;
}

static bool count_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                             void *v) {
  (void)r, (void)i;
  const int64_t n = *(const int64_t *)from.field;
  *(int64_t *)v = n ? n : 1;
  return true;
}

const struct hlo_attr_kind hlo_kind_count = {.start = count_start,
                                             .is_none = count_is_none,
                                             .hash = number_hash,
                                             .put = number_put,
                                             .read = number_read,
                                             .to_proto = number_to_proto,
                                             .from_proto = count_from_proto};

/* ---- flags ------------------------------------------------------------------------------------------------------- */

static bool flag_is_none(const void *v) {
  return !*(const bool *)v;
}

static void flag_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  (void)i;
  buf_puts(out, *(const bool *)v ? "true" : "false");
}

static bool flag_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  (void)i;
  *(bool *)v = hlo_cur_take_word(c, "true");
  return *(bool *)v || hlo_cur_take_word(c, "false") || hlo_cur_refuse_here(c, "true or false");
}

static void flag_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  (void)a, (void)i;
  *(protobuf_c_boolean *)to.field = *(const bool *)v;
}

static bool flag_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                            void *v) {
  (void)r, (void)i;
  *(bool *)v = *(const protobuf_c_boolean *)from.field;
  return true;
}

const struct hlo_attr_kind hlo_kind_flag = {.is_none = flag_is_none,
                                            .put = flag_put,
                                            .read = flag_read,
                                            .to_proto = flag_to_proto,
                                            .from_proto = flag_from_proto};

/* ---- flags that are written as their opposite ---------------------------------------------------------------------- */

static void not_flag_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  flag_put(out, i, &(bool){!*(const bool *)v});
}

static bool not_flag_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  const bool ok = flag_read(c, i, v);
  *(bool *)v = !*(bool *)v;
  return ok;
}

static void not_flag_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  flag_to_proto(a, i, &(bool){!*(const bool *)v}, to);
}

static bool not_flag_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                                void *v) {
  const bool ok = flag_from_proto(r, i, from, v);
  *(bool *)v = !*(bool *)v;
  return ok;
}

const struct hlo_attr_kind hlo_kind_not_flag = {
    .put = not_flag_put, .read = not_flag_read, .to_proto = not_flag_to_proto, .from_proto = not_flag_from_proto};

/* ---- lists of numbers -------------------------------------------------------------------------------------------- */

static bool ints_is_none(const void *v) {
  return !((const struct hlo_ints *)v)->n;
}

static void ints_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  struct hlo_ints *x = v;
  (void)i;
  *x = hlo_ints_dup(a, x->n, x->v);
}

static bool ints_equal(const struct hlo_instr *i, const void *x, const void *y) {
  (void)i;
  return hlo_ints_equal(*(const struct hlo_ints *)x, *(const struct hlo_ints *)y);
}

static uint64_t ints_hash(const struct hlo_instr *i, const void *v, uint64_t h) {
  const struct hlo_ints *x = v;
  (void)i;
  for (int k = 0; k < x->n; k++)
    h = hash_mix(h, (uint64_t)x->v[k]);
  return hash_mix(h, (uint64_t)x->n);
}

static void ints_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  (void)i;
  hlo_put_ints(out, *(const struct hlo_ints *)v);
}

static bool ints_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  (void)i;
  return hlo_cur_ints(c, v);
}

static void ints_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_ints *x = v;
  (void)a, (void)i;
  *to.n = (size_t)x->n;
  *(int64_t **)to.field = hlo_proto_borrow(x->v);
}

static bool ints_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                            void *v) {
  (void)i;
  *(struct hlo_ints *)v = hlo_ints_dup(r->a, (int)*from.n, *(int64_t **)from.field);
  return true;
}

const struct hlo_attr_kind hlo_kind_ints = {.is_none = ints_is_none,
                                            .dup = ints_dup,
                                            .equal = ints_equal,
                                            .hash = ints_hash,
                                            .put = ints_put,
                                            .read = ints_read,
                                            .to_proto = ints_to_proto,
                                            .from_proto = ints_from_proto};

/* A list that always has one number, which the text writes without braces. */
static void one_int_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_ints *x = v;
  (void)i;
  assert(x->n == 1);
  buf_put_int(out, x->v[0]);
}

static bool one_int_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  int64_t n;
  (void)i;
  if (!hlo_cur_int(c, &n))
    return false;
  *(struct hlo_ints *)v = hlo_ints_dup(c->a, 1, &n);
  return true;
}

const struct hlo_attr_kind hlo_kind_one_int = {.is_none = ints_is_none,
                                               .dup = ints_dup,
                                               .equal = ints_equal,
                                               .hash = ints_hash,
                                               .put = one_int_put,
                                               .read = one_int_read,
                                               .to_proto = ints_to_proto,
                                               .from_proto = ints_from_proto};

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static bool text_is_none(const void *v) {
  const char *s = *(const char *const *)v;
  return !s || !*s;
}

static void text_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  const char **s = v;
  (void)i;
  if (*s)
    *s = arena_strdup(a, *s);
}

static bool text_equal(const struct hlo_instr *i, const void *x, const void *y) {
  const char *s = *(const char *const *)x, *t = *(const char *const *)y;
  (void)i;
  return !strcmp(s ? s : "", t ? t : "");
}

static void text_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const char *s = *(const char *const *)v;
  (void)i;
  hlo_put_string(out, s ? s : "");
}

static bool text_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  (void)i;
  return hlo_cur_string(c, v);
}

static void text_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  (void)a, (void)i;
  if (!text_is_none(v))
    *(char **)to.field = hlo_proto_borrow(*(const char *const *)v);
}

static bool text_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                            void *v) {
  const char *s = *(char **)from.field;
  (void)i;
  *(const char **)v = arena_strdup(r->a, s ? s : "");
  return true;
}

const struct hlo_attr_kind hlo_kind_text = {.is_none = text_is_none,
                                            .dup = text_dup,
                                            .equal = text_equal,
                                            .put = text_put,
                                            .read = text_read,
                                            .to_proto = text_to_proto,
                                            .from_proto = text_from_proto};

/* ---- backend_config: bytes in the proto; in the text in quotes, or a dictionary {key = value, …} ---------------------- */

static bool config_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  (void)i;
  if (hlo_cur_peek(c, '"'))
    return hlo_cur_string(c, v);
  hlo_cur_space(c);
  *(const char **)v = arena_strndup(c->a, c->at, (size_t)(c->end - c->at));
  c->at = c->end;
  return true;
}

static void config_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const char *s = *(const char *const *)v;
  (void)a, (void)i;
  if (s)
    *(ProtobufCBinaryData *)to.field = (ProtobufCBinaryData){strlen(s), hlo_proto_borrow(s)};
}

static bool config_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                              void *v) {
  const ProtobufCBinaryData *bytes = from.field;
  (void)i;
  *(const char **)v = arena_strndup(r->a, bytes->data ? (const char *)bytes->data : "", bytes->len);
  return true;
}

const struct hlo_attr_kind hlo_kind_config = {.is_none = text_is_none,
                                              .dup = text_dup,
                                              .equal = text_equal,
                                              .put = text_put,
                                              .read = config_read,
                                              .to_proto = config_to_proto,
                                              .from_proto = config_from_proto};

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

/* The direction of this name; false if there is none. */
static bool direction_from_name(struct hlo_span name, enum hlo_direction *out) {
  for (int d = HLO_EQ; d <= HLO_LT; d++)
    if (hlo_span_is(name, hlo_direction_name((enum hlo_direction)d)))
      return *out = (enum hlo_direction)d, true;
  return false;
}

static uint64_t direction_hash(const struct hlo_instr *i, const void *v, uint64_t h) {
  (void)i;
  return hash_mix(h, (uint64_t)*(const enum hlo_direction *)v);
}

static void direction_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  (void)i;
  buf_puts(out, hlo_direction_name(*(const enum hlo_direction *)v));
}

static bool direction_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct hlo_span word;
  (void)i;
  if (!hlo_cur_word(c, &word, "a direction"))
    return false;
  return direction_from_name(word, v) ||
         hlo_cur_fail(c, word, DG_HLO_INVALID, "a comparison's direction is EQ, NE, GE, GT, LE or LT");
}

static void direction_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  (void)a, (void)i;
  *(char **)to.field = hlo_proto_borrow(hlo_direction_name(*(const enum hlo_direction *)v));
}

static bool direction_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                                 void *v) {
  const char *s = *(char **)from.field;
  (void)i;
  return (s && direction_from_name((struct hlo_span){s, strlen(s)}, v)) ||
         hlo_proto_refuse(r, DG_HLO_INVALID, "the direction is not EQ, NE, GE, GT, LE or LT");
}

const struct hlo_attr_kind hlo_kind_direction = {.hash = direction_hash,
                                                 .put = direction_put,
                                                 .read = direction_read,
                                                 .to_proto = direction_to_proto,
                                                 .from_proto = direction_from_proto};

/* The type of a comparison is FLOAT, SIGNED, UNSIGNED, as the operands say, or TOTALORDER.  Integers have one order. */
#define TOTAL_ORDER "TOTALORDER"

static bool is_total(const struct hlo_instr *i, struct hlo_span type) {
  return hlo_span_is(type, TOTAL_ORDER) && i->n_operands && dtype_is_float(i->operands[0]->shape.dtype);
}

static void total_order_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  (void)i, (void)v;
  buf_puts(out, TOTAL_ORDER);
}

static bool total_order_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct hlo_span word;
  if (!hlo_cur_word(c, &word, "a type"))
    return false;
  *(bool *)v = is_total(i, word);
  return true;
}

static void total_order_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  (void)a, (void)i;
  if (*(const bool *)v)
    *(char **)to.field = hlo_proto_borrow(TOTAL_ORDER);
}

static bool total_order_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                                   void *v) {
  const char *s = *(char **)from.field;
  (void)r;
  *(bool *)v = s && is_total(i, (struct hlo_span){s, strlen(s)});
  return true;
}

const struct hlo_attr_kind hlo_kind_total_order = {.is_none = flag_is_none,
                                                   .put = total_order_put,
                                                   .read = total_order_read,
                                                   .to_proto = total_order_to_proto,
                                                   .from_proto = total_order_from_proto};

/* ---- frontend_attributes={has_collectives="1"} --------------------------------------------------------------------- */

#define HAS_COLLECTIVES "has_collectives"

/* It is written together with the frontend attributes of the module's boundary (export.c), so never on its own. */
static bool collectives_flag_is_none(const void *v) {
  (void)v;
  return true;
}

/* The other frontend attributes are ignored, and so is their syntax. */
static bool collectives_flag_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  static const char wanted[] = HAS_COLLECTIVES "=\"1\"";
  const char *p = c->at;
  (void)i;
  *(bool *)v = false;
  while ((p = memmem(p, (size_t)(c->end - p), wanted, sizeof wanted - 1))) {
    *(bool *)v |= p > c->at && memchr("{, ", p[-1], 3);
    p++;
  }
  c->at = c->end;
  return true;
}

static bool collectives_flag_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i,
                                        struct hlo_proto_place from, void *v) {
  const Xla__FrontendAttributes *f = *(Xla__FrontendAttributes **)from.field;
  (void)r, (void)i;
  for (size_t k = 0; f && k < f->n_map; k++) {
    const Xla__FrontendAttributes__MapEntry *x = f->map[k];
    *(bool *)v |= x->key && x->value && !strcmp(x->key, HAS_COLLECTIVES) && !strcmp(x->value, "1");
  }
  return true;
}

const struct hlo_attr_kind hlo_kind_collectives_flag = {
    .is_none = collectives_flag_is_none, .read = collectives_flag_read, .from_proto = collectives_flag_from_proto};

/* ---- literals: the text has them between the parentheses (print_literal.c, read_literal in read_cursor.c) ----------- */

static bool literal_is_none(const void *v) {
  return !*(const struct hlo_literal *const *)v;
}

static bool literal_equal(const struct hlo_instr *i, const void *vx, const void *vy) {
  const struct hlo_literal *x = *(const struct hlo_literal *const *)vx, *y = *(const struct hlo_literal *const *)vy;
  (void)i;
  return x == y ||
         (x && y && x->size == y->size && hlo_shape_equal(&x->shape, &y->shape) && !memcmp(x->data, y->data, x->size));
}

static uint64_t literal_hash(const struct hlo_instr *i, const void *v, uint64_t h) {
  const struct hlo_literal *l = *(const struct hlo_literal *const *)v;
  (void)i;
  return l ? hash_mix(h, hash_bytes(l->data, l->size)) : h;
}

static void literal_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_literal *l = *(const struct hlo_literal *const *)v;
  (void)i;
  if (l)
    *(Xla__LiteralProto **)to.field = hlo_proto_put_literal(a, l);
}

static bool literal_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                               void *v) {
  (void)i;
  return hlo_proto_get_literal(r, *(Xla__LiteralProto **)from.field, v);
}

const struct hlo_attr_kind hlo_kind_literal = {.is_none = literal_is_none,
                                               .equal = literal_equal,
                                               .hash = literal_hash,
                                               .to_proto = literal_to_proto,
                                               .from_proto = literal_from_proto};
