/* parse_stream: rewrites what engine programs add to the readable form (nisa/streams.h).
 *
 *     stream  = "nisa.program" WORD "{" … "}"  |  "nisa.queue" WORD "on" WORD "{" … "}"
 *     core    = "nisa.core" NUMBER "{" … "}"                              (nisa/cores.h)
 *     op      = "nisa.wait" WORD ">=" (index | map "[" values "]")        (parse_access.c)
 *             | "nisa.dma_trigger" WORD  |  "nisa.barrier"  |  "nisa.core_barrier"  |  "nisa.rotate" VALUE "[" VALUE "]" ":" type
 */
#include "base/array.h"
#include "nisa/cores.h"
#include "nisa/parse_op.h"
#include "nisa/tokens.h"

/* A word of the text, as a string of the arena; NULL after an error. */
static const char *name(struct nisa_statement *t, const char *what, enum status *st) {
  const struct nisa_span w = nisa_word(t->s);
  if (nisa_span_is_empty(w)) {
    *st = nisa_source_fail(t->s, w.from, "%s: expected the name of %s", t->def->full_name, what);
    return NULL;
  }
  return arena_strndup(t->s->arena, t->s->text + w.from, w.to - w.from);
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static void put_indices(struct nisa_statement *t, const struct nisa_parsed_operand *x) {
  for (int k = 0; k < x->n_indices; k++) {
    nisa_source_put(t->s, x->index[k].from, k ? ", " : "");
    nisa_source_copy(t->s, x->index[k].from, x->index[k].to);
  }
}

static enum status wait(struct nisa_statement *t) {
  struct nisa_source *s = t->s;
  struct nisa_parsed_operand x = {0};
  enum status st = ST_OK;
  const char *semaphore = name(t, "a semaphore", &st);

  if (st || (st = nisa_expect(t, '>', "=, and a count")) != ST_OK)
    return st;
  if (nisa_peek(s) != '=')
    return nisa_source_fail(s, s->at, "%s: expected '=' after '>'", t->def->full_name);
  s->at++;
  if ((st = nisa_parse_count(t, &x)) != ST_OK)
    return st;
  nisa_source_put(s, t->start, "\"nisa.wait\"(");
  put_indices(t, &x);
  nisa_source_put(s, t->start, ") {semaphore = \"%s\", count = ", semaphore);
  if (x.made)
    nisa_source_put(s, t->start, "affine_map<%s>", x.made);
  else
    nisa_source_copy(s, x.map.from, x.map.to);
  nisa_source_put(s, t->start, "} : (");
  for (int k = 0; k < x.n_indices; k++)
    nisa_source_put(s, t->start, k ? ", index" : "index");
  nisa_source_put(s, t->start, ") -> ()");
  return ST_OK;
}

static enum status trigger(struct nisa_statement *t) {
  enum status st = ST_OK;
  const char *queue = name(t, "a queue", &st);
  if (!st)
    nisa_source_put(t->s, t->start, "\"nisa.dma_trigger\"() {queue = \"%s\"} : () -> ()", queue);
  return st;
}

static enum status rotate(struct nisa_statement *t) {
  struct nisa_source *s = t->s;
  struct nisa_span memory, index, memref;
  enum status st = nisa_parse_value(t, &memory);

  if (st || (st = nisa_expect(t, '[', "and the number of the copy")) != ST_OK ||
      (st = nisa_parse_value(t, &index)) != ST_OK || (st = nisa_expect(t, ']', "after the number")) != ST_OK ||
      (st = nisa_expect(t, ':', "and the type of the memory")) != ST_OK || (st = nisa_parse_type(t, &memref)) != ST_OK)
    return st;
  nisa_source_put(s, t->start, "\"nisa.rotate\"(");
  nisa_source_copy(s, memory.from, memory.to);
  nisa_source_put(s, index.from, ", ");
  nisa_source_copy(s, index.from, index.to);
  nisa_source_put(s, t->start, ") : (");
  nisa_source_copy(s, memref.from, memref.to);
  nisa_source_put(s, t->start, ", index) -> ");
  nisa_source_copy(s, memref.from, memref.to);
  return ST_OK;
}

enum status nisa_parse_sync(struct nisa_source *s, enum nisa_sync kind, size_t start) {
  const struct nisa_op_def def = {.full_name = nisa_sync_name(kind)}; /* for messages */
  struct nisa_statement t = {.s = s, .def = &def, .start = start};
  switch (kind) {
  case NISA_SYNC_WAIT:
    return wait(&t);
  case NISA_SYNC_TRIGGER:
    return trigger(&t);
  case NISA_SYNC_ROTATE:
    return rotate(&t);
  default:
    nisa_source_put(s, start, "\"%s\"() : () -> ()", nisa_sync_name(kind));
    return ST_OK;
  }
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

enum status nisa_parse_stream(struct nisa_source *s, bool is_queue, size_t start) {
  const struct nisa_op_def def = {.full_name = is_queue ? "nisa.queue" : "nisa.program"};
  struct nisa_statement t = {.s = s, .def = &def, .start = start};
  enum status st = ST_OK;
  struct nisa_open_stream x = {.name = name(&t, "a stream", &st), .on = "", .depth = s->depth};

  if (!st && is_queue) {
    const struct nisa_span word = nisa_word(s);
    if (!nisa_span_is(s, word, "on"))
      return nisa_source_fail(s, word.from, "nisa.queue: expected 'on' and the engine that starts its transfers");
    x.on = name(&t, "an engine", &st);
  }
  if (st || (st = nisa_expect(&t, '{', "and the program")) != ST_OK)
    return st;
  s->depth++;
  array_push(s->arena, &s->streams, x);
  nisa_source_put(s, start, "scf.execute_region {");
  return ST_OK;
}

enum status nisa_parse_core(struct nisa_source *s, size_t start) {
  const struct nisa_op_def def = {.full_name = "nisa.core"};
  struct nisa_statement t = {.s = s, .def = &def, .start = start};
  int64_t number;
  enum status st = nisa_parse_integer(&t, &number);

  if (st || (st = nisa_expect(&t, '{', "and the program")) != ST_OK)
    return st;
  if (number >= NISA_CORES)
    return nisa_source_fail(s, start, "nisa.core: there are cores 0 and 1");
  array_push(s->arena, &s->streams,
             (struct nisa_open_stream){.name = "", .on = "", .core = (int)number, .depth = s->depth});
  s->depth++;
  nisa_source_put(s, start, "scf.execute_region {");
  return ST_OK;
}

bool nisa_end_stream(struct nisa_source *s, size_t *copied) {
  if (!s->streams.n || s->streams.v[s->streams.n - 1].depth != s->depth - 1)
    return false;
  const struct nisa_open_stream *x = &s->streams.v[--s->streams.n];
  nisa_source_copy(s, *copied, s->at);
  nisa_source_put(s, s->at, "scf.yield } {");
  if (*x->on)
    nisa_source_put(s, s->at, "nisa.on = \"%s\", ", x->on);
  if (*x->name)
    nisa_source_put(s, s->at, "nisa.stream = \"%s\"}", x->name);
  else
    nisa_source_put(s, s->at, "nisa.core = %d : i64}", x->core);
  s->depth--;
  *copied = ++s->at;
  return true;
}
