/* package_engines: the folder of a core in a package: its variables and queues, and what each engine executes. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
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

/* An endless program would fill the memory; a job's time ends long before so many transfers. */
enum { TRANSFERS_MAX = 4 << 20 };

struct core {
  struct arena *arena;
  const struct neff_package *package;
  const struct sim_program *program;
  int number;
  const char *folder;
  const char **names;  /* of the variable of each buffer */
  const int64_t *regs; /* as the function's own code leaves them */
  const bool *is_loaded;
  json_t *instr[ENGINES], *dma[ENGINES];
  int n_transfers;
  struct error *err;
};

static int engine_number(enum nisa_engine e) {
  for (int k = 0; k < ENGINES; k++)
    if (engine_files[k].engine == e)
      return k;
  return -1;
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

static void put_var(struct core *c, struct neff *x, json_t *def, int buffer) {
  const struct sim_buffer *b = &c->program->buffers[buffer];
  const int copies = b->place.copies > 1 ? b->place.copies : 1;
  const char *type = var_type(c, buffer);
  if (is_on_chip(b) && b->core != c->number)
    return;
  json_t *v = json_pack("{s:s, s:i, s:I}", "type", type, "var_id", buffer, "size", (json_int_t)(b->bytes * copies));
  if (b->place.is_set && is_on_chip(b))
    json_object_set_new(v, "place",
                        json_pack("{s:s, s:i, s:i, s:I, s:i, s:I}", "memory", b->space == MEM_PSUM ? "PSUM" : "SBUF",
                                  "partition", b->place.partition, "bank", b->place.bank, "offset",
                                  (json_int_t)b->place.offset, "copies", copies, "stride",
                                  (json_int_t)b->place.stride));
  if (b->kind == SIM_GLOBAL) {
    const char *file = arena_printf(c->arena, "%s.npy", c->names[buffer]);
    json_object_set_new(v, "file_name", json_string(file));
    add_constant(c, x, arena_printf(c->arena, "%s/%s", c->folder, file), b);
  }
  json_object_set_new(def, arena_printf(c->arena, "var.%s", c->names[buffer]), v);
}

/* ---- what the engines execute ------------------------------------------------------------------------------------ */

/* Lists the nodes of an engine's program, each once, as its text has them. */
static void put_instructions(const struct core *c, const struct sim_stream *s, json_t *list) {
  const struct sim_program *p = c->program;
  for (const struct sim_node *n = &p->nodes[s->first]; n->kind != SIM_NODE_END; n++)
    switch (n->kind) {
    case SIM_NODE_INSTR:
      json_array_append_new(
          list, json_pack("{s:s, s:b}", "op", p->instrs[n->a].def->name, "signals", p->instrs[n->a].signals));
      break;
    case SIM_NODE_WAIT:
      json_array_append_new(list, json_pack("{s:s, s:s}", "op", "wait", "semaphore", p->streams[n->a].name));
      break;
    case SIM_NODE_TRIGGER:
      json_array_append_new(list, json_pack("{s:s, s:s}", "op", "dma_trigger", "queue", p->streams[n->a].name));
      break;
    case SIM_NODE_BARRIER:
      json_array_append_new(list, json_pack("{s:s}", "op", "barrier"));
      break;
    default:
      break;
    }
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

/* Lists the transfers of a queue in their order.  Those that the data decide have "dynamic" instead of descriptors; branches on
 * data are taken once each way, as the simulator's clock does without values. */
static enum status put_transfers(struct core *c, const struct sim_stream *s, json_t *list) {
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
    if (++c->n_transfers > TRANSFERS_MAX)
      return fail(c->err, ST_LIMIT, "the kernel has more than %d transfers, too many to list", TRANSFERS_MAX);
    const struct sim_instr *i = &c->program->instrs[item.instr];
    json_t *desc =
        depends_on_loads(c, i) ? NULL : neff_package_descriptors(c->program, i, cursor.control.regs, c->names);
    json_t *t = json_pack("{s:i, s:s, s:s, s:s, s:o}", "id", c->n_transfers - 1, "queue", s->name, "op", i->def->name,
                          "semaphore", s->name, "desc", desc ? desc : json_array());
    if (!desc)
      json_object_set_new(t, "dynamic", json_true());
    json_array_append_new(list, t);
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

static enum status put_stream(struct core *c, json_t *def, const struct sim_stream *s) {
  const struct sim_program *p = c->program;
  if (s->engine != NISA_ENGINE_DMA) {
    const int k = engine_number(s->engine);
    assert(k >= 0);
    put_instructions(c, s, c->instr[k]);
    return ST_OK;
  }
  assert(s->trigger >= 0);
  const int k = engine_number(p->streams[s->trigger].engine);
  assert(k >= 0);
  json_object_set_new(def, arena_printf(c->arena, "dma_queue.%s", s->name),
                      json_pack("{s:s, s:s, s:i}", "type", "data", "owner", engine_files[k].key, "num_queues", 1));
  return put_transfers(c, s, c->dma[k]);
}

static enum status add_engines(struct core *c, struct neff *x, json_t *def) {
  enum status st = ST_OK;
  for (int k = 0; k < ENGINES; k++) {
    json_object_set_new(def, engine_files[k].key, json_string(engine_files[k].file));
    json_t *v = json_pack("{s:O, s:O}", "dma", c->dma[k], "instr", c->instr[k]);
    const enum status one =
        neff_package_add_json(c->arena, x, arena_printf(c->arena, "%s/%s", c->folder, engine_files[k].file), v, c->err);
    st = st ? st : one;
  }
  return st;
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
  json_t *def = json_pack("{s:s}", "name", c.folder);
  for (int k = 0; k < ENGINES; k++)
    c.dma[k] = json_array(), c.instr[k] = json_array();
  name_buffers(&c);
  enum status st = run_own_code(&c);
  for (int k = 0; k < p->program->n_streams && !st; k++)
    if (p->program->streams[k].core == core && p->program->streams[k].engine != NISA_ENGINE_NONE)
      st = put_stream(&c, def, &p->program->streams[k]);
  for (int k = 0; k < p->program->n_buffers && !st; k++)
    put_var(&c, x, def, k);
  if (!st)
    st = add_engines(&c, x, def);
  if (!st)
    st = neff_package_add_json(a, x, arena_printf(a, "%s/def.json", c.folder), json_incref(def), err);
  json_decref(def);
  for (int k = 0; k < ENGINES; k++) {
    json_decref(c.dma[k]);
    json_decref(c.instr[k]);
  }
  return st;
}
