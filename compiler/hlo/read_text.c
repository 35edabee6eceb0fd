/* read_text: HLO text to a module, in two steps: the text's own structure first (every computation a list of parsed
 * instructions), then the graph, callees before callers.
 */
#include "hlo/read_text.h"

#include <stdlib.h>
#include <string.h>

#include "hlo/build.h"
#include "hlo/passes.h"

struct text_comp {
  struct hlo_span name;
  bool is_entry, is_open, is_done; /* open: being built, so whoever calls it now calls in a ring */
  struct hlo_text_instr *first, *last;
  int n;
  struct hlo_computation *made;
  struct text_comp *next;
};

/* Names, of computations or of one computation's instructions, to what they stand for. */
struct name_slot {
  struct hlo_span name;
  void *what;
};
struct name_map {
  struct name_slot *v;
  size_t n, cap;
};

struct text_alias {
  struct hlo_ints output, param_index;
  int64_t param;
  struct text_alias *next;
};

struct file_location {
  int64_t file, function, line, end_line, col, end_col;
};
struct stack_frame {
  int64_t location, parent;
};
struct table { /* of the sections behind the computations; entry k is number k + 1 */
  int n, cap;
  void *v;
};

struct reader {
  struct hlo_cursor c;
  struct hlo_span module_name;
  struct text_comp *comps;
  struct name_map comp_names, names; /* names: where map_for puts them */
  struct text_comp *entry;
  struct text_alias *aliases;
  int n_instrs;
  struct table files, functions, locations, frames;
  const struct src_loc **frame_locs;
  struct hlo_module *m;
};

/* ---- names -------------------------------------------------------------------------------------------------------- */

static struct name_slot *name_slot(const struct name_map *m, struct hlo_span name) {
  uint64_t h = 1469598103934665603u;
  for (size_t k = 0; k < name.len; k++)
    h = (h ^ (unsigned char)name.at[k]) * 1099511628211u;
  size_t at = (size_t)(h ^ h >> 31) & (m->cap - 1);
  while (m->v[at].name.at && !hlo_span_equal(m->v[at].name, name))
    at = (at + 1) & (m->cap - 1);
  return &m->v[at];
}

static void *name_find(const struct name_map *m, struct hlo_span name) {
  return m->cap ? name_slot(m, name)->what : NULL;
}

/* False if the name is taken. */
static bool name_add(struct arena *a, struct name_map *m, struct hlo_span name, void *what) {
  if (2 * (m->n + 1) > m->cap) {
    struct name_map bigger = {.n = m->n, .cap = m->cap ? 2 * m->cap : 16};
    bigger.v = arena_new_array(a, struct name_slot, bigger.cap);
    for (size_t k = 0; k < m->cap; k++)
      if (m->v[k].what)
        *name_slot(&bigger, m->v[k].name) = m->v[k];
    *m = bigger;
  }
  struct name_slot *s = name_slot(m, name);
  if (s->what)
    return false;
  *s = (struct name_slot){name, what};
  m->n++;
  return true;
}

/* ---- structure: the header ---------------------------------------------------------------------------------------- */

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

/* ---- structure: instructions -------------------------------------------------------------------------------------- */

/* An operand is a name, in older prints with its shape in front. */
static bool read_operand(struct hlo_cursor *c, struct hlo_span *out) {
  hlo_cur_space(c);
  struct hlo_span word;
  if (c->at < c->end && *c->at == '(') { /* a tuple's shape */
    struct hlo_shape skipped;
    return hlo_read_shape(c, &skipped) && hlo_cur_name(c, out);
  }
  bool is_name = hlo_cur_peek(c, '%');
  const char *start = c->at;
  if (!hlo_cur_name(c, &word))
    return false;
  if (!is_name && c->at < c->end && *c->at == '[') {
    struct hlo_shape skipped;
    c->at = start;
    return hlo_read_shape(c, &skipped) && hlo_cur_name(c, out);
  }
  *out = word;
  return true;
}

static bool read_operands(struct hlo_cursor *c, struct hlo_text_instr *t) {
  struct hlo_span v[1024], *all = v;
  int n = 0, cap = 1024;
  if (!hlo_cur_need(c, '('))
    return false;
  if (t->op == HLO_PARAMETER)
    return hlo_cur_int(c, &t->number) && hlo_cur_need(c, ')');
  if (t->op == HLO_CONSTANT)
    return hlo_read_literal(c, &t->shape, &t->literal) && hlo_cur_need(c, ')');
  if (!hlo_cur_peek(c, ')'))
    do {
      if (n == cap) {
        struct hlo_span *more = arena_new_array(c->tmp, struct hlo_span, (size_t)cap * 2);
        memcpy(more, all, (size_t)n * sizeof *more);
        all = more;
        cap *= 2;
      }
      if (!read_operand(c, &all[n++]))
        return false;
    } while (hlo_cur_take(c, ','));
  t->n_operands = n;
  t->operands = arena_dup(c->tmp, all, (size_t)n * sizeof *all);
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
    return hlo_cur_fail(c, t->opcode, DG_UNSUPPORTED_OP, "the opcode %.*s has no form here", (int)t->opcode.len,
                        t->opcode.at);
  if (++r->n_instrs > HLO_READ_INSTRS_MAX)
    return hlo_cur_fail(c, t->name, DG_TOO_MANY_OPS, "the module has more than %d instructions", HLO_READ_INSTRS_MAX);
  if (!read_operands(c, t) || !read_attrs(c, t))
    return false;
  const char *end = c->at;
  while (end > start && strchr(" \t\r\n", end[-1])) /* space in front of a comma that was not there */
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

/* (a: f32[2], b: f32[]) -> f32[2]: the parameters and the root say it again */
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
  if (hlo_cur_take(c, ',')) { /* execution_thread="main" and the like */
    struct hlo_span key, value;
    do {
      if (!hlo_cur_word(c, &key, "an attribute's name") || !hlo_cur_need(c, '=') || !hlo_cur_value(c, &value))
        return false;
    } while (hlo_cur_take(c, ','));
  }
  if (comp->is_entry && r->entry)
    return hlo_cur_fail(c, comp->name, DG_HLO_INVALID, "there are two entry computations");
  if (comp->is_entry)
    r->entry = comp;
  comp->next = r->comps;
  r->comps = comp;
  return true;
}

/* ---- structure: places -------------------------------------------------------------------------------------------- */

static void *table_add(struct arena *a, struct table *t, size_t size) {
  if (t->n == t->cap) {
    int cap = t->cap ? t->cap * 2 : 32;
    void *more = arena_array(a, (size_t)cap, size);
    if (t->n)
      memcpy(more, t->v, (size_t)t->n * size);
    t->v = more;
    t->cap = cap;
  }
  return (char *)t->v + (size_t)t->n++ * size;
}

static bool read_texts(struct hlo_cursor *c, struct table *t) {
  while (c->at < c->end) {
    hlo_cur_space(c);
    if (c->at >= c->end || *c->at < '0' || *c->at > '9')
      return true;
    int64_t number;
    const char **text = table_add(c->tmp, t, sizeof *text);
    if (!hlo_cur_int(c, &number) || !hlo_cur_string(c, text))
      return false;
  }
  return true;
}

/* 3 {key=1 key=2 …}: the values of the given keys, -1 where one is missing */
static bool read_record(struct hlo_cursor *c, int n, const char *const *keys, int64_t *out) {
  int64_t number;
  for (int k = 0; k < n; k++)
    out[k] = -1;
  if (!hlo_cur_int(c, &number) || !hlo_cur_need(c, '{'))
    return false;
  while (!hlo_cur_take(c, '}')) {
    struct hlo_span key;
    int64_t value;
    if (!hlo_cur_word(c, &key, "a name") || !hlo_cur_need(c, '=') || !hlo_cur_int(c, &value))
      return false;
    for (int k = 0; k < n; k++)
      if (hlo_span_is(key, keys[k]))
        out[k] = value;
    hlo_cur_take(c, ',');
  }
  return true;
}

static bool read_records(struct hlo_cursor *c, struct table *t, int n, const char *const *keys) {
  for (;;) {
    hlo_cur_space(c);
    if (c->at >= c->end || *c->at < '0' || *c->at > '9')
      return true;
    if (!read_record(c, n, keys, table_add(c->tmp, t, (size_t)n * sizeof(int64_t))))
      return false;
  }
}

static bool read_section(struct reader *r, bool *found) {
  static const char *const of_location[] = {"file_name_id", "function_name_id", "line",
                                            "end_line",     "column",           "end_column"};
  static const char *const of_frame[] = {"file_location_id", "parent_frame_id"};
  struct hlo_cursor *c = &r->c;
  *found = true;
  if (hlo_cur_take_word(c, "FileNames"))
    return read_texts(c, &r->files);
  if (hlo_cur_take_word(c, "FunctionNames"))
    return read_texts(c, &r->functions);
  if (hlo_cur_take_word(c, "FileLocations"))
    return read_records(c, &r->locations, 6, of_location);
  if (hlo_cur_take_word(c, "StackFrames"))
    return read_records(c, &r->frames, 2, of_frame);
  *found = false;
  return true;
}

static bool read_structure(struct reader *r) {
  struct hlo_cursor *c = &r->c;
  if (!read_header(r))
    return false;
  for (hlo_cur_space(c); c->at < c->end; hlo_cur_space(c)) {
    bool found;
    if (!read_section(r, &found) || (!found && !read_computation(r)))
      return false;
  }
  if (!r->entry && r->comps && !r->comps->next) /* one computation needs no ENTRY */
    r->entry = r->comps;
  if (!r->entry)
    return hlo_cur_fail(c, r->module_name, DG_HLO_INVALID, "the module has no ENTRY computation");
  return true;
}

/* ---- graph: places ------------------------------------------------------------------------------------------------ */

static const char *text_number(const struct table *t, int64_t number) {
  return number >= 1 && number <= t->n ? ((const char **)t->v)[number - 1] : NULL;
}

static int as_line(int64_t v) {
  return v > 0 && v < 1 << 30 ? (int)v : 0;
}

/* Frames refer to earlier ones only, or they are cut off there: parent_frame_id counts from one more than the number in
 * text, 1 being none. */
static void link_frames(struct reader *r) {
  struct arena *a = r->c.a;
  const struct stack_frame *f = r->frames.v;
  r->frame_locs = arena_new_array(r->c.tmp, const struct src_loc *, (size_t)r->frames.n);
  for (int k = 0; k < r->frames.n; k++) {
    if (f[k].location < 1 || f[k].location > r->locations.n)
      continue;
    const struct file_location *l = (const struct file_location *)r->locations.v + (f[k].location - 1);
    struct src_loc *p = arena_new(a, struct src_loc);
    const char *file = text_number(&r->files, l->file);
    p->range = (struct src_range){file ? file : "?", as_line(l->line), as_line(l->col), as_line(l->end_line),
                                  as_line(l->end_col)};
    p->func = text_number(&r->functions, l->function);
    int64_t parent = f[k].parent - 1; /* 0: none; else a frame's number */
    if (parent >= 1 && parent <= k)
      p->caller = r->frame_locs[parent - 1];
    r->frame_locs[k] = p;
  }
}

/* metadata={op_type="…" op_name="…" source_file="…" source_line=3 … stack_frame_id=2} */
static const struct src_loc *metadata_place(struct reader *r, const struct hlo_text_attr *attr) {
  struct hlo_cursor c = hlo_cur_within(&r->c, attr->value);
  struct src_range range = {0};
  int64_t frame = 0, v;
  struct hlo_span key;
  const char *text;
  if (!hlo_cur_need(&c, '{'))
    return NULL;
  while (!hlo_cur_take(&c, '}')) {
    if (!hlo_cur_word(&c, &key, "a name") || !hlo_cur_need(&c, '='))
      break;
    if (hlo_cur_peek(&c, '"')) {
      if (!hlo_cur_string(&c, &text))
        break;
      if (hlo_span_is(key, "source_file"))
        range.file = text;
    } else if (hlo_cur_peek(&c, '{')) {
      struct hlo_span skipped;
      if (!hlo_cur_value(&c, &skipped))
        break;
    } else {
      if (!hlo_cur_int(&c, &v)) {
        struct hlo_span skipped;
        c.is_bad = false;
        if (!hlo_cur_word(&c, &skipped, "a value"))
          break;
        continue;
      }
      if (hlo_span_is(key, "source_line"))
        range.line = as_line(v);
      else if (hlo_span_is(key, "source_end_line"))
        range.end_line = as_line(v);
      else if (hlo_span_is(key, "source_column"))
        range.col = as_line(v);
      else if (hlo_span_is(key, "source_end_column"))
        range.end_col = as_line(v);
      else if (hlo_span_is(key, "stack_frame_id"))
        frame = v;
    }
  }
  if (frame >= 1 && frame <= r->frames.n && r->frame_locs[frame - 1])
    return r->frame_locs[frame - 1];
  if (!range.file || !range.line)
    return NULL;
  struct src_loc *p = arena_new(r->c.a, struct src_loc);
  p->range = range;
  return p;
}

static struct src_locs places_of(struct reader *r, const struct hlo_text_instr *t) {
  struct src_loc *p = hlo_cur_place(&r->c, t->whole);
  const struct hlo_text_attr *metadata = hlo_text_attr(t, "metadata");
  if (metadata)
    p->caller = metadata_place(r, metadata);
  return src_locs_one(r->c.a, p);
}

/* ---- graph: computations ------------------------------------------------------------------------------------------ */

static struct hlo_computation *find_made(void *user, struct hlo_span name) {
  const struct reader *r = user;
  const struct text_comp *x = name_find(&r->comp_names, name);
  return x ? x->made : NULL;
}

static int compare_numbers(const void *x, const void *y) {
  const struct hlo_text_instr *const *a = x, *const *b = y;
  return (*a)->number<(*b)->number ? -1 : (*a)->number>(*b)->number;
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
                          "a tuple as parameter of the entry computation has no form here");
    b->locs = places_of(r, v[k]);
    v[k]->made = hlo_parameter(b, arena_strndup(c->tmp, v[k]->name.at, v[k]->name.len), v[k]->shape);
    if (!v[k]->made)
      return hlo_cur_fail(c, v[k]->name, DG_HLO_INVALID, "%s", b->err.text);
  }
  return true;
}

static bool make_instr(struct reader *r, struct text_comp *comp, const struct name_map *names,
                       struct hlo_text_instr *t) {
  struct hlo_cursor *c = &r->c;
  struct hlo_instr **operands = arena_new_array(c->tmp, struct hlo_instr *, (size_t)t->n_operands);
  for (int k = 0; k < t->n_operands; k++) {
    operands[k] = name_find(names, t->operands[k]);
    if (!operands[k])
      return hlo_cur_fail(c, t->operands[k], DG_HLO_INVALID, "%.*s is not an instruction before this one in %.*s",
                          (int)t->operands[k].len, t->operands[k].at, (int)comp->name.len, comp->name.at);
  }
  int arity = hlo_op_arity((enum hlo_op)t->op);
  if (arity >= 0 && arity != t->n_operands)
    return hlo_cur_fail(c, t->whole, DG_HLO_INVALID, "%s takes %d operands, not %d", hlo_op_name((enum hlo_op)t->op),
                        arity, t->n_operands);
  t->made = hlo_append(comp->made, (enum hlo_op)t->op, arena_strndup(c->tmp, t->name.at, t->name.len), t->shape,
                       t->n_operands, operands);
  t->made->locs = places_of(r, t);
  struct attr_reader attrs = {c, t, find_made, r};
  return hlo_read_attributes(&attrs, t->made);
}

static bool make_computation(struct reader *r, struct text_comp *comp, int depth);

/* Whatever the instructions of comp call, first. */
static bool make_callees(struct reader *r, struct text_comp *comp, int depth) {
  struct hlo_cursor *c = &r->c;
  for (struct hlo_text_instr *t = comp->first; t; t = t->next) {
    struct hlo_span *names;
    int n;
    if (!hlo_read_called(c, t, &n, &names))
      return false;
    for (int k = 0; k < n; k++) {
      struct text_comp *x = name_find(&r->comp_names, names[k]);
      if (!x || x->is_entry)
        return hlo_cur_fail(c, names[k], DG_HLO_INVALID, "%.*s is not a computation of this module", (int)names[k].len,
                            names[k].at);
      if (x->is_open)
        return hlo_cur_fail(c, names[k], DG_HLO_INVALID, "computations call each other in a ring");
      if (!make_computation(r, x, depth + 1))
        return false;
    }
  }
  return true;
}

/* An empty map with room for n names, in the place of the last one. */
static struct name_map map_for(struct reader *r, int n) {
  struct name_map m = {.v = r->names.v, .cap = 16};
  while (m.cap < 2 * ((size_t)n + 1))
    m.cap *= 2;
  if (m.cap > r->names.cap) {
    m.v = arena_new_array(r->c.tmp, struct name_slot, m.cap);
    r->names = m;
  } else {
    memset(m.v, 0, m.cap * sizeof *m.v);
  }
  return m;
}

static bool make_computation(struct reader *r, struct text_comp *comp, int depth) {
  struct hlo_cursor *c = &r->c;
  if (comp->is_done)
    return true;
  if (depth > 256)
    return hlo_cur_fail(c, comp->name, DG_NESTING_TOO_DEEP, "computations call each other more than 256 deep");
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
  struct name_map names = map_for(r, comp->n);
  for (struct hlo_text_instr *t = comp->first; t; t = t->next) {
    if (t->op != HLO_PARAMETER && !make_instr(r, comp, &names, t))
      return false;
    if (!name_add(c->tmp, &names, t->name, t->made))
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

/* ---- graph: the module's outside ---------------------------------------------------------------------------------- */

bool hlo_read_set_outputs(struct hlo_module *m) {
  const struct hlo_shape *s = &m->entry->root->shape;
  m->n_outputs = s->dtype == DT_TUPLE ? s->n_elems : 1;
  m->output_names = arena_new_array(m->arena, const char *, (size_t)m->n_outputs);
  for (int k = 0; k < m->n_outputs; k++) {
    if (s->dtype == DT_TUPLE && s->elems[k].dtype == DT_TUPLE)
      return false;
    m->output_names[k] = arena_printf(m->arena, "output%d", k);
  }
  return true;
}

void hlo_read_add_alias(struct hlo_module *m, int output, int param) {
  const char *name = m->entry->params[param]->name;
  const size_t n = strlen(name), k = sizeof HLO_ALIAS_SUFFIX - 1;
  if (n > k && !strcmp(name + n - k, HLO_ALIAS_SUFFIX))
    name = arena_strndup(m->arena, name, n - k);
  m->aliases[m->n_aliases++] = (struct hlo_alias){output, param, name, true};
  if (output >= 0 && output < m->n_outputs) /* the verifier refuses the others */
    m->output_names[output] = name;
}

static bool set_aliases(struct reader *r) {
  struct hlo_module *m = r->m;
  int n = 0;
  for (const struct text_alias *x = r->aliases; x; x = x->next)
    n++;
  m->aliases = arena_new_array(r->c.a, struct hlo_alias, (size_t)n);
  for (const struct text_alias *x = r->aliases; x; x = x->next) {
    if (x->output.n > 1 || x->param_index.n || x->param < 0 || x->param >= m->entry->n_params)
      return hlo_cur_fail(&r->c, r->module_name, DG_HLO_INVALID,
                          "an alias of the module names something that is not there");
    hlo_read_add_alias(m, x->output.n ? (int)x->output.v[0] : 0, (int)x->param);
  }
  return true;
}

static bool read_module(struct reader *r) {
  if (!read_structure(r))
    return false;
  link_frames(r);
  r->m = hlo_module_new(r->c.a, arena_strndup(r->c.tmp, r->module_name.at, r->module_name.len));
  r->entry->is_entry = true;
  if (!make_computation(r, r->entry, 0))
    return false;
  if (!hlo_read_set_outputs(r->m))
    return hlo_cur_fail(&r->c, r->entry->name, DG_HLO_INVALID, "a tuple within the result's tuple has no form here");
  return set_aliases(r);
}

struct hlo_module *hlo_read_text(struct arena *a, const char *text, size_t len, const char *file, struct diags *ds) {
  struct reader r = {0};
  struct arena tmp;
  arena_init(&tmp);
  hlo_cur_start(&r.c, a, &tmp, arena_strndup(&tmp, text, len), len, file, ds);
  const bool ok = read_module(&r);
  arena_clear(&tmp);
  return ok && hlo_verify(r.m, ds) == ST_OK ? r.m : NULL;
}
