/* simulate_watch: operands that are watched in the simulated run.
 *
 * A watch names a line of the last stage, or of the source in Python.  Either may stand for many instructions: a short program is
 * written out without loops, one instruction for each part of a tensor, and a line of Python becomes instructions of several kinds.
 * Each of them is watched, and shown with the part of the buffer that it has.
 */
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "driver/simulate_internal.h"
#include "driver/summary.h"
#include "driver/value_find.h"
#include "driver/watch_part.h"

enum {
  PARTS_MAX = 32,             /* instructions of one watch */
  PARTS_BYTES_MAX = 16 << 20, /* what they may keep together, after the first */
};

/* Of a watch of the job: its instructions in simulation.watches. */
struct simulate_watched {
  const char *refused; /* why there are none, or NULL */
  int first, n;
  int n_more;     /* that are not watched */
  bool is_source; /* the line is the source's */
};

struct watch_list {
  struct sim_watch *v;
  int n, cap;
};

/* ---- finding ----------------------------------------------------------------------------------------------------- */

int simulate_find_operand(const struct sim_instr *i, const char *name) {
  for (int k = 0; k < i->def->n_operands; k++)
    if (i->operand[k].kind != SIM_ABSENT && i->operand[k].type &&
        (name ? !strcmp(i->def->operand[k].name, name) : i->def->operand[k].writes))
      return k;
  return -1;
}

enum dtype simulate_dtype(enum sim_type t) {
  static const enum dtype dtypes[SIM_TYPE_COUNT] = {
      [SIM_I1] = DT_BOOL, [SIM_I8] = DT_I8,         [SIM_I16] = DT_I16,       [SIM_I32] = DT_I32,
      [SIM_I64] = DT_I64, [SIM_U8] = DT_U8,         [SIM_U16] = DT_U16,       [SIM_U32] = DT_U32,
      [SIM_U64] = DT_U64, [SIM_F32] = DT_F32,       [SIM_F16] = DT_F16,       [SIM_BF16] = DT_BF16,
      [SIM_F64] = DT_F64, [SIM_F8E4M3] = DT_F8E4M3, [SIM_F8E5M2] = DT_F8E5M2, [SIM_F8E4M3FN] = DT_F8E4M3FN};
  return dtypes[t];
}

static int64_t bytes_of(const struct simulation *s, int instr, int operand) {
  const struct sim_operand *o = &s->program.instrs[instr].operand[operand];
  int64_t n = sim_type_bytes(o->type);
  for (int k = 0; k < o->n_dims; k++)
    n *= o->dim[k].n;
  return n;
}

/* The place of an instruction in the source: the first of those that it implements; NULL: none is known. */
static const struct src_loc *place_of(const struct simulation *s, int instr) {
  const struct ir_op *op = s->ops[instr];
  return op && op->locs.n ? op->locs.v[0] : NULL;
}

static bool is_in_file(const struct src_range *r, const char *file) {
  const size_t n = r->file ? strlen(r->file) : 0, m = strlen(file);
  return n >= m && !strcmp(r->file + n - m, file) && (n == m || r->file[n - m - 1] == '/' || *file == '/');
}

/* True if the instruction is of this line of the source, where it begins or in a caller. */
static bool is_of_line(const struct simulation *s, int instr, const struct job_watch *want) {
  for (const struct src_loc *l = place_of(s, instr); l; l = l->caller)
    if (want->line >= l->range.line && want->line <= l->range.end_line &&
        (want->file ? is_in_file(&l->range, want->file)
                    : !strcmp(l->range.file ? l->range.file : "", s->rq->job->filename)))
      return true;
  return false;
}

static bool has_same_tile(const struct sim_operand *x, const struct sim_operand *y) {
  if (x->type != y->type || x->n_dims != y->n_dims)
    return false;
  for (int k = 0; k < x->n_dims; k++)
    if (x->dim[k].n != y->dim[k].n)
      return false;
  return true;
}

/* True if both do the same for the same place of the source, on parts of one size. */
static bool is_same_work(const struct simulation *s, int x, int y, int operand) {
  const struct sim_instr *p = &s->program.instrs[x], *q = &s->program.instrs[y];
  const struct src_loc *at = place_of(s, x);
  return p->def == q->def && at && at == place_of(s, y) && q->operand[operand].kind != SIM_ABSENT &&
         has_same_tile(&p->operand[operand], &q->operand[operand]);
}

struct collected {
  struct watch_list *list;
  struct simulate_watched *of;
  int64_t bytes;
};

static void add_watch(const struct simulation *s, struct collected *c, int instr, int operand, int64_t nth) {
  const int64_t bytes = bytes_of(s, instr, operand);
  if (c->of->n && (c->of->n == PARTS_MAX || bytes > PARTS_BYTES_MAX - c->bytes)) {
    c->of->n_more++;
    return;
  }
  const struct sim_watch w = {.instr = instr, .operand = operand, .nth = nth};
  c->bytes += c->of->n ? bytes : 0;
  c->of->n++;
  array_push(s->rq->arena, c->list, w);
}

static int instruction_on(const struct simulation *s, int line) {
  for (int k = 0; k < s->program.n_instrs; k++)
    if (s->lines[k] == line)
      return k;
  return -1;
}

/* The instruction on a line of the last stage, then those that do the same for other parts. */
static const char *find_on_line(const struct simulation *s, const struct job_watch *want, int instr,
                                struct collected *c) {
  const int operand = simulate_find_operand(&s->program.instrs[instr], want->operand);
  if (operand < 0)
    return "the instruction has no such operand";
  add_watch(s, c, instr, operand, want->nth);
  for (int k = 0; !s->rq->is_nisa && k < s->program.n_instrs; k++)
    if (k != instr && is_same_work(s, instr, k, operand))
      add_watch(s, c, k, operand, want->nth);
  return NULL;
}

/* The instructions of a line of the source, in the order of the stage. */
static const char *find_of_source(const struct simulation *s, const struct job_watch *want, struct collected *c) {
  bool has_some = false;
  for (int k = 0; k < s->program.n_instrs; k++) {
    const int operand = is_of_line(s, k, want) ? simulate_find_operand(&s->program.instrs[k], want->operand) : -1;
    has_some |= is_of_line(s, k, want);
    if (operand >= 0)
      add_watch(s, c, k, operand, want->nth);
  }
  return c->of->n     ? NULL
         : has_some   ? "the instructions of this line have no such operand"
         : want->file ? "no instruction of the last stage is of this line"
                      : "there is no instruction on this line";
}

void simulate_find_watches(struct simulation *s) {
  const struct job *job = s->rq->job;
  struct watch_list list = {0};
  s->watched = arena_new_array(s->rq->arena, struct simulate_watched, (size_t)job->n_watches);
  for (int k = 0; k < job->n_watches; k++) {
    const struct job_watch *want = &job->watches[k];
    struct simulate_watched *of = &s->watched[k];
    struct collected c = {&list, of, 0};
    const int instr = want->file ? -1 : instruction_on(s, want->line);
    of->first = list.n;
    of->is_source = instr < 0;
    of->refused = instr >= 0 ? find_on_line(s, want, instr, &c) : find_of_source(s, want, &c);
  }
  s->watches = list.v;
  s->n_watches = list.n;
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

/* The members of an instruction that was watched. */
static void put_watched(const struct simulation *s, const struct sim_watch *w, struct buf *b) {
  const struct sim_instr *i = &s->program.instrs[w->instr];
  const struct sim_operand *o = &i->operand[w->operand];
  const struct stage *stage = s->rq->stage;
  const char *name = i->def->operand[w->operand].name;
  const char *part =
      s->ops[w->instr] ? watch_part(s->rq->arena, stage->text, stage->text_len, s->ops[w->instr]->line, name) : NULL;
  json_put_field_str(b, "instruction", i->def->name);
  json_put_field_str(b, "operand", name);
  if (s->lines[w->instr])
    json_put_field_int(b, "at", s->lines[w->instr]);
  if (part)
    json_put_field_str(b, "part", part);
  json_put_field_int(b, "executions", w->n_executions);
  if (w->state != SIM_WATCH_KEPT) {
    json_put_field_str(b, "reason",
                       w->state == SIM_WATCH_UNWRITTEN ? "a part of it has never been written"
                                                       : "it was not executed so often");
    return;
  }
  int64_t dims[NISA_TILE_MAX];
  for (int k = 0; k < o->n_dims; k++)
    dims[k] = o->dim[k].n;
  const struct trace_array x = {.shape = hlo_shape_array(s->rq->arena, simulate_dtype(o->type), o->n_dims, dims),
                                .data = w->data};
  json_put_field_int(b, "nth", w->nth ? w->nth : w->n_executions);
  summary_put(b, &x);
  summary_put_histogram(b, &x);
  summary_put_slice(b, &x);
}

static void put_others(const struct simulation *s, const struct simulate_watched *of, struct buf *b) {
  if (of->n > 1) {
    json_put_key(b, "parts");
    buf_putc(b, '[');
    for (int k = 1; k < of->n; k++) {
      json_put_comma(b);
      buf_putc(b, '{');
      put_watched(s, &s->watches[of->first + k], b);
      buf_putc(b, '}');
    }
    buf_putc(b, ']');
  }
  if (of->n_more)
    json_put_field_int(b, "more", of->n_more);
}

void simulate_put_watches(const struct simulation *s, struct buf *b) {
  const struct job *job = s->rq->job;
  if (!job->n_watches)
    return;
  json_put_key(b, "values");
  buf_putc(b, '[');
  for (int k = 0; k < job->n_watches; k++) {
    const struct simulate_watched *of = &s->watched[k];
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_int(b, "line", job->watches[k].line);
    if (job->watches[k].file)
      json_put_field_str(b, "file", job->watches[k].file);
    if (of->refused) {
      json_put_field_str(b, "reason", of->refused);
    } else {
      if (of->is_source)
        json_put_field_bool(b, "of_source", true);
      put_watched(s, &s->watches[of->first], b);
      put_others(s, of, b);
    }
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}
