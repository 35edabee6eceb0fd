/* print_op: see the header.  The file decides before it writes anything whether the readable form can express an
 * operation. */
#include "nisa/print_op.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "ir/query.h"

/* ---- words ------------------------------------------------------------------------------------------------------ */

size_t nisa_text_keyword_attr(const char *s, const char *end) {
  static const char *const heads[] = {"#nisa.mem<", "#nisa.target<"};
  for (int k = 0; k < 2; k++) {
    size_t n = strlen(heads[k]);
    if ((size_t)(end - s) >= n && !memcmp(s, heads[k], n))
      return n;
  }
  return 0;
}

bool nisa_text_is_word(const char *s, size_t len) {
  for (size_t k = 0; k < len; k++)
    if (!isalpha((unsigned char)s[k]) && s[k] != '_' && (k == 0 || !isdigit((unsigned char)s[k])))
      return false;
  return len > 0;
}

static bool is(MlirStringRef s, const char *text) {
  return mlirStringRefEqual(s, ir_str(text));
}

/* ---- index expressions ------------------------------------------------------------------------------------------ */

static MlirAffineExpr plus(MlirAffineExpr sum, MlirAffineExpr x, int64_t factor) {
  MlirAffineExpr c = mlirAffineConstantExprGet(mlirAffineExprGetContext(x), factor);
  MlirAffineExpr term = mlirAffineMulExprGet(x, c);
  return mlirAffineExprIsNull(sum) ? term : mlirAffineAddExprGet(sum, term);
}

/* Returns the expression that the parser makes of a result: tile coordinates, then indices in the order in which
 * they are written, then the constant.  *symbol is the number of the next index.  Null if an index would have to be
 * left out. */
static MlirAffineExpr reread(MlirContext ctx, const struct nisa_access *x, const struct nisa_index *e, int *symbol) {
  MlirAffineExpr sum = {NULL};
  for (int d = 0; d < x->n_dims; d++)
    if (e->dim[d])
      sum = plus(sum, mlirAffineDimExprGet(ctx, d), e->dim[d]);
  for (int s = 0; s < x->n_indices; s++)
    if (e->sym[s]) {
      if (s != (*symbol)++)
        return (MlirAffineExpr){NULL};
      sum = plus(sum, mlirAffineSymbolExprGet(ctx, s), e->sym[s]);
    }
  if (mlirAffineExprIsNull(sum))
    return mlirAffineConstantExprGet(ctx, e->constant);
  return e->constant ? mlirAffineAddExprGet(sum, mlirAffineConstantExprGet(ctx, e->constant)) : sum;
}

/* False if a factor or the constant is INT64_MIN, which has no negation. */
static bool has_signs(const struct nisa_access *x, const struct nisa_index *e) {
  for (int d = 0; d < x->n_dims; d++)
    if (e->dim[d] == INT64_MIN)
      return false;
  for (int s = 0; s < x->n_indices; s++)
    if (e->sym[s] == INT64_MIN)
      return false;
  return e->constant != INT64_MIN;
}

/* True if indices in brackets express exactly this map. */
static bool is_plain(const struct nisa_access *x) {
  MlirContext ctx = mlirAffineMapGetContext(x->map);
  int symbol = 0;
  for (int r = 0; r < mlirAffineMapGetNumResults(x->map); r++) {
    struct nisa_index e;
    if (!nisa_access_index(x, r, &e) || !has_signs(x, &e))
      return false;
    MlirAffineExpr again = reread(ctx, x, &e, &symbol);
    if (mlirAffineExprIsNull(again) || !mlirAffineExprEqual(again, mlirAffineMapGetResult(x->map, r)))
      return false;
  }
  return symbol == x->n_indices;
}

/* ---- whether the form suffices ---------------------------------------------------------------------------------- */

/* True if the attribute belongs to an operand that is written as an access. */
static bool is_of_access(const struct nisa_instr *in, MlirStringRef name) {
  const int k = nisa_operand_of_attr(in->def, name);
  return k >= 0 && !nisa_is_absent(&in->operand[k]) && !nisa_is_scalar(&in->operand[k]);
}

static bool is_shown(const struct nisa_instr *in, MlirStringRef name) {
  return !is(name, "operandSegmentSizes") && !is(name, "engine") && !is_of_access(in, name) &&
         !(is(name, "signal") && nisa_signals(in->op));
}

static bool is_operand_name(const struct nisa_instr *in, MlirStringRef name) {
  for (int k = 0; k < in->def->n_operands; k++)
    if (is(name, in->def->operand[k].name))
      return true;
  return false;
}

static bool is_integer_of(MlirAttribute v, unsigned width) {
  if (mlirAttributeIsNull(v) || !mlirAttributeIsAInteger(v))
    return false;
  MlirType t = mlirAttributeGetType(v);
  return mlirTypeIsAInteger(t) && mlirIntegerTypeIsSignless(t) && mlirIntegerTypeGetWidth(t) == width;
}

/* True if the string can be written without quotes and is still read as a string. */
static bool is_bare_string(MlirAttribute v) {
  MlirStringRef s = mlirStringAttrGetValue(v);
  return nisa_text_is_word(s.data, s.length) && !is(s, "true") && !is(s, "false");
}

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static const struct nisa_text *find_text(const struct nisa_texts *known, const void *what) {
  for (struct index_probe p = index_probe(&known->by_what, hash_pointer(what)); index_next(&p);)
    if (known->texts.v[p.entry].what == what)
      return &known->texts.v[p.entry];
  return NULL;
}

static const struct nisa_text *add_text(struct nisa_line *w, const struct nisa_text *made) {
  struct nisa_texts *known = w->texts;
  index_add(&known->by_what, hash_pointer(made->what), known->texts.n);
  return array_push(w->arena, &known->texts, *made);
}

/* The text of an attribute, or of a type if the attribute is null. */
static const struct nisa_text *text_of(struct nisa_line *w, MlirAttribute v, MlirType t) {
  struct nisa_text made = {.what = mlirAttributeIsNull(v) ? t.ptr : v.ptr};
  const struct nisa_text *found = find_text(w->texts, made.what);
  if (found)
    return found;
  struct buf text;
  buf_init(&text, 64 << 20);
  if (mlirAttributeIsNull(v))
    mlirTypePrint(t, append, &text);
  else
    mlirAttributePrint(v, append, &text);
  if (!buf_status(&text))
    made.text = arena_strndup(w->arena, buf_text(&text), made.len = text.len);
  buf_clear(&text);
  return add_text(w, &made);
}

static void put_text(struct nisa_line *w, const struct nisa_text *t) {
  if (t->text)
    buf_append(w->out, t->text, t->len);
}

/* True if the first characters of the value show that it is not a word. */
static bool starts_unlike_a_word(const struct nisa_text *value) {
  const char *s = value->text;
  size_t n = 0;
  if (!value->len)
    return false;
  while (isalnum((unsigned char)s[n]) || s[n] == '_')
    n++;
  return s[0] != '[' && (!nisa_text_is_word(s, n) || s[n] == '<');
}

static bool can_write_value(struct nisa_line *w, MlirAttribute v) {
  if (mlirAttributeIsAUnit(v) || mlirAttributeIsABool(v) || is_integer_of(v, 64) || mlirAttributeIsAString(v) ||
      mlirAttributeIsADenseI64Array(v))
    return true;
  return starts_unlike_a_word(text_of(w, v, (MlirType){NULL}));
}

static bool can_write_attrs(struct nisa_line *w) {
  const struct nisa_instr *in = &w->in;
  for (intptr_t k = 0; k < mlirOperationGetNumAttributes(in->op); k++) {
    MlirNamedAttribute a = mlirOperationGetAttribute(in->op, k);
    MlirStringRef name = mlirIdentifierStr(a.name);
    if (is_shown(in, name) &&
        (!nisa_text_is_word(name.data, name.length) || is_operand_name(in, name) || !can_write_value(w, a.attribute)))
      return false;
    if (name.length > 9 && !memcmp(name.data + name.length - 9, "_par_dims", 9) && is_of_access(in, name) &&
        !is_integer_of(a.attribute, 32))
      return false;
  }
  return true;
}

/* True if op has no attributes but those that the readable form of an allocation shows: alignment, an address, a whole
 * place, and both of copies and stride or none.  The form has no negative numbers. */
static bool can_write_alloc(MlirOperation op) {
  const bool has_alignment = !mlirAttributeIsNull(ir_attr(op, "alignment"));
  const enum mem_space s = nisa_type_space(mlirValueGetType(mlirOperationGetResult(op, 0)));
  struct nisa_place place;
  intptr_t n = 0;

  if (has_alignment &&
      (!is_integer_of(ir_attr(op, "alignment"), 64) || mlirIntegerAttrGetValueInt(ir_attr(op, "alignment")) < 0))
    return false;
  n += has_alignment;
  if (nisa_address_of(op, &place)) {
    if ((place.partition | place.bank | place.offset) < 0)
      return false;
    n++;
  }
  if (nisa_place_of(op, &place)) {
    const bool has_copies = !mlirAttributeIsNull(ir_attr(op, "copies"));
    if (has_copies == mlirAttributeIsNull(ir_attr(op, "stride")) ||
        (place.partition | place.bank | place.offset | place.copies | place.stride) < 0)
      return false;
    n += 1 + mem_is_on_chip(s) + 2 * has_copies;
  }
  return mlirOperationGetNumAttributes(op) == n;
}

/* True if the attribute is a string that can be written without quotes. */
static bool is_name_attr(MlirOperation op, const char *name) {
  MlirAttribute v = ir_attr(op, name);
  return !mlirAttributeIsNull(v) && mlirAttributeIsAString(v) &&
         nisa_text_is_word(mlirStringAttrGetValue(v).data, mlirStringAttrGetValue(v).length);
}

static bool can_write_sync(struct nisa_line *w, MlirOperation op) {
  const intptr_t n = mlirOperationGetNumAttributes(op);
  const char *why;
  switch (w->sync) {
  case NISA_SYNC_WAIT:
    return n == 2 && is_name_attr(op, "semaphore") && nisa_read_wait(op, &w->count, &why);
  case NISA_SYNC_TRIGGER:
    return n == 1 && is_name_attr(op, "queue");
  default:
    return n == 0;
  }
}

bool nisa_can_write(struct nisa_line *w, MlirOperation op) {
  w->sync = nisa_sync_of(op);
  if (w->sync)
    return can_write_sync(w, op);
  if (!nisa_read(op, &w->in, NULL))
    return false;
  if (w->in.def->kind == NISA_ALLOC)
    return can_write_alloc(op);
  if (w->in.def->kind == NISA_RELEASE)
    return mlirOperationGetNumAttributes(op) == 0;
  return w->in.engine != NISA_ENGINE_NONE && mlirOperationGetNumResults(op) <= 1 && can_write_attrs(w);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

static void put_value(struct nisa_line *w, MlirValue v) {
  mlirValuePrintAsOperand(v, w->names, append, w->out);
}

static void put_type(struct nisa_line *w, MlirType t) {
  put_text(w, text_of(w, (MlirAttribute){NULL}, t));
}

static void put_extents(struct nisa_line *w, const int64_t *v, int n) {
  for (int k = 0; k < n; k++) {
    buf_puts(w->out, k ? ", " : "");
    buf_put_int(w->out, v[k]);
  }
}

/* Writes the sign of a term, with the operator that joins it to the n terms before it. */
static void put_sign(struct nisa_line *w, int n, int64_t factor) {
  buf_puts(w->out, n ? factor < 0 ? " - " : " + " : factor < 0 ? "-" : "");
}

static void put_factor(struct nisa_line *w, int64_t factor) {
  const int64_t size = factor < 0 ? -factor : factor;
  if (size != 1) {
    buf_puts(w->out, "*");
    buf_put_int(w->out, size);
  }
}

static void put_index(struct nisa_line *w, const struct nisa_access *x, int r) {
  struct nisa_index e;
  int n = 0;

  if (!nisa_access_index(x, r, &e))
    return;
  for (int s = 0; s < x->n_indices; s++)
    if (e.sym[s]) {
      put_sign(w, n++, e.sym[s]);
      put_value(w, x->indices[s]);
      put_factor(w, e.sym[s]);
    }
  for (int d = 0; d < x->n_dims; d++)
    if (e.dim[d]) {
      put_sign(w, n++, e.dim[d]);
      buf_puts(w->out, "d");
      buf_put_int(w->out, d);
      put_factor(w, e.dim[d]);
    }
  if (e.constant || !n) {
    put_sign(w, n, e.constant);
    buf_put_int(w->out, e.constant < 0 ? -e.constant : e.constant);
  }
}

static void put_map(struct nisa_line *w, const struct nisa_access *x) {
  buf_puts(w->out, " ");
  mlirAttributePrint(mlirAffineMapAttrGet(x->map), append, w->out);
  buf_puts(w->out, "[");
  for (int s = 0; s < x->n_indices; s++) {
    buf_puts(w->out, s ? ", " : "");
    put_value(w, x->indices[s]);
  }
  buf_puts(w->out, "]");
}

static void write_indices(struct nisa_line *w, const struct nisa_access *x) {
  if (!is_plain(x)) {
    put_map(w, x);
    return;
  }
  buf_puts(w->out, "[");
  for (int r = 0; r < mlirAffineMapGetNumResults(x->map); r++) {
    buf_puts(w->out, r ? ", " : "");
    put_index(w, x, r);
  }
  buf_puts(w->out, "]");
}

/* Maps without symbols mean the same everywhere, and programs have few. */
static void put_indices(struct nisa_line *w, const struct nisa_access *x) {
  const struct nisa_text *known = x->n_indices ? NULL : find_text(w->texts, x->map.ptr);
  const size_t at = w->out->len;
  if (known) {
    put_text(w, known);
    return;
  }
  write_indices(w, x);
  if (!x->n_indices && !buf_status(w->out)) {
    const size_t len = w->out->len - at;
    const char *text = arena_strndup(w->arena, w->out->data + at, len);
    (void)add_text(w, &(struct nisa_text){.what = x->map.ptr, .text = text, .len = len});
  }
}

static void put_operand(struct nisa_line *w, const char *name, const struct nisa_access *x) {
  buf_puts(w->out, name);
  if (!nisa_is_scalar(x)) {
    buf_puts(w->out, "<");
    put_extents(w, x->tile, x->par_dims);
    buf_puts(w->out, "| ");
    put_extents(w, x->tile + x->par_dims, x->n_dims - x->par_dims);
    buf_puts(w->out, ">");
  }
  buf_puts(w->out, "=");
  put_type(w, mlirValueGetType(x->base));
  buf_puts(w->out, " ");
  put_value(w, x->base);
  if (nisa_is_scalar(x))
    return;
  if (!mlirTypeIsNull(x->type)) {
    buf_puts(w->out, " as ");
    put_type(w, x->type);
  }
  put_indices(w, x);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

static void put_array(struct nisa_line *w, MlirAttribute v) {
  buf_puts(w->out, "[");
  for (intptr_t k = 0; k < mlirDenseArrayGetNumElements(v); k++)
    buf_printf(w->out, "%s%" PRId64, k ? ", " : "", mlirDenseI64ArrayGetElement(v, k));
  buf_puts(w->out, "]");
}

static void put_attr(struct nisa_line *w, MlirStringRef name, MlirAttribute v) {
  buf_puts(w->out, ", ");
  append(name, w->out);
  if (mlirAttributeIsAUnit(v))
    return;
  buf_puts(w->out, "=");
  if (mlirAttributeIsAString(v) && is_bare_string(v))
    append(mlirStringAttrGetValue(v), w->out);
  else if (is_integer_of(v, 64))
    buf_printf(w->out, "%" PRId64, mlirIntegerAttrGetValueInt(v));
  else if (mlirAttributeIsADenseI64Array(v))
    put_array(w, v);
  else
    put_text(w, text_of(w, v, (MlirType){NULL}));
}

/* True for the attributes with the operator of the operation.  They come first; the others are in alphabetical
 * order. */
static bool is_operator(MlirStringRef name) {
  return is(name, "op") || is(name, "op0") || is(name, "op1") || is(name, "reduce_op");
}

static void put_attrs(struct nisa_line *w, bool operators) {
  for (intptr_t k = 0; k < mlirOperationGetNumAttributes(w->in.op); k++) {
    MlirNamedAttribute a = mlirOperationGetAttribute(w->in.op, k);
    MlirStringRef name = mlirIdentifierStr(a.name);
    if (is_shown(&w->in, name) && is_operator(name) == operators)
      put_attr(w, name, a.attribute);
  }
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static void put_results(struct nisa_line *w, MlirOperation op) {
  if (!mlirOperationGetNumResults(op))
    return;
  put_value(w, mlirOperationGetResult(op, 0));
  buf_puts(w->out, " = ");
}

static void put_count(struct nisa_line *w) {
  buf_puts(w->out, " >=");
  if (!is_plain(&w->count)) {
    put_map(w, &w->count);
    return;
  }
  buf_puts(w->out, " ");
  put_index(w, &w->count, 0);
}

static void write_sync(struct nisa_line *w, MlirOperation op) {
  buf_puts(w->out, nisa_sync_name(w->sync));
  switch (w->sync) {
  case NISA_SYNC_WAIT:
    buf_printf(w->out, " %s", nisa_text_attr(op, "semaphore"));
    put_count(w);
    break;
  case NISA_SYNC_TRIGGER:
    buf_printf(w->out, " %s", nisa_text_attr(op, "queue"));
    break;
  case NISA_SYNC_ROTATE:
    buf_puts(w->out, " ");
    put_value(w, mlirOperationGetOperand(op, 0));
    buf_puts(w->out, "[");
    put_value(w, mlirOperationGetOperand(op, 1));
    buf_puts(w->out, "] : ");
    put_type(w, mlirValueGetType(mlirOperationGetResult(op, 0)));
    break;
  default:
    break;
  }
}

static void put_place(struct nisa_line *w, MlirType t, const struct nisa_place *p) {
  if (mem_is_on_chip(nisa_type_space(t)))
    buf_printf(w->out, "%" PRId64 ", ", nisa_type_space(t) == MEM_SBUF ? p->partition : p->bank);
  buf_printf(w->out, "%" PRId64 "]", p->offset);
}

static void put_alloc(struct nisa_line *w, MlirOperation op) {
  MlirAttribute alignment = ir_attr(op, "alignment");
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  struct nisa_place p;

  if (!mlirAttributeIsNull(alignment))
    buf_printf(w->out, " alignment=%" PRId64, mlirIntegerAttrGetValueInt(alignment));
  if (nisa_address_of(op, &p)) {
    buf_puts(w->out, " address=[");
    put_place(w, t, &p);
  }
  if (nisa_place_of(op, &p)) {
    buf_puts(w->out, " at=[");
    put_place(w, t, &p);
    if (!mlirAttributeIsNull(ir_attr(op, "copies")))
      buf_printf(w->out, " copies=%" PRId64 " stride=%" PRId64, p.copies, p.stride);
  }
  buf_puts(w->out, " : ");
  put_type(w, t);
}

void nisa_write(struct nisa_line *w, MlirOperation op) {
  const struct nisa_instr *in = &w->in;
  const char *comma = "";

  put_results(w, op);
  if (w->sync) {
    write_sync(w, op);
    return;
  }
  buf_puts(w->out, in->def->full_name);
  if (in->def->kind == NISA_ALLOC) {
    put_alloc(w, op);
    return;
  }
  if (in->def->kind == NISA_RELEASE) {
    buf_puts(w->out, " ");
    put_value(w, in->operand[0].base);
    buf_puts(w->out, " : ");
    put_type(w, mlirValueGetType(in->operand[0].base));
    return;
  }
  buf_puts(w->out, "(");
  for (int k = 0; k < in->def->n_operands; k++) {
    if (nisa_is_absent(&in->operand[k]))
      continue;
    buf_puts(w->out, comma);
    put_operand(w, in->def->operand[k].name, &in->operand[k]);
    comma = ", ";
  }
  put_attrs(w, true);
  put_attrs(w, false);
  buf_puts(w->out, ") engine=");
  buf_puts(w->out, nisa_engine_name(in->engine));
  buf_puts(w->out, nisa_signals(op) ? " signal" : "");
  if (mlirOperationGetNumResults(op)) {
    buf_puts(w->out, " : ");
    put_type(w, mlirValueGetType(mlirOperationGetResult(op, 0)));
  }
}
