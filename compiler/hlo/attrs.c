/* attrs: the table of attributes, made from attrs.def, and the functions that walk it.
 *
 * A row leads to an attribute's value: in struct hlo_attrs, or in the part that one of its pointers leads to.  The rows of
 * an opcode name each member once.  A row of HLO_DIMS names none: its kind reads and prints the whole part.
 */
#include "hlo/attrs.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"

typedef unsigned __int128 op_set;
_Static_assert(HLO_OP_COUNT <= 128, "an op_set has a bit per opcode");
#define OP(op) ((op_set)1 << HLO_##op)

static bool has_op(op_set s, enum hlo_op op) {
  return s >> op & 1;
}

/* ---- the table ----------------------------------------------------------------------------------------------------- */

enum part {
  PART_NONE,
#define HLO_PART(type, member, op, message, place) PART_##member,
#include "hlo/attrs.def"
  PART_COUNT
};

static const struct part_info {
  enum hlo_op op;
  size_t size, offset; /* of the struct; of the pointer to it in struct hlo_attrs */
  const ProtobufCMessageDescriptor *message;
  size_t place; /* of the pointer to the message in HloInstructionProto */
} parts[PART_COUNT] = {
#define HLO_PART(type, member, op, msg, field) \
  [PART_##member] = {HLO_##op, sizeof(type), offsetof(struct hlo_attrs, member), &xla__##field##__descriptor, \
                     offsetof(Xla__HloInstructionProto, field)},
#include "hlo/attrs.def"
};

static const struct hlo_attr_row {
  const char *text; /* "": the text has it elsewhere */
  const struct hlo_attr_kind *kind;
  op_set ops;
  enum part part;
  enum when { HLO_NEEDED, HLO_ALWAYS, HLO_GIVEN } when;
  uint16_t offset, size; /* of the member; size 0: the whole part, which other rows name member by member */
  uint16_t place, n;     /* of the field and of its count in the message */
  bool is_in_part;       /* the message is the part's, not the instruction's */
} rows[] = {
#define ONE(f) offsetof(Xla__HloInstructionProto, f), 0, false
#define MANY(f) offsetof(Xla__HloInstructionProto, f), offsetof(Xla__HloInstructionProto, n_##f), false
#define ONE_IN(message, f) offsetof(Xla__##message, f), 0, true
#define MANY_IN(message, f) offsetof(Xla__##message, f), offsetof(Xla__##message, n_##f), true
#define MEMBER(type, member) offsetof(type, member), sizeof(((type *)0)->member)
#define HLO_ATTR(type, member, kind, ops, text, when, place) \
  {text, &hlo_kind_##kind, ops, PART_NONE, when, MEMBER(struct hlo_attrs, member), place},
#define HLO_ATTR_ALSO(member, kind, ops, text, when, place) \
  {text, &hlo_kind_##kind, ops, PART_NONE, when, MEMBER(struct hlo_attrs, member), place},
#define HLO_DIM(part, member, kind, text, when, place) \
  {text, &hlo_kind_##kind, 0, PART_##part, when, MEMBER(__typeof__(*((struct hlo_attrs *)0)->part), member), place},
#define HLO_DIMS(part, kind, text, when) {text, &hlo_kind_##kind, 0, PART_##part, when, 0, 0, 0, 0, false},
#include "hlo/attrs.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool row_has(const struct hlo_attr_row *x, enum hlo_op op) {
  return x->part ? parts[x->part].op == op : has_op(x->ops, op);
}

/* The rows of an opcode in order, NULL at the end.  Found once per module: most opcodes have none or a few of many. */
static const struct hlo_attr_row *const *rows_of(const struct hlo_module *m, enum hlo_op op) {
  if (m->attr_rows[op])
    return m->attr_rows[op];
  const struct hlo_attr_row **list;
  int n = 0;
  for (const struct hlo_attr_row *x = rows; x < rows + N_ROWS; x++)
    n += row_has(x, op);
  m->attr_rows[op] = list = arena_new_array(m->arena, const struct hlo_attr_row *, (size_t)n + 1);
  for (const struct hlo_attr_row *x = rows; x < rows + N_ROWS; x++)
    if (row_has(x, op))
      *list++ = x;
  return m->attr_rows[op];
}

#define for_each_row(x, m, op) \
  for (const struct hlo_attr_row *const *x##_at = rows_of(m, op), *x; (x = *x##_at); x##_at++)

/* The part that a row belongs to, or the attributes themselves; NULL if the instruction does not have the part. */
static void *base_of(const struct hlo_attrs *at, enum part part) {
  void *base = (void *)(uintptr_t)at;
  if (part)
    memcpy(&base, (const char *)at + parts[part].offset, sizeof base);
  return base;
}

static void *value_of(const struct hlo_attrs *at, const struct hlo_attr_row *x) {
  char *base = base_of(at, x->part);
  return base ? base + x->offset : NULL;
}

/* Gives `at` parts of its own for the opcode: copies of those in `from`, or zero where from is NULL. */
static void own_parts(struct arena *a, enum hlo_op op, const struct hlo_attrs *from, struct hlo_attrs *at) {
  for (int k = PART_NONE + 1; k < PART_COUNT; k++) {
    if (parts[k].op != op)
      continue;
    const void *part = from ? base_of(from, (enum part)k) : NULL;
    void *own = part ? arena_dup(a, part, parts[k].size) : from ? NULL : arena_alloc(a, parts[k].size);
    memcpy((char *)at + parts[k].offset, &own, sizeof own);
  }
}

/* What an instruction of the opcode has before anything is read. */
static void start(struct hlo_module *m, enum hlo_op op, struct hlo_attrs *at) {
  memset(at, 0, sizeof *at); /* hlo_set_attrs compares the bytes between members, too */
  own_parts(m->arena, op, NULL, at);
  for_each_row(x, m, op) {
    if (x->kind->start)
      x->kind->start(value_of(at, x));
  }
}

/* ---- copies, equality, hashes -------------------------------------------------------------------------------------- */

struct hlo_attrs hlo_attrs_dup(struct hlo_module *m, const struct hlo_instr *draft) {
  struct hlo_attrs out;
  memset(&out, 0, sizeof out);
  own_parts(m->arena, draft->op, draft->attrs, &out);
  for_each_row(x, m, draft->op) {
    void *to = value_of(&out, x);
    if (!to || !x->size)
      continue;
    memcpy(to, value_of(draft->attrs, x), x->size);
    if (x->kind->dup)
      x->kind->dup(m->arena, draft, to);
  }
  return out;
}

bool hlo_attrs_equal(const struct hlo_instr *x, const struct hlo_instr *y) {
  assert(x->op == y->op);
  if (x->attrs == y->attrs)
    return true;
  for_each_row(row, x->parent->module, x->op) {
    const void *p = value_of(x->attrs, row), *q = value_of(y->attrs, row);
    if (p == q || !row->size)
      continue;
    if (!p || !q || !(row->kind->equal ? row->kind->equal(x, p, q) : !memcmp(p, q, row->size)))
      return false;
  }
  return true;
}

uint64_t hlo_attrs_hash(const struct hlo_instr *i, uint64_t h) {
  for_each_row(x, i->parent->module, i->op) {
    const void *v = x->kind->hash ? value_of(i->attrs, x) : NULL;
    if (v)
      h = x->kind->hash(i, v, h);
  }
  return h;
}

/* ---- called computations ------------------------------------------------------------------------------------------- */

enum { HLO_ALL_PLACES = -1 };

static const struct called_row {
  const char *text;
  op_set ops;
  int place;
} called_rows[] = {
#define HLO_CALLED(text, ops, place) {text, ops, place},
#include "hlo/attrs.def"
};
enum { N_CALLED_ROWS = sizeof called_rows / sizeof *called_rows };

/* The name under which the opcode's text has called computation `place`, or all of them; NULL: it has no such name. */
static const char *called_name(enum hlo_op op, int place) {
  for (int k = 0; k < N_CALLED_ROWS; k++)
    if (called_rows[k].place == place && has_op(called_rows[k].ops, op))
      return called_rows[k].text;
  return NULL;
}

static bool is_called_name(enum hlo_op op, struct hlo_span name) {
  for (int k = 0; k < N_CALLED_ROWS; k++)
    if (has_op(called_rows[k].ops, op) && hlo_span_is(name, called_rows[k].text))
      return true;
  return false;
}

bool hlo_op_calls(enum hlo_op op) {
  static const op_set ops = 0
#define HLO_CALLED(text, ops, place) | ops
#include "hlo/attrs.def"
      ;
  return has_op(ops, op);
}

/* A conditional on a truth value writes names for its branches, as XLA does; on a number, a list. */
static void print_called(struct buf *out, const struct hlo_instr *i) {
  if (!i->n_called)
    return;
  const bool is_list = i->op == HLO_CONDITIONAL ? i->operands[0]->shape.dtype != DT_BOOL : i->n_called > 1;
  const char *list = is_list ? called_name(i->op, HLO_ALL_PLACES) : NULL;
  if (list)
    buf_printf(out, ", %s={", list);
  for (int k = 0; k < i->n_called; k++) {
    if (list)
      buf_printf(out, "%s%%%s", k ? ", " : "", i->called[k]->name);
    else
      buf_printf(out, ", %s=%%%s", called_name(i->op, k), i->called[k]->name);
  }
  if (list)
    buf_putc(out, '}');
}

static bool read_name(struct hlo_cursor *c, const struct hlo_text_attr *x, struct hlo_span *out) {
  struct hlo_cursor in = hlo_cur_within(c, x->value);
  const bool ok = hlo_cur_name(&in, out);
  c->is_bad |= in.is_bad;
  return ok;
}

static bool read_names(struct hlo_cursor *c, const struct hlo_text_attr *x, int *n, struct hlo_span **out) {
  struct hlo_cursor in = hlo_cur_within(c, x->value);
  struct {
    struct hlo_span *v;
    int n, cap;
  } names = {0};
  bool ok = hlo_cur_need(&in, '{');
  while (ok && !hlo_cur_take(&in, '}')) {
    ok = hlo_cur_name(&in, array_push(c->tmp, &names, (struct hlo_span){0}));
    hlo_cur_take(&in, ',');
  }
  c->is_bad |= in.is_bad;
  *n = names.n;
  *out = names.v;
  return ok;
}

bool hlo_attrs_read_called(struct hlo_cursor *c, const struct hlo_text_instr *t, int *n, struct hlo_span **out) {
  const enum hlo_op op = (enum hlo_op)t->op;
  *n = 0;
  *out = NULL;
  if (!hlo_op_calls(op))
    return true;
  const char *name = called_name(op, HLO_ALL_PLACES);
  const struct hlo_text_attr *list = name ? hlo_text_attr(t, name) : NULL;
  if (list)
    return read_names(c, list, n, out);
  *out = arena_new_array(c->tmp, struct hlo_span, N_CALLED_ROWS);
  while ((name = called_name(op, *n))) {
    const struct hlo_text_attr *x = hlo_text_attr(t, name);
    if (!x && !called_name(op, 1)) /* the shape rules check a single one */
      return true;
    if (!x)
      return hlo_cur_fail(c, t->whole, DG_HLO_INVALID, "%s needs the attribute %s", hlo_op_name(op), name);
    if (!read_name(c, x, &(*out)[(*n)++]))
      return false;
  }
  return true;
}

/* ---- text ---------------------------------------------------------------------------------------------------------- */

void hlo_put_string(struct buf *out, const char *s) {
  buf_putc(out, '"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '\n')
      buf_puts(out, "\\n");
    else if (c == '\r')
      buf_puts(out, "\\r");
    else if (c == '\t')
      buf_puts(out, "\\t");
    else if (c == '"' || c == '\'' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c < 0x20 || c >= 0x7f)
      buf_printf(out, "\\%03o", c);
    else
      buf_putc(out, (char)c);
  }
  buf_putc(out, '"');
}

void hlo_put_list(struct buf *out, const int64_t *v, int n) {
  for (int k = 0; k < n; k++) {
    if (k)
      buf_putc(out, ',');
    buf_put_int(out, v[k]);
  }
}

void hlo_put_ints(struct buf *out, struct hlo_ints v) {
  buf_putc(out, '{');
  hlo_put_list(out, v.v, v.n);
  buf_putc(out, '}');
}

void hlo_attrs_print(struct buf *out, const struct hlo_instr *i) {
  for_each_row(x, i->parent->module, i->op) {
    const void *v = value_of(i->attrs, x);
    assert(v);
    if (!*x->text || (x->when == HLO_GIVEN && x->kind->is_none(v)))
      continue;
    buf_puts(out, ", ");
    buf_puts(out, x->text);
    buf_putc(out, '=');
    x->kind->put(out, i, v);
  }
  print_called(out, i);
}

static bool is_ignored(struct hlo_span name) {
  static const char *const ignored[] = {
#define HLO_IGNORED(text) text,
#include "hlo/attrs.def"
  };
  for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++)
    if (hlo_span_is(name, ignored[k]))
      return true;
  return false;
}

static const struct hlo_attr_row *row_named(const struct hlo_instr *i, struct hlo_span name) {
  for_each_row(x, i->parent->module, i->op) {
    if (hlo_span_is(name, x->text))
      return x;
  }
  return NULL;
}

static bool read_value(struct hlo_cursor *c, const struct hlo_text_attr *t, const struct hlo_attr_row *x,
                       const struct hlo_instr *i, struct hlo_attrs *at) {
  struct hlo_cursor in = hlo_cur_within(c, t->value);
  bool ok = x->kind->read(&in, i, value_of(at, x));
  if (ok) {
    hlo_cur_space(&in);
    ok = in.at == in.end ||
         hlo_cur_fail(&in, t->value, DG_HLO_INVALID, "the value of %s does not end where it should", x->text);
  }
  c->is_bad |= in.is_bad;
  return ok && !in.is_bad;
}

bool hlo_attrs_read(struct hlo_cursor *c, const struct hlo_text_instr *t, struct hlo_instr *i) {
  struct hlo_attrs at;
  start(i->parent->module, i->op, &at);
  at.literal = t->literal;
  for (const struct hlo_text_attr *x = t->attrs; x; x = x->next) {
    const struct hlo_attr_row *row = row_named(i, x->key);
    if (row && !read_value(c, x, row, i, &at))
      return false;
    if (!row && !is_called_name(i->op, x->key) && !is_ignored(x->key))
      return hlo_cur_fail(c, x->key, DG_HLO_INVALID, "%s with the attribute %.*s is not supported", hlo_op_name(i->op),
                          (int)x->key.len, x->key.at);
  }
  for_each_row(x, i->parent->module, i->op) {
    if (x->when == HLO_NEEDED && !hlo_text_attr(t, x->text))
      return hlo_cur_fail(c, t->whole, DG_HLO_INVALID, "%s needs the attribute %s", hlo_op_name(i->op), x->text);
  }
  hlo_set_attrs(i, &at);
  return true;
}

/* ---- proto --------------------------------------------------------------------------------------------------------- */

/* Where p keeps the attribute; its field is NULL if p lacks the message of the part. */
static struct hlo_proto_place place_of(Xla__HloInstructionProto *p, const struct hlo_attr_row *x) {
  char *message = (char *)p;
  if (x->is_in_part)
    memcpy(&message, (char *)p + parts[x->part].place, sizeof message);
  return message ? (struct hlo_proto_place){p, message + x->place, (size_t *)(void *)(message + x->n)}
                 : (struct hlo_proto_place){p, NULL, NULL};
}

void hlo_attrs_to_proto(struct arena *a, const struct hlo_instr *i, Xla__HloInstructionProto *p) {
  for (int k = PART_NONE + 1; k < PART_COUNT; k++) {
    if (parts[k].op != i->op)
      continue;
    void *message = arena_alloc(a, parts[k].message->sizeof_message);
    protobuf_c_message_init(parts[k].message, message);
    memcpy((char *)p + parts[k].place, &message, sizeof message);
  }
  for_each_row(x, i->parent->module, i->op) {
    const void *v = value_of(i->attrs, x);
    assert(v);
    if (x->kind->to_proto)
      x->kind->to_proto(a, i, v, place_of(p, x));
  }
}

bool hlo_attrs_from_proto(struct hlo_proto_reader *r, Xla__HloInstructionProto *p, struct hlo_instr *i) {
  struct hlo_attrs at;
  start(i->parent->module, i->op, &at);
  for_each_row(x, i->parent->module, i->op) {
    const struct hlo_proto_place from = place_of(p, x);
    if (!from.field)
      return hlo_proto_refuse(r, DG_HLO_INVALID, "there are no dimension numbers");
    if (x->kind->from_proto && !x->kind->from_proto(r, i, from, value_of(&at, x)))
      return false;
  }
  hlo_set_attrs(i, &at);
  return true;
}
