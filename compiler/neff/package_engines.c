/* package_engines: the folder of a core in a package: its variables and queues, and what each engine executes. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "neff/package_internal.h"
#include "sim/cursor.h"

/* The engines in the order of def.json's keys. */
static const struct engine_file {
  enum nisa_engine engine;
  const char *key, *file;
} engine_files[] = {{NISA_ENGINE_TENSOR, "pe", "PE0.json"},
                    {NISA_ENGINE_SCALAR, "act", "Activation0.json"},
                    {NISA_ENGINE_VECTOR, "dve", "DVE0.json"},
                    {NISA_ENGINE_GPSIMD, "pool", "Pool0.json"},
                    {NISA_ENGINE_SYNC, "sp", "SP0.json"}};
enum { ENGINES = sizeof engine_files / sizeof *engine_files };

/* Of def.json, and of each of an engine's two lists: an endless program would fill the memory. */
enum { TEXT_MAX = 256 << 20 };

struct core {
  struct arena *arena;
  const struct neff_package *package;
  const struct sim_program *program;
  int number;
  const char *folder;
  const char **names;  /* of the variable of each buffer */
  const int64_t *regs; /* as the function's own code leaves them */
  const bool *is_loaded;
  struct buf def;                          /* members of the object in def.json */
  struct buf instr[ENGINES], dma[ENGINES]; /* items of the lists in an engine's file */
  int n_transfers;
  struct error *err;
};

static int engine_number(enum nisa_engine e) {
  for (int k = 0; k < ENGINES; k++)
    if (engine_files[k].engine == e)
      return k;
  return -1;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* These texts are most of a package, and are printed directly: an item on a line. */
static void begin_item(struct buf *b) {
  buf_puts(b, b->len ? ",\n " : "\n ");
}

/* A member of def.json. */
static void begin_member(struct core *c, const char *prefix, const char *name) {
  begin_item(&c->def);
  const char *key = arena_printf(c->arena, "%s%s", prefix, name);
  json_put_cstr(&c->def, key);
  buf_putc(&c->def, ':');
}

static enum status check_text(struct core *c, const struct buf *b, const char *what) {
  if (buf_status(b) == ST_LIMIT)
    return fail(c->err, ST_LIMIT, "the kernel's %s take more than %d MiB, too much to list", what, TEXT_MAX >> 20);
  return buf_status(b) ? fail(c->err, buf_status(b), "no memory for the kernel's %s", what) : ST_OK;
}

/* Adds a text as a member in the folder of the core. */
static void add_text(struct core *c, struct neff *x, const char *file, const struct buf *b) {
  neff_add(c->arena, x, arena_printf(c->arena, "%s/%s", c->folder, file), arena_dup(c->arena, b->data, b->len + 1),
           b->len);
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

static const char *argument_name(const struct core *c, int buffer) {
  for (int k = 0; k < c->program->n_args; k++)
    if (c->program->args[k].buffer == buffer)
      return c->package->inputs[k].name;
  return NULL;
}

static const char *result_name(const struct core *c, int buffer) {
  for (int k = 0; k < c->program->n_results; k++)
    if (c->program->results[k].buffer == buffer)
      return c->package->outputs[k].name;
  return NULL;
}

static bool is_on_chip(const struct sim_buffer *b) {
  return b->space == MEM_SBUF || b->space == MEM_PSUM;
}

/* Inputs and outputs have the names of the kernel's; others are numbered. */
static void name_buffers(struct core *c) {
  c->names = arena_new_array(c->arena, const char *, (size_t)c->program->n_buffers + 1);
  for (int k = 0; k < c->program->n_buffers; k++) {
    const char *name = argument_name(c, k);
    if (!name)
      name = result_name(c, k);
    c->names[k] = name ? name
                       : arena_printf(c->arena, "%s%d",
                                      c->program->buffers[k].kind == SIM_GLOBAL ? "constant"
                                      : is_on_chip(&c->program->buffers[k])     ? "buffer"
                                                                                : "scratch",
                                      k);
  }
}

static const char *var_type(const struct core *c, int buffer) {
  const struct sim_buffer *b = &c->program->buffers[buffer];
  return argument_name(c, buffer) ? "input"
         : result_name(c, buffer) ? "output"
         : b->kind == SIM_GLOBAL  ? "file"
         : is_on_chip(b)          ? "state-buffer"
                                  : "tmp-buf";
}

/* A constant in NumPy's format 1.0, as bytes: types that NumPy lacks have no other form. */
static void add_constant(struct core *c, struct neff *x, const char *file, const struct sim_buffer *b) {
  enum { NPY_HEADER = 128, MAGIC = 10 };
  const size_t n = (size_t)b->bytes, repeat = b->initial_repeat ? (size_t)b->initial_repeat : n;
  char *npy = arena_alloc(c->arena, NPY_HEADER + n + 1);
  memcpy(npy, "\x93NUMPY\x01\x00", 8);
  npy[8] = (char)(NPY_HEADER - MAGIC);
  npy[9] = 0;
  const int len = snprintf(npy + MAGIC, NPY_HEADER - MAGIC,
                           "{'descr': '|u1', 'fortran_order': False, 'shape': (%lld,), }", (long long)b->bytes);
  memset(npy + MAGIC + len, ' ', (size_t)(NPY_HEADER - MAGIC - len));
  npy[NPY_HEADER - 1] = '\n';
  for (size_t at = 0; at < n && b->initial; at += repeat)
    memcpy(npy + NPY_HEADER + at, b->initial, repeat < n - at ? repeat : n - at);
  neff_add(c->arena, x, file, npy, NPY_HEADER + n);
}

static void put_place(struct buf *b, const struct sim_buffer *buffer, int copies) {
  const struct sim_place *p = &buffer->place;
  json_put_key(b, "place");
  buf_putc(b, '{');
  json_put_field_str(b, "memory", buffer->space == MEM_PSUM ? "PSUM" : "SBUF");
  json_put_field_int(b, "partition", p->partition);
  json_put_field_int(b, "bank", p->bank);
  json_put_field_int(b, "offset", p->offset);
  json_put_field_int(b, "copies", copies);
  json_put_field_int(b, "stride", p->stride);
  buf_putc(b, '}');
}

static void put_var(struct core *c, struct neff *x, int buffer) {
  const struct sim_buffer *v = &c->program->buffers[buffer];
  const int copies = v->place.copies > 1 ? v->place.copies : 1;
  struct buf *b = &c->def;
  if (is_on_chip(v) && v->core != c->number)
    return;
  begin_member(c, "var.", c->names[buffer]);
  buf_putc(b, '{');
  json_put_field_str(b, "type", var_type(c, buffer));
  json_put_field_int(b, "var_id", buffer);
  json_put_field_int(b, "size", v->bytes * copies);
  if (v->place.is_set && is_on_chip(v))
    put_place(b, v, copies);
  if (v->kind == SIM_GLOBAL) {
    const char *file = arena_printf(c->arena, "%s.npy", c->names[buffer]);
    json_put_field_str(b, "file_name", file);
    add_constant(c, x, arena_printf(c->arena, "%s/%s", c->folder, file), v);
  }
  buf_putc(b, '}');
}

/* ---- what the engines execute ------------------------------------------------------------------------------------ */

static void put_instruction(struct buf *b, const struct sim_program *p, const struct sim_node *n) {
  const char *op = n->kind == SIM_NODE_INSTR     ? p->instrs[n->a].def->name
                   : n->kind == SIM_NODE_WAIT    ? "wait"
                   : n->kind == SIM_NODE_TRIGGER ? "dma_trigger"
                   : n->kind == SIM_NODE_BARRIER ? "barrier"
                                                 : NULL;
  if (!op)
    return;
  begin_item(b);
  buf_putc(b, '{');
  json_put_field_str(b, "op", op);
  if (n->kind == SIM_NODE_INSTR)
    json_put_field_bool(b, "signals", p->instrs[n->a].signals);
  if (n->kind == SIM_NODE_WAIT || n->kind == SIM_NODE_TRIGGER)
    json_put_field_str(b, n->kind == SIM_NODE_WAIT ? "semaphore" : "queue", p->streams[n->a].name);
  buf_putc(b, '}');
}

/* Lists the nodes of an engine's program, each once, as its text has them. */
static void put_instructions(const struct core *c, const struct sim_stream *s, struct buf *b) {
  for (const struct sim_node *n = &c->program->nodes[s->first]; n->kind != SIM_NODE_END; n++)
    put_instruction(b, c->program, n);
}

static bool depends_on_loads(const struct core *c, const struct sim_instr *i) {
  for (int k = 0; k < i->def->n_operands; k++) {
    const struct sim_operand *o = &i->operand[k];
    if (o->kind == SIM_ACCESS && o->ref >= 0 && c->is_loaded[o->ref])
      return true;
    for (int t = 0; o->kind == SIM_ACCESS && t < o->start.n; t++)
      if (c->is_loaded[o->start.terms[t].reg])
        return true;
  }
  return false;
}

static void put_transfer(struct core *c, const struct sim_stream *s, const struct sim_instr *i, const int64_t *regs,
                         struct buf *b) {
  begin_item(b);
  buf_putc(b, '{');
  json_put_field_int(b, "id", c->n_transfers++);
  json_put_field_str(b, "queue", s->name);
  json_put_field_str(b, "op", i->def->name);
  json_put_field_str(b, "semaphore", s->name);
  json_put_key(b, "desc");
  buf_putc(b, '[');
  const bool is_known = !depends_on_loads(c, i) && neff_package_put_descriptors(c->program, i, regs, c->names, b);
  buf_putc(b, ']');
  if (!is_known)
    json_put_field_bool(b, "dynamic", true);
  buf_putc(b, '}');
}

/* Lists the transfers of a queue in their order.  Those that the data decide have "dynamic" instead of descriptors; branches on
 * data are taken once each way, as the simulator's clock does without values. */
static enum status put_transfers(struct core *c, const struct sim_stream *s, struct buf *b) {
  struct sim_cursor cursor;
  struct sim_item item;
  struct sim_fault fault;
  int n_assumed = 0;

  sim_cursor_init(&cursor, c->program, s->first, c->regs, c->is_loaded, NULL, &n_assumed, c->arena);
  for (;;) {
    if (!sim_cursor_next(&cursor, &item, &fault))
      return fail(c->err, ST_INPUT, "the queue %.60s cannot be listed: %.100s", s->name, fault.text);
    if (item.kind == SIM_ITEM_END)
      return ST_OK;
    if (item.kind != SIM_ITEM_INSTR)
      continue;
    put_transfer(c, s, &c->program->instrs[item.instr], cursor.control.regs, b);
    if (buf_status(b))
      return check_text(c, b, "transfers");
  }
}

/* Runs the function's own code, which computes what all streams share. */
static enum status run_own_code(struct core *c) {
  struct sim_cursor cursor;
  struct sim_item item;
  struct sim_fault fault;
  int n_assumed = 0;
  sim_cursor_init(&cursor, c->program, 0, c->program->initial, c->is_loaded, NULL, &n_assumed, c->arena);
  do
    if (!sim_cursor_next(&cursor, &item, &fault))
      return fail(c->err, ST_INPUT, "the program cannot be listed: %.100s", fault.text);
  while (item.kind != SIM_ITEM_END);
  c->regs = cursor.control.regs;
  return ST_OK;
}

static enum status put_stream(struct core *c, const struct sim_stream *s) {
  const struct sim_program *p = c->program;
  if (s->engine != NISA_ENGINE_DMA) {
    const int k = engine_number(s->engine);
    assert(k >= 0);
    put_instructions(c, s, &c->instr[k]);
    return ST_OK;
  }
  assert(s->trigger >= 0);
  const int k = engine_number(p->streams[s->trigger].engine);
  assert(k >= 0);
  begin_member(c, "dma_queue.", s->name);
  buf_putc(&c->def, '{');
  json_put_field_str(&c->def, "type", "data");
  json_put_field_str(&c->def, "owner", engine_files[k].key);
  json_put_field_int(&c->def, "num_queues", 1);
  buf_putc(&c->def, '}');
  return put_transfers(c, s, &c->dma[k]);
}

static enum status add_engine(struct core *c, struct neff *x, int k) {
  struct buf text;
  begin_member(c, "", engine_files[k].key);
  json_put_cstr(&c->def, engine_files[k].file);
  buf_init(&text, 2 * (size_t)TEXT_MAX + 64);
  buf_puts(&text, "{\"dma\":[");
  buf_append(&text, buf_text(&c->dma[k]), c->dma[k].len);
  buf_puts(&text, "],\n\"instr\":[");
  buf_append(&text, buf_text(&c->instr[k]), c->instr[k].len);
  buf_puts(&text, "]}\n");
  enum status st = check_text(c, &c->instr[k], "instructions");
  if (!st)
    st = check_text(c, &text, "transfers");
  if (!st)
    add_text(c, x, engine_files[k].file, &text);
  buf_clear(&text);
  return st;
}

static enum status add_definition(struct core *c, struct neff *x) {
  buf_puts(&c->def, "\n}\n");
  const enum status st = check_text(c, &c->def, "variables");
  if (!st)
    add_text(c, x, "def.json", &c->def);
  return st;
}

static enum status put_core(struct core *c, struct neff *x) {
  const struct sim_program *p = c->program;
  buf_putc(&c->def, '{');
  json_put_field_str(&c->def, "name", c->folder);
  enum status st = run_own_code(c);
  for (int k = 0; k < p->n_streams && !st; k++)
    if (p->streams[k].core == c->number && p->streams[k].engine != NISA_ENGINE_NONE)
      st = put_stream(c, &p->streams[k]);
  for (int k = 0; k < p->n_buffers && !st; k++)
    put_var(c, x, k);
  for (int k = 0; k < ENGINES && !st; k++)
    st = add_engine(c, x, k);
  return st ? st : add_definition(c, x);
}

enum status neff_package_core(struct arena *a, const struct neff_package *p, int core, struct neff *x,
                              struct error *err) {
  struct core c = {.arena = a,
                   .package = p,
                   .program = p->program,
                   .number = core,
                   .folder = arena_printf(a, "sg%02d", core),
                   .is_loaded = sim_cursor_loaded(p->program, a),
                   .err = err};
  buf_init(&c.def, TEXT_MAX);
  for (int k = 0; k < ENGINES; k++) {
    buf_init(&c.dma[k], TEXT_MAX);
    buf_init(&c.instr[k], TEXT_MAX);
  }
  name_buffers(&c);
  const enum status st = put_core(&c, x);
  buf_clear(&c.def);
  for (int k = 0; k < ENGINES; k++) {
    buf_clear(&c.dma[k]);
    buf_clear(&c.instr[k]);
  }
  return st;
}
