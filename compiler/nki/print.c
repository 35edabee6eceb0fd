/* print: a program in the syntax of NKI; a record as it was written.
 *
 *     def add(a: float32[256, 512], b: float32[256, 512]):
 *       out = nl.ndarray((256, 512), nl.float32, buffer=nl.shared_hbm)
 *       x = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
 *       nisa.dma_copy(dst=x, src=a[0:128, :])
 *       nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
 *       return out
 *
 * One line shows one item.  Parameters that were left out are not shown.  Of a program on two cores, "# core 1" precedes
 * what core 1 executes.  A loop is
 *
 *       for i in nl.affine_range(2):
 *         nisa.dma_copy(dst=x, src=a[i*128:i*128+128, :])
 *
 * and loops and branches on the device are
 *
 *       n = nisa.register_alloc()
 *       nisa.register_load(dst=n, src=count)
 *       for reg in nl.dynamic_range(0, n, 1):
 *         reg_1 = reg * 128
 *         nisa.dma_copy(dst=x, src=a[reg_1:reg_1+128, :])
 *       while True:
 *         reg_2 = n > 0
 *         if not reg_2: break
 *         …
 *       if n:
 *         …
 *       else:
 *         …
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "nki/nki.h"
#include "nki/order.h"

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Finds the slices of the tensor's dimensions that are the view; dim_of: the dimension of the view that steps along each, or
 * -1.  False if the view is not made of slices and integers in their order. */
static bool find_slices(const struct nki_view *v, struct nki_start *at, int dim_of[NKI_RANK_MAX]) {
  const struct nki_tensor *t = v->tensor;
  const struct nki_view whole = nki_whole(v->tensor);
  int next = 0;
  if (!nki_start_of(v, at))
    return false;
  for (int d = 0; d < t->rank; d++) {
    const int64_t stride = whole.dim[d].stride;
    dim_of[d] = -1;
    if (next == v->rank)
      continue;
    const struct nki_dim *x = &v->dim[next];
    const bool steps = x->size > 1 && x->stride >= stride && x->stride % stride == 0;
    const bool one = x->size == 1 && t->rank - d <= v->rank - next;
    if (!steps && !one)
      continue;
    if (x->size > 1 && at->most[d] + (x->size - 1) * (x->stride / stride) >= t->dims[d])
      return false;
    dim_of[d] = next++;
  }
  return next == v->rank;
}

static const char *term_name(const struct nki_term *t) {
  return t->loop ? t->loop->name : t->reg->name;
}

/* The sum of a number and of multiples of loops' rounds: "i*128+j+4". */
static const char *sum_text(struct arena *a, const struct nki_view *v, const int64_t *by, int64_t start) {
  const char *text = "";
  bool begins = false;
  for (int i = 0; i < v->n_terms; i++)
    begins |= by[i] > 0;
  if (!begins) /* there is nothing before the first minus */
    text = arena_printf(a, "%" PRId64, start);
  for (int sign = 1; sign >= -1; sign -= 2)
    for (int i = 0; i < v->n_terms; i++) {
      const int64_t x = by[i] * sign;
      if (x <= 0)
        continue;
      text = arena_printf(a, "%s%s%s", text, sign < 0 ? "-" : *text ? "+" : "", term_name(&v->terms[i]));
      text = x == 1 ? text : arena_printf(a, "%s*%" PRId64, text, x);
    }
  return begins && start ? arena_printf(a, "%s%+" PRId64, text, start) : text;
}

static const char *ap_text(struct arena *a, const struct nki_view *v) {
  const int64_t extent = nki_tensor_extent(v->tensor);
  const char *text = arena_printf(a, "%s.ap([", v->tensor->name);
  for (int i = 0; i < v->rank; i++) {
    const bool partition = nki_is_on_chip(v) && i == 0;
    text = arena_printf(a, "%s%s[%" PRId64 ", %" PRId64 "]", text, i ? ", " : "",
                        partition ? extent * v->dim[i].stride : v->dim[i].stride, v->dim[i].size);
  }
  const int64_t offset = v->offset + v->partition * (nki_is_on_chip(v) ? extent : 0);
  int64_t by[NKI_TERMS_MAX];
  for (int i = 0; i < v->n_terms; i++)
    by[i] = v->terms[i].offset + v->terms[i].partition * extent;
  return offset || v->n_terms ? arena_printf(a, "%s], offset=%s)", text, sum_text(a, v, by, offset))
                              : arena_printf(a, "%s])", text);
}

const char *nki_view_text(struct arena *a, const struct nki_view *v) {
  const struct nki_tensor *t = v->tensor;
  const struct nki_view whole = nki_whole(v->tensor);
  struct nki_start at;
  int dim_of[NKI_RANK_MAX];
  if (!find_slices(v, &at, dim_of))
    return ap_text(a, v);
  bool is_whole = v->rank == t->rank;
  const char *text = arena_printf(a, "%s[", t->name);
  for (int d = 0; d < t->rank; d++) {
    const char *comma = d ? ", " : "";
    const char *from = sum_text(a, v, at.by[d], at.start[d]);
    if (dim_of[d] < 0) {
      text = arena_printf(a, "%s%s%s", text, comma, from);
      is_whole = false;
      continue;
    }
    const struct nki_dim *x = &v->dim[dim_of[d]];
    const int64_t step = x->size > 1 ? x->stride / whole.dim[d].stride : 1,
                  stop = at.start[d] + (x->size - 1) * step + 1;
    const bool all = at.start[d] == 0 && x->size == t->dims[d];
    is_whole &= all;
    const char *to = sum_text(a, v, at.by[d], stop);
    if (all)
      text = arena_printf(a, "%s%s:", text, comma);
    else if (step == 1)
      text = arena_printf(a, "%s%s%s:%s", text, comma, from, to);
    else
      text = arena_printf(a, "%s%s%s:%s:%" PRId64, text, comma, from, to, step);
  }
  return is_whole ? t->name : arena_printf(a, "%s]", text);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void put_number(struct buf *b, double v) {
  if (isfinite(v) && v == floor(v) && fabs(v) < 1e15)
    buf_printf(b, "%.1f", v);
  else
    buf_printf(b, "%.9g", v);
}

/* A word is a member of an enumeration of nki.isa, or a string. */
static void put_word(struct buf *b, const struct nki_param_def *def, const char *word) {
  static const char *const enums[][2] = {{"engine", "engine"},         {"oob_mode", "oob_mode"},
                                         {"dge_mode", "dge_mode"},     {"reduce_cmd", "reduce_cmd"},
                                         {"dma_engine", "dma_engine"}, {"perf_mode", "matmul_perf_mode"}};
  for (size_t i = 0; i < sizeof enums / sizeof *enums; i++)
    if (!strcmp(def->name, enums[i][0])) {
      buf_printf(b, "nisa.%s.%s", enums[i][1], word);
      return;
    }
  buf_printf(b, "\"%s\"", word);
}

/* as_written: views are the expressions that made them. */
static void put_value(struct buf *b, struct arena *a, const struct nki_param_def *def, const struct nki_value *v,
                      bool as_written) {
  switch (v->kind) {
  case NKI_ABSENT:
    break;
  case NKI_VIEW:
    buf_puts(b, as_written && v->view->written ? v->view->written : nki_view_text(a, v->view));
    break;
  case NKI_FLOAT:
    put_number(b, v->number);
    break;
  case NKI_INT:
    buf_printf(b, "%" PRId64, v->integer);
    break;
  case NKI_OP:
    buf_printf(b, "nl.%s", v->op->name);
    break;
  case NKI_FLAG:
    buf_puts(b, v->integer ? "True" : "False");
    break;
  case NKI_WORD:
    put_word(b, def, v->word);
    break;
  case NKI_LIST:
    if (v->n_terms) { /* one integer */
      struct nki_view sum = {.n_terms = v->n_terms, .terms = v->terms};
      int64_t by[NKI_TERMS_MAX];
      for (int i = 0; i < v->n_terms; i++)
        by[i] = v->terms[i].offset;
      buf_puts(b, sum_text(a, &sum, by, v->ints[0]));
      break;
    }
    buf_putc(b, '[');
    for (int i = 0; i < v->n; i++) {
      const bool pairs = !strcmp(def->name, "pattern");
      buf_printf(b,
                 pairs ? (i % 2 ? ", %" PRId64 "]"
                          : i   ? ", [%" PRId64
                                : "[%" PRId64)
                 : i   ? ", %" PRId64
                       : "%" PRId64,
                 v->ints[i]);
    }
    buf_putc(b, ']');
    break;
  }
}

/* The numbers of rows, which the view of the operand before has in its expression. */
static bool is_in_view(const struct nki_call_def *def, int k) {
  return !strcmp(def->param[k].name, "dst_index") || !strcmp(def->param[k].name, "src_index");
}

static void put_call(struct buf *b, struct arena *a, const struct nki_call *c, bool as_written) {
  const struct nki_call_def *def = nki_def(c);
  bool first = true;
  buf_printf(b, "nisa.%s(", def->name);
  for (int i = 0; i < nki_n_params(def); i++) {
    const struct nki_param_def *param = &def->param[i];
    if (c->value[i].kind == NKI_ABSENT || param->kind == NKI_PARAM_ENGINE || (as_written && is_in_view(def, i)))
      continue;
    buf_printf(b, first ? "%s=" : ", %s=", param->name);
    put_value(b, a, param, &c->value[i], as_written);
    first = false;
  }
  if (c->engine != def->engines[0])
    buf_printf(b, ", engine=nisa.engine.%s", nisa_engine_name(c->engine));
  if (c->order && c->order->name)
    buf_printf(b, ", name=\"%s\"", c->order->name);
  buf_putc(b, ')');
  for (int i = 0; c->order && i < c->order->after.n; i++)
    buf_printf(b, "%s\"%s\"", i ? ", " : "  # after ", c->order->after.v[i]);
}

/* ---- registers, and loops and branches on the device ------------------------------------------------------------- */

static void put_alu(struct buf *b, struct arena *a, const struct nki_call *c) {
  static const struct {
    const char *op, *symbol;
  } symbols[] = {{"add", "+"},         {"subtract", "-"},
                 {"multiply", "*"},    {"is_eq", "=="},
                 {"is_ne", "!="},      {"is_gt", ">"},
                 {"is_ge", ">="},      {"is_lt", "<"},
                 {"is_le", "<="},      {"bitwise_and", "&"},
                 {"bitwise_or", "|"},  {"bitwise_xor", "^"},
                 {"shift_left", "<<"}, {"shift_right_logical", ">>"}};
  const struct nki_call_def *def = nki_def(c);
  const char *symbol = "";
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    if (!strcmp(symbols[i].op, c->value[1].op->nisa))
      symbol = symbols[i].symbol;
  put_value(b, a, &def->param[0], &c->value[0], false);
  buf_puts(b, " = ");
  put_value(b, a, &def->param[2], &c->value[2], false);
  buf_printf(b, " %s ", symbol);
  put_value(b, a, &def->param[3], &c->value[3], false);
}

/* False for a call that users write. */
static bool put_device(struct buf *b, struct arena *a, const struct nki_call *c) {
  const struct nki_call_def *def = nki_def(c);
  switch (c->kind) {
  case NKI_REGISTER_ALU:
    put_alu(b, a, c);
    return true;
  case NKI_DEVICE_FOR:
    buf_puts(b, "for ");
    for (int k = 0; k < 3; k++) {
      buf_puts(b, k == 0 ? "" : k == 1 ? " in nl.dynamic_range(" : ", ");
      put_value(b, a, &def->param[k], &c->value[k], false);
    }
    buf_printf(b, ", %" PRId64 "):", nki_first_int(&c->value[3], 1));
    return true;
  case NKI_DEVICE_WHILE:
    buf_puts(b, "while True:");
    return true;
  case NKI_DEVICE_DO:
  case NKI_DEVICE_IF:
    buf_puts(b, c->kind == NKI_DEVICE_DO ? "if not " : "if ");
    put_value(b, a, &def->param[0], &c->value[0], false);
    buf_puts(b, c->kind == NKI_DEVICE_DO ? ": break" : ":");
    return true;
  case NKI_DEVICE_ELSE:
    buf_puts(b, "else:");
    return true;
  default:
    return false;
  }
}

static void put_dims(struct buf *b, const struct nki_tensor *t) {
  for (int i = 0; i < t->rank; i++)
    buf_printf(b, i ? ", %" PRId64 : "%" PRId64, t->dims[i]);
}

static void put_tensor(struct buf *b, const struct nki_tensor *t) {
  if (t->reg) {
    buf_printf(b, "%s = nisa.register_alloc()  # %s", t->name, dtype_numpy_name(t->dtype));
    return;
  }
  if (t->initial) {
    buf_printf(b, "%s = nl.shared_constant(%s[", t->name, nki_type_name(t));
    put_dims(b, t);
    buf_puts(b, "])");
    return;
  }
  buf_printf(b, "%s = nl.ndarray((", t->name);
  put_dims(b, t);
  buf_printf(b, t->rank == 1 ? ",), nl.%s, buffer=nl.%s" : "), nl.%s, buffer=nl.%s", nki_type_name(t),
             nisa_space_name(t->space));
  if (t->has_address)
    buf_printf(b, ", address=(%" PRId64 ", %" PRId64 ")", t->partition, t->address);
  buf_putc(b, ')');
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void put_header(struct buf *b, const struct nki_program *p) {
  bool first = true;
  buf_printf(b, "def %s(", p->name);
  for (int i = 0; i < p->tensors.n; i++) {
    const struct nki_tensor *t = p->tensors.v[i];
    if (t->input < 0)
      continue;
    buf_printf(b, first ? "%s: %s[" : ", %s: %s[", t->name, dtype_numpy_name(t->dtype));
    put_dims(b, t);
    buf_putc(b, ']');
    first = false;
  }
  buf_puts(b, "):\n");
}

/* ---- what a long record shows -------------------------------------------------------------------------------- */

enum {
  SHORT = 1000,     /* a record of so many items is shown whole */
  SHOWN_FIRST = 2,  /* rounds of a loop that are shown of a longer one; its last one is shown, too */
  SHOWN_ROUNDS = 4, /* loops of so many rounds are shown whole */
};

/* Of each round: how many rounds of its loop are left out from it on, in its place; -1: it is shown; 0: it is one of those. */
static int *rounds_left_out(const struct nki_program *p, struct arena *a) {
  const int n = p->rounds.n;
  int *out = arena_new_array(a, int, (size_t)n), *first = arena_new_array(a, int, (size_t)n),
      *nth = arena_new_array(a, int, (size_t)n), *count = arena_new_array(a, int, (size_t)n);
  int *last_inside =
      arena_new_array(a, int, (size_t)n + 1); /* of each round, and of none: the round that began last in it */
  for (int i = 0; i <= n; i++)
    last_inside[i] = -1;
  for (int i = 0; i < n; i++) {
    const struct nki_round *x = &p->rounds.v[i];
    const int before = last_inside[x->outer + 1];
    const bool goes_on = before >= 0 && p->rounds.v[before].loop == x->loop;
    first[i] = goes_on ? first[before] : i;
    nth[i] = goes_on ? nth[before] + 1 : 0;
    count[first[i]] = nth[i] + 1;
    last_inside[x->outer + 1] = i;
  }
  for (int i = 0; i < n; i++) {
    const int of = count[first[i]], outer = p->rounds.v[i].outer;
    const bool whole = of <= SHOWN_ROUNDS || nth[i] < SHOWN_FIRST || nth[i] == of - 1;
    out[i] = whole ? -1 : nth[i] == SHOWN_FIRST ? of - SHOWN_FIRST - 1 : 0;
    if (outer >= 0 && out[outer] >= 0)
      out[i] = 0;
  }
  return out;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

struct printer {
  struct buf *out;
  struct arena scratch; /* of the texts of views */
  struct arena *a;
  struct {
    struct nki_line *v;
    int n, cap;
  } lines;
  int line;
  int begun;       /* the line that began the last block on the device */
  bool as_written; /* it is a record */
};

/* The id of the last line of the items, 0 if there is none. */
static int last_id(const struct nki_items *x) {
  if (!x->n)
    return 0;
  const struct nki_item *last = &x->v[x->n - 1];
  return last->loop ? last_id(&last->loop->items) : last->id;
}

static void begin_line(struct printer *p, enum nki_line_kind kind, const struct nki_item *item, int id, int depth) {
  array_push(p->a, &p->lines, (struct nki_line){++p->line, kind, id, item, NULL});
  for (int i = 0; i < depth; i++)
    buf_puts(p->out, "  ");
}

static void put_items(struct printer *p, const struct nki_items *items, int depth);

static void put_written(struct printer *p, const struct nki_written *w, const struct nki_item *near, int depth) {
  begin_line(p, NKI_LINE_ITEM, near, w->id, depth);
  p->lines.v[p->lines.n - 1].written = w;
  buf_printf(p->out, "%s\n", w->text);
}

/* Calls without items, of which the last one comes first. */
static void put_empty(struct printer *p, const struct nki_written *w, const struct nki_item *near, int depth) {
  if (!w)
    return;
  put_empty(p, w->next, near, depth);
  put_written(p, w, near, depth);
}

static void put_item(struct printer *p, const struct nki_item *x, int depth) {
  begin_line(p, NKI_LINE_ITEM, x, p->as_written ? x->written_id : x->id, depth);
  if (x->call && !put_device(p->out, &p->scratch, x->call))
    put_call(p->out, &p->scratch, x->call, p->as_written);
  else if (x->tensor)
    put_tensor(p->out, x->tensor);
  else if (x->loop)
    buf_printf(p->out, "for %s in nl.affine_range(%" PRId64 "):", x->loop->name, x->loop->trips);
  buf_putc(p->out, '\n');
  if (x->call && (nki_region_of(x->call) == NKI_BEGINS || x->call->kind == NKI_DEVICE_ELSE))
    p->begun = p->line;
  if (x->loop)
    put_items(p, &x->loop->items, depth + 1);
  if (p->scratch.total > 1 << 20)
    arena_clear(&p->scratch);
}

/* Follows the loops and branches on the device: a block without lines gets one before x, which ends it. */
static void close_empty(struct printer *p, const struct nki_item *x, int depth) {
  const bool ends = x->call && (nki_region_of(x->call) == NKI_ENDS || x->call->kind == NKI_DEVICE_ELSE);
  if (!ends || p->begun != p->line)
    return;
  p->line++;
  for (int i = 0; i < depth; i++)
    buf_puts(p->out, "  ");
  buf_puts(p->out, "pass\n");
}

/* The same: whether the item has a line, and the depth of that line. */
static bool enters(const struct nki_item *x, int *depth, int *line) {
  const enum nki_region region = x->call ? nki_region_of(x->call) : NKI_NO_REGION;
  *depth -= region == NKI_ENDS;
  *line = *depth - (x->call && x->call->kind == NKI_DEVICE_ELSE);
  *depth += region == NKI_BEGINS;
  return region != NKI_ENDS;
}

static void put_items(struct printer *p, const struct nki_items *items, int depth) {
  int line;
  for (int i = 0; i < items->n; i++) {
    close_empty(p, &items->v[i], depth);
    if (enters(&items->v[i], &depth, &line))
      put_item(p, &items->v[i], line);
  }
}

/* "(1, 0)" */
static void put_id(struct buf *b, const struct nki_program *p, const struct nki_instance *x) {
  buf_putc(b, '(');
  for (int i = 0; i < p->grid.rank; i++)
    buf_printf(b, i ? ", %" PRId64 : "%" PRId64, x->id[i]);
  buf_putc(b, ')');
}

/* Says which instance is shown alone, and returns the one whose calls it makes. */
static const struct nki_instance *put_instance(struct printer *p, const struct nki_program *program, int instance) {
  const struct nki_instance *x = &program->instances.v[instance];
  p->line++;
  buf_puts(p->out, "  # instance ");
  put_id(p->out, program, x);
  if (x->same_as < 0) {
    buf_printf(p->out, nki_program_cores(program) > 1 ? " on core %d\n" : "\n", x->core);
    return x;
  }
  buf_puts(p->out, " makes the calls of instance ");
  put_id(p->out, program, &program->instances.v[x->same_as]);
  buf_puts(p->out, ", which has made them\n");
  return &program->instances.v[x->same_as];
}

/* A tensor that all share is an item of the first instance.  Another one that made it by a call that is shown as it was written
 * has such a call itself. */
static bool is_of(const struct nki_program *p, const struct nki_instance *x, int item) {
  const struct nki_tensor *t = p->items.v[item].tensor;
  return !x || (item >= x->first && item < x->first + x->n) ||
         (t && t->space == MEM_SHARED_HBM && !p->items.v[item].written);
}

/* What put_program knows while it goes over the items. */
struct walk {
  const struct nki_program *program;
  const int *left_out; /* of each round, or NULL */
  int said;            /* the round whose loop was the last that was said to be left out */
};

/* False if the rounds of a loop are left out to which `round` belongs; then a line says so once. */
static bool is_shown(struct printer *p, struct walk *w, int round, int depth) {
  const struct nki_program *program = w->program;
  if (!w->left_out || round < 0 || w->left_out[round] < 0)
    return true;
  while (w->left_out[round] == 0 && program->rounds.v[round].outer >= 0 &&
         w->left_out[program->rounds.v[round].outer] >= 0)
    round = program->rounds.v[round].outer;
  if (w->left_out[round] > 0 && w->said != round) {
    p->line++;
    for (int k = 0; k < depth; k++)
      buf_puts(p->out, "  ");
    buf_printf(p->out, "# … %d more rounds of this loop; nki-reroll shows what they have in common\n",
               w->left_out[round]);
    w->said = round;
  }
  return false;
}

/* The lines of an item.  before: the item before it that is shown, or NULL. */
static void put_shown(struct printer *p, struct walk *w, const struct nki_item *x, const struct nki_item *before,
                      int depth) {
  int line;
  if (p->as_written && x->before && is_shown(p, w, x->before->round, depth))
    put_empty(p, x->before, x, depth);
  if (!p->as_written || !x->written) {
    int after = depth;
    if (enters(x, &after, &line) && is_shown(p, w, x->round, line))
      put_item(p, x, line);
  } else if ((!before || before->written != x->written) && is_shown(p, w, x->written->round, depth)) {
    put_written(p, x->written, x, depth);
  }
}

/* The item begins a line with something that a core executes. */
static bool does_something(const struct nki_program *p, int item) {
  const struct nki_written *w = p->items.v[item].written;
  bool does = p->items.v[item].call;
  for (int i = item + 1; w && !does && i < p->items.n && p->items.v[i].written == w; i++)
    does = p->items.v[i].call;
  return does;
}

/* The items of a program, or of one instance; of a long record, rounds of loops are left out. */
static void put_program(struct printer *p, const struct nki_program *program, int instance) {
  const bool is_long = program->items.n > SHORT && program->rounds.n;
  struct walk w = {program, is_long ? rounds_left_out(program, p->a) : NULL, -1};
  const bool has_cores = nki_program_cores(program) > 1 && instance < 0;
  const struct nki_instance *only = instance >= 0 ? put_instance(p, program, instance) : NULL;
  const struct nki_item *before = NULL;
  int core = -1, depth = 1, line, next = 0;
  for (int i = 0; i < program->items.n; i++) {
    const struct nki_item *x = &program->items.v[i];
    if (!is_of(program, only, i))
      continue;
    if (has_cores && x->core != core && does_something(program, i)) {
      core = x->core;
      p->line++;
      buf_printf(p->out, "  # core %d\n", core);
    }
    close_empty(p, x, depth);
    put_shown(p, &w, x, before, depth);
    enters(x, &depth, &line);
    before = x;
    while (next < program->instances.n && program->instances.v[next].first + program->instances.v[next].n <= i + 1)
      next++;
    const struct nki_instance *ended = next ? &program->instances.v[next - 1] : NULL;
    if (ended && ended->first + ended->n == i + 1 && ended->n)
      put_empty(p, ended->after, x, depth);
  }
}

enum status nki_print(const struct nki_program *program, int instance, struct buf *out, struct arena *a,
                      struct nki_line **lines, int *n) {
  const bool as_written = !program->is_canonical && !program->is_rerolled;
  struct printer p = {.out = out, .a = a, .as_written = as_written};
  arena_init(&p.scratch);
  begin_line(&p, NKI_LINE_HEADER, NULL, 0, 0);
  put_header(out, program);
  put_program(&p, program, instance < program->instances.n ? instance : -1);
  if (program->n_outputs) {
    begin_line(&p, NKI_LINE_RETURN, NULL, as_written ? program->next_written_id : last_id(&program->items) + 1, 1);
    buf_puts(out, "return ");
    for (int i = 0; i < program->n_outputs; i++)
      buf_printf(out, i ? ", %s" : "%s", program->outputs[i]->name);
    buf_putc(out, '\n');
  }
  arena_clear(&p.scratch);
  *lines = p.lines.v;
  *n = p.lines.n;
  return buf_status(out);
}
