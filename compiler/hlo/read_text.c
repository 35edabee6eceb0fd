/* read_text: makes a module from HLO text, in two steps.  The first reads the structure of the text: each computation is
 * a list of parsed instructions.  The second builds the graph, callees before callers.
 */
#include "hlo/read_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "hlo/attrs.h"
#include "hlo/build.h"
#include "hlo/passes.h"
#include "hlo/read_places.h"

enum { CALL_DEPTH_MAX = 256 }; /* make_computation calls itself */

struct text_comp {
  struct hlo_span name;
  bool is_entry, is_open, is_done; /* open: its callees are being built, so a call of it is recursive */
  struct hlo_text_instr *first, *last;
  int n;
  struct hlo_computation *made;
  struct text_comp *next;
};

/* The computations, or the instructions of one computation, by name. */
struct names {
  struct index index;
  struct named {
    struct hlo_span name;
    void *what;
  } *v;
  int n, cap;
};

struct text_alias {
  struct hlo_ints output, param_index;
  int64_t param;
  struct text_alias *next;
};

struct reader {
  struct hlo_cursor c;
  struct hlo_span module_name;
  struct text_comp *comps;
  struct names comp_names, instr_names; /* the second: of the computation that is being built */
  struct text_comp *entry;
  struct text_alias *aliases;
  int n_instrs;
  struct hlo_text_places places;
  struct hlo_module *m;
};

/* ---- names --------------------------------------------------------------------------------------------------------- */

static void *name_find_hashed(const struct names *x, struct hlo_span name, uint32_t hash) {
  for (struct index_probe p = index_probe(&x->index, hash); index_next(&p);)
    if (hlo_span_equal(x->v[p.entry].name, name))
      return x->v[p.entry].what;
  return NULL;
}

static void *name_find(const struct names *x, struct hlo_span name) {
  return name_find_hashed(x, name, hash_bytes(name.at, name.len));
}

/* False if the name is taken. */
static bool name_add(struct arena *a, struct names *x, struct hlo_span name, void *what) {
  const uint32_t hash = hash_bytes(name.at, name.len);
  assert(what);
  if (name_find_hashed(x, name, hash))
    return false;
  index_add(&x->index, hash, x->n);
  array_push(a, x, (struct named){name, what});
  return true;
}

/* ---- structure: the header ----------------------------------------------------------------------------------------- */

/* { {0}: (1, {}, may-alias), … } */
static bool read_alias_table(struct reader *r, struct hlo_cursor *c) {
  if (!hlo_cur_need(c, '{'))
    return false;
  struct text_alias **end = &r->aliases;
  while (!hlo_cur_peek(c, '}')) {
    struct text_alias *x = arena_new(c->tmp, struct text_alias);
    struct hlo_span kind;
    if (!hlo_cur_ints(c, &x->output) || !hlo_cur_need(c, ':') || !hlo_cur_need(c, '(') || !hlo_cur_int(c, &x->param))
      return false;
    if (hlo_cur_take(c, ',') && !hlo_cur_ints(c, &x->param_index))
      return false;
    if (hlo_cur_take(c, ',') && !hlo_cur_word(c, &kind, "may-alias or must-alias"))
      return false;
    if (!hlo_cur_need(c, ')'))
      return false;
    *end = x;
    end = &x->next;
    if (!hlo_cur_take(c, ','))
      break;
  }
  return hlo_cur_need(c, '}');
}

static bool read_header(struct reader *r) {
  struct hlo_cursor *c = &r->c;
  if (!hlo_cur_take_word(c, "HloModule"))
    return hlo_cur_fail(c, (struct hlo_span){c->at, c->at < c->end}, DG_HLO_INVALID,
                        "expected 'HloModule' at the start");
  if (!hlo_cur_name(c, &r->module_name))
    return false;
  while (hlo_cur_take(c, ',')) {
    struct hlo_span key, value;
    if (!hlo_cur_word(c, &key, "an attribute's name") || !hlo_cur_need(c, '=') || !hlo_cur_value(c, &value))
      return false;
    struct hlo_cursor in = hlo_cur_within(c, value);
    if (hlo_span_is(key, "input_output_alias") && !read_alias_table(r, &in)) {
      c->is_bad = true;
      return false;
    }
  }
  return true;
}

/* ---- structure: instructions --------------------------------------------------------------------------------------- */

/* An operand is a name; older versions of XLA print its shape before it. */
static bool read_operand(struct hlo_cursor *c, struct hlo_span *out) {
  struct hlo_shape skipped;
  hlo_cur_space(c);
  if (hlo_cur_peek(c, '(')) /* a tuple's shape */
    return hlo_read_shape(c, &skipped) && hlo_cur_name(c, out);
  const bool is_name = hlo_cur_peek(c, '%');
  const char *start = c->at;
  if (!hlo_cur_name(c, out))
    return false;
  if (is_name || c->at >= c->end || *c->at != '[')
    return true;
  c->at = start;
  return hlo_read_shape(c, &skipped) && hlo_cur_name(c, out);
}

static bool read_operands(struct hlo_cursor *c, struct hlo_text_instr *t) {
  enum { FEW = 16 };
  struct hlo_span few[FEW], operand; /* most instructions have few */
  struct {
    struct hlo_span *v;
    int n, cap;
  } list = {few, 0, FEW};
  if (!hlo_cur_need(c, '('))
    return false;
  if (t->op == HLO_PARAMETER)
    return hlo_cur_int(c, &t->number) && hlo_cur_need(c, ')');
  if (t->op == HLO_CONSTANT)
    return hlo_read_literal(c, &t->shape, &t->literal) && hlo_cur_need(c, ')');
  if (!hlo_cur_peek(c, ')'))
    do {
      if (!read_operand(c, &operand))
        return false;
      array_push(c->tmp, &list, operand);
    } while (hlo_cur_take(c, ','));
  t->n_operands = list.n;
  t->operands = arena_dup(c->tmp, list.v, (size_t)list.n * sizeof *list.v);
  return hlo_cur_need(c, ')');
}

static bool read_attrs(struct hlo_cursor *c, struct hlo_text_instr *t) {
  struct hlo_text_attr **end = &t->attrs;
  while (hlo_cur_take(c, ',')) {
    struct hlo_text_attr *x = arena_new(c->tmp, struct hlo_text_attr);
    if (!hlo_cur_word(c, &x->key, "an attribute's name") || !hlo_cur_need(c, '=') || !hlo_cur_value(c, &x->value))
      return false;
    *end = x;
    end = &x->next;
  }
  return true;
}

const struct hlo_text_attr *hlo_text_attr(const struct hlo_text_instr *t, const char *key) {
  for (const struct hlo_text_attr *x = t->attrs; x; x = x->next)
    if (hlo_span_is(x->key, key))
      return x;
  return NULL;
}

static bool read_instr(struct reader *r, struct text_comp *comp) {
  struct hlo_cursor *c = &r->c;
  struct hlo_text_instr *t = arena_new(c->tmp, struct hlo_text_instr);
  hlo_cur_space(c);
  const char *start = c->at;
  t->is_root = hlo_cur_take_word(c, "ROOT");
  if (!hlo_cur_name(c, &t->name) || !hlo_cur_need(c, '=') || !hlo_read_shape(c, &t->shape) ||
      !hlo_cur_word(c, &t->opcode, "an opcode"))
    return false;
  t->op = hlo_op_from_name(t->opcode.at, t->opcode.len);
  if (t->op < 0)
    return hlo_cur_fail(c, t->opcode, DG_UNSUPPORTED_OP, "the opcode %.*s is not supported", (int)t->opcode.len,
                        t->opcode.at);
  if (++r->n_instrs > HLO_READ_INSTRS_MAX)
    return hlo_cur_fail(c, t->name, DG_TOO_MANY_OPS, "the module has more than %d instructions", HLO_READ_INSTRS_MAX);
  if (!read_operands(c, t) || !read_attrs(c, t))
    return false;
  const char *end = c->at;
  while (end > start && strchr(" \t\r\n", end[-1])) /* read_attrs looked for a comma after them */
    end--;
  t->whole = (struct hlo_span){start, (size_t)(end - start)};
  if (comp->last)
    comp->last->next = t;
  else
    comp->first = t;
  comp->last = t;
  comp->n++;
  return true;
}

/* (a: f32[2], b: f32[]) -> f32[2]: the parameters and the root repeat it */
static bool skip_signature(struct hlo_cursor *c) {
  int depth = 0;
  if (!hlo_cur_peek(c, '('))
    return true;
  for (; c->at < c->end; c->at++) {
    depth += (*c->at == '(') - (*c->at == ')');
    if (!depth)
      break;
  }
  struct hlo_shape result;
  return hlo_cur_need(c, ')') && hlo_cur_need(c, '-') && hlo_cur_need(c, '>') && hlo_read_shape(c, &result);
}

/* , execution_thread="main": what may follow a computation */
static bool skip_computation_attrs(struct hlo_cursor *c) {
  struct hlo_span key, value;
  while (hlo_cur_take(c, ','))
    if (!hlo_cur_word(c, &key, "an attribute's name") || !hlo_cur_need(c, '=') || !hlo_cur_value(c, &value))
      return false;
  return true;
}

static bool read_computation(struct reader *r) {
  struct hlo_cursor *c = &r->c;
  struct text_comp *comp = arena_new(c->tmp, struct text_comp);
  comp->is_entry = hlo_cur_take_word(c, "ENTRY");
  if (!hlo_cur_name(c, &comp->name) || !skip_signature(c) || !hlo_cur_need(c, '{'))
    return false;
  if (!name_add(c->tmp, &r->comp_names, comp->name, comp))
    return hlo_cur_fail(c, comp->name, DG_HLO_INVALID, "two computations are called %.*s", (int)comp->name.len,
                        comp->name.at);
  while (!hlo_cur_take(c, '}'))
    if (!read_instr(r, comp))
      return false;
  if (!comp->n)
    return hlo_cur_fail(c, comp->name, DG_HLO_INVALID, "computation %.*s is empty", (int)comp->name.len, comp->name.at);
  if (!skip_computation_attrs(c))
    return false;
  if (comp->is_entry && r->entry)
    return hlo_cur_fail(c, comp->name, DG_HLO_INVALID, "there are two entry computations");
  if (comp->is_entry)
    r->entry = comp;
  comp->next = r->comps;
  r->comps = comp;
  return true;
}

/* ---- structure: the whole ------------------------------------------------------------------------------------------ */

static bool read_structure(struct reader *r) {
  struct hlo_cursor *c = &r->c;
  if (!read_header(r))
    return false;
  for (hlo_cur_space(c); c->at < c->end; hlo_cur_space(c)) {
    bool found;
    if (!hlo_text_section(c, &r->places, &found) || (!found && !read_computation(r)))
      return false;
  }
  if (!r->entry && r->comps && !r->comps->next) /* a single computation needs no ENTRY */
    r->entry = r->comps;
  if (!r->entry)
    return hlo_cur_fail(c, r->module_name, DG_HLO_INVALID, "the module has no ENTRY computation");
  return true;
}

/* ---- graph: places ------------------------------------------------------------------------------------------------- */

static bool read_places(struct reader *r, const struct hlo_text_instr *t, struct src_locs *out) {
  struct src_loc *p = hlo_cur_place(&r->c, t->whole);
  const struct hlo_text_attr *metadata = hlo_text_attr(t, "metadata");
  if (metadata && !hlo_text_metadata(&r->c, &r->places, metadata->value, &p->caller))
    return false;
  *out = src_locs_one(r->c.a, p);
  return true;
}

/* ---- graph: computations ------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *x, const void *y) {
  const struct hlo_text_instr *const *a = x, *const *b = y;
  return ((*a)->number > (*b)->number) - ((*a)->number < (*b)->number);
}

static bool make_params(struct reader *r, struct text_comp *comp, struct hlo_builder *b) {
  struct hlo_cursor *c = &r->c;
  int n = 0;
  for (struct hlo_text_instr *t = comp->first; t; t = t->next)
    n += t->op == HLO_PARAMETER;
  struct hlo_text_instr **v = arena_new_array(c->tmp, struct hlo_text_instr *, (size_t)n);
  n = 0;
  for (struct hlo_text_instr *t = comp->first; t; t = t->next)
    if (t->op == HLO_PARAMETER)
      v[n++] = t;
  qsort(v, (size_t)n, sizeof *v, compare_numbers);
  for (int k = 0; k < n; k++) {
    if (v[k]->number != k)
      return hlo_cur_fail(c, v[k]->name, DG_HLO_INVALID, "parameter numbers must count from 0 without gaps");
    if (comp->is_entry && v[k]->shape.dtype == DT_TUPLE)
      return hlo_cur_fail(c, v[k]->name, DG_HLO_INVALID,
                          "a tuple as parameter of the entry computation is not supported");
    if (!read_places(r, v[k], &b->locs))
      return false;
    v[k]->made = hlo_parameter(b, arena_strndup(c->tmp, v[k]->name.at, v[k]->name.len), v[k]->shape);
    if (!v[k]->made)
      return hlo_cur_fail(c, v[k]->name, DG_HLO_INVALID, "%s", b->err.text);
  }
  return true;
}

static bool set_called(struct reader *r, const struct hlo_text_instr *t, struct hlo_instr *out) {
  struct hlo_span *names;
  if (!hlo_attrs_read_called(&r->c, t, &out->n_called, &names))
    return false;
  out->called = arena_new_array(r->c.a, struct hlo_computation *, (size_t)out->n_called);
  for (int k = 0; k < out->n_called; k++) {
    const struct text_comp *x = name_find(&r->comp_names, names[k]);
    assert(x && x->made); /* by make_callees */
    out->called[k] = x->made;
  }
  return true;
}

static bool make_instr(struct reader *r, struct text_comp *comp, struct hlo_text_instr *t) {
  struct hlo_cursor *c = &r->c;
  struct hlo_instr **operands = arena_new_array(c->tmp, struct hlo_instr *, (size_t)t->n_operands);
  for (int k = 0; k < t->n_operands; k++) {
    operands[k] = name_find(&r->instr_names, t->operands[k]);
    if (!operands[k])
      return hlo_cur_fail(c, t->operands[k], DG_HLO_INVALID, "%.*s is not an instruction before this one in %.*s",
                          (int)t->operands[k].len, t->operands[k].at, (int)comp->name.len, comp->name.at);
  }
  const int arity = hlo_op_arity((enum hlo_op)t->op);
  if (arity >= 0 && arity != t->n_operands)
    return hlo_cur_fail(c, t->whole, DG_HLO_INVALID, "%s takes %d operands, not %d", hlo_op_name((enum hlo_op)t->op),
                        arity, t->n_operands);
  t->made = hlo_append(comp->made, (enum hlo_op)t->op, arena_strndup(c->tmp, t->name.at, t->name.len), t->shape,
                       t->n_operands, operands);
  return read_places(r, t, &t->made->locs) && hlo_attrs_read(c, t, t->made) && set_called(r, t, t->made);
}

static bool make_computation(struct reader *r, struct text_comp *comp, int depth);

/* Everything that the instructions of comp call. */
static bool make_callees(struct reader *r, struct text_comp *comp, int depth) {
  struct hlo_cursor *c = &r->c;
  for (struct hlo_text_instr *t = comp->first; t; t = t->next) {
    struct hlo_span *names;
    int n;
    if (!hlo_attrs_read_called(c, t, &n, &names))
      return false;
    for (int k = 0; k < n; k++) {
      struct text_comp *x = name_find(&r->comp_names, names[k]);
      if (!x || x->is_entry)
        return hlo_cur_fail(c, names[k], DG_HLO_INVALID, "%.*s is not a computation of this module", (int)names[k].len,
                            names[k].at);
      if (x->is_open)
        return hlo_cur_fail(c, names[k], DG_HLO_INVALID, "computations call each other recursively");
      if (!make_computation(r, x, depth + 1))
        return false;
    }
  }
  return true;
}

static bool make_computation(struct reader *r, struct text_comp *comp, int depth) {
  struct hlo_cursor *c = &r->c;
  if (comp->is_done)
    return true;
  if (depth > CALL_DEPTH_MAX)
    return hlo_cur_fail(c, comp->name, DG_NESTING_TOO_DEEP, "computations call each other more than %d deep",
                        CALL_DEPTH_MAX);
  comp->is_open = true;
  if (!make_callees(r, comp, depth))
    return false;
  comp->made =
      comp->is_entry ? r->m->entry : hlo_computation_new(r->m, arena_strndup(c->tmp, comp->name.at, comp->name.len));
  struct hlo_builder b;
  hlo_builder_init(&b, r->m);
  b.computation = comp->made;
  if (!make_params(r, comp, &b))
    return false;
  index_restart(&r->instr_names.index, (size_t)comp->n);
  r->instr_names.n = 0;
  for (struct hlo_text_instr *t = comp->first; t; t = t->next) {
    if (t->op != HLO_PARAMETER && !make_instr(r, comp, t))
      return false;
    if (!name_add(c->tmp, &r->instr_names, t->name, t->made))
      return hlo_cur_fail(c, t->name, DG_HLO_INVALID, "two instructions of %.*s are called %.*s", (int)comp->name.len,
                          comp->name.at, (int)t->name.len, t->name.at);
    if (t->is_root)
      comp->made->root = t->made;
  }
  if (!comp->made->root) /* XLA takes the last one, too */
    comp->made->root = comp->last->made;
  comp->is_open = false;
  comp->is_done = true;
  return true;
}

/* ---- graph: the module's outside ----------------------------------------------------------------------------------- */

static bool set_aliases(struct reader *r) {
  struct hlo_module *m = r->m;
  int n = 0;
  for (const struct text_alias *x = r->aliases; x; x = x->next)
    n++;
  m->aliases = arena_new_array(r->c.a, struct hlo_alias, (size_t)n);
  for (const struct text_alias *x = r->aliases; x; x = x->next) {
    if (x->output.n > 1 || x->param_index.n || x->param < 0 || x->param >= m->entry->n_params ||
        (x->output.n && (x->output.v[0] < 0 || x->output.v[0] >= m->n_outputs)))
      return hlo_cur_fail(&r->c, r->module_name, DG_HLO_INVALID,
                          "an alias of the module names a parameter or an output that does not exist");
    hlo_read_add_alias(m, x->output.n ? (int)x->output.v[0] : 0, (int)x->param);
  }
  return true;
}

static bool read_module(struct reader *r) {
  if (!read_structure(r))
    return false;
  hlo_text_link_frames(&r->c, &r->places);
  r->m = hlo_module_new(r->c.a, arena_strndup(r->c.tmp, r->module_name.at, r->module_name.len));
  r->entry->is_entry = true;
  if (!make_computation(r, r->entry, 0))
    return false;
  if (!hlo_read_set_outputs(r->m))
    return hlo_cur_fail(&r->c, r->entry->name, DG_HLO_INVALID, "a tuple within the result's tuple is not supported");
  return set_aliases(r);
}

struct hlo_module *hlo_read_text(struct arena *a, const char *text, size_t len, const char *file, struct diags *ds) {
  struct arena tmp;
  arena_init(&tmp);
  struct reader r = {.comp_names.index.arena = &tmp, .instr_names.index.arena = &tmp};
  hlo_cur_start(&r.c, a, &tmp, arena_strndup(&tmp, text, len), len, file, ds);
  const bool ok = read_module(&r);
  assert(ok != r.c.is_bad);
  arena_clear(&tmp);
  return ok && hlo_verify(r.m, ds) == ST_OK ? r.m : NULL;
}
