#include "neff/model.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"

/* A list of parsed members, freed together. */
struct neff_json {
  json_t *value;
  struct neff_json *next;
};

/* The keys of def.json that name an engine's files. */
static const struct {
  const char *key, *instr;
} engine_keys[NEFF_ENGINES] = {
    {"pe", "pe_instr"}, {"act", "act_instr"}, {"dve", "dve_instr"}, {"pool", "pool_instr"}, {"sp", "sp_instr"}};

enum { DIMS = 4, SOURCES = 16 };

struct reading {
  struct arena *arena;
  const struct neff *neff;
  struct neff_model *model;
  struct neff_subgraph *sub; /* in progress */
  struct index vars;         /* of it, by name */
  struct error *err;
};

/* ---- members as JSON --------------------------------------------------------------------------------------------- */

static enum status parse_member(struct reading *r, const struct neff_member *m, json_t **out) {
  json_error_t e;
  json_t *v = json_loadb(m->data, m->size, JSON_REJECT_DUPLICATES, &e);
  if (!v)
    return fail(r->err, ST_INPUT, "%.100s:%d: %.100s", m->name, e.line, e.text);
  struct neff_json *kept = arena_new(r->arena, struct neff_json);
  *kept = (struct neff_json){v, r->model->parsed};
  r->model->parsed = kept;
  if (!json_is_object(v))
    return fail(r->err, ST_INPUT, "%.100s is no JSON object", m->name);
  *out = v;
  return ST_OK;
}

/* *out: NULL if x has no such member. */
static enum status parse_optional(struct reading *r, const char *name, json_t **out) {
  const struct neff_member *m = neff_find(r->neff, name);
  *out = NULL;
  return m ? parse_member(r, m, out) : ST_OK;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *s = json_string_value(json_object_get(object, key));
  return s ? s : "";
}

/* "dma_queue.q0" with the prefix "dma_queue." is q0; NULL for another key. */
static const char *after_prefix(const char *key, const char *prefix) {
  const size_t n = strlen(prefix);
  return strncmp(key, prefix, n) ? NULL : key + n;
}

/* ---- variables and queues ---------------------------------------------------------------------------------------- */

static enum status add_var(struct reading *r, const char *name, const json_t *v) {
  struct neff_var var = {.name = name, .id = -1, .json = v};
  const char *type = text_of(v, "type");
  while (var.type < NEFF_VAR_TYPES && strcmp(neff_var_type_name(var.type), type) != 0)
    var.type++;
  if (var.type == NEFF_VAR_TYPES)
    return fail(r->err, ST_INPUT, "%.40s/def.json: variable %.60s has the unknown type \"%.40s\"", r->sub->name, name,
                type);
  const json_t *size = json_object_get(v, "size"), *id = json_object_get(v, "var_id");
  if (!json_is_integer(size) || json_integer_value(size) < 0)
    return fail(r->err, ST_INPUT, "%.40s/def.json: variable %.60s needs a size in bytes", r->sub->name, name);
  var.size = json_integer_value(size);
  if (json_is_integer(id))
    var.id = json_integer_value(id);
  if (var.type == NEFF_VAR_FILE)
    var.file = text_of(v, "file_name");
  const char *wrong = neff_model_wrong_field(v, NEFF_OF_VAR);
  if (wrong)
    return fail(r->err, ST_INPUT, "%.40s/def.json: variable %.60s has a wrong %s", r->sub->name, name, wrong);
  index_add(&r->vars, hash_text(name), r->sub->vars.n);
  array_push(r->arena, &r->sub->vars, var);
  return ST_OK;
}

static enum status add_queue(struct reading *r, const char *name, const json_t *v) {
  struct neff_queue q = {.name = name, .type = text_of(v, "type"), .owner = text_of(v, "owner"), .rings = 1, .json = v};
  const json_t *rings = json_object_get(v, "num_queues");
  if (rings)
    q.rings = json_integer_value(rings);
  if (q.rings < 1 || q.rings > SOURCES)
    return fail(r->err, ST_INPUT, "%.40s/def.json: queue %.60s needs 1 to %d rings", r->sub->name, name, SOURCES);
  const char *wrong = neff_model_wrong_field(v, NEFF_OF_QUEUE);
  if (wrong)
    return fail(r->err, ST_INPUT, "%.40s/def.json: queue %.60s has a wrong %s", r->sub->name, name, wrong);
  array_push(r->arena, &r->sub->queues, q);
  return ST_OK;
}

static const struct neff_var *find_var(const struct reading *r, const char *name) {
  for (struct index_probe p = index_probe(&r->vars, hash_text(name)); index_next(&p);)
    if (!strcmp(r->sub->vars.v[p.entry].name, name))
      return &r->sub->vars.v[p.entry];
  return NULL;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

struct pattern {
  int64_t offset, bytes, size[DIMS], step[DIMS];
  int n;
};

/* Reads the side of a descriptor, "from" or "to": the first size counts bytes, the others repetitions. */
static bool read_pattern(const json_t *d, const char *side, struct pattern *p) {
  char key[16];
  *p = (struct pattern){.bytes = 1};
  snprintf(key, sizeof key, "%s_off", side);
  const json_t *off = json_object_get(d, key);
  p->offset = json_integer_value(off);
  snprintf(key, sizeof key, "%s_sizes", side);
  const json_t *sizes = json_object_get(d, key);
  snprintf(key, sizeof key, "%s_steps", side);
  const json_t *steps = json_object_get(d, key);
  const size_t n = json_array_size(sizes), n_steps = json_array_size(steps);
  if ((off && !json_is_integer(off)) || p->offset < 0 || n < 1 || n > DIMS || (n_steps != n && n_steps + 1 != n))
    return false;
  p->n = (int)n;
  for (size_t i = 0; i < n; i++) {
    p->size[i] = json_integer_value(json_array_get(sizes, i));
    p->step[i] = i ? json_integer_value(json_array_get(steps, i - (n - n_steps))) : 1;
    if (p->size[i] < 1 || p->step[i] < 0 || __builtin_mul_overflow(p->bytes, p->size[i], &p->bytes))
      return false;
  }
  return true;
}

/* The first byte after those that the pattern touches; -1 if there is no such number. */
static int64_t end_of(const struct pattern *p) {
  int64_t end = p->offset, reach;
  if (__builtin_add_overflow(end, p->size[0], &end))
    return -1;
  for (int i = 1; i < p->n; i++)
    if (__builtin_mul_overflow(p->size[i] - 1, p->step[i], &reach) || __builtin_add_overflow(end, reach, &end))
      return -1;
  return end;
}

/* No byte is touched twice.  Dimensions are taken by their steps; it may be true of a pattern for which this is false, but
 * not of one whose dimensions nest. */
static bool is_distinct(struct pattern p) {
  int64_t reach = p.size[0];
  for (int k = 1; k < p.n; k++) {
    int least = k;
    for (int i = k; i < p.n; i++)
      if (p.step[i] < p.step[least])
        least = i;
    const int64_t step = p.step[least], size = p.size[least];
    p.step[least] = p.step[k], p.size[least] = p.size[k];
    if (size > 1 && step < reach)
      return false;
    reach += (size - 1) * step;
  }
  return true;
}

static enum status check_side(struct reading *r, const char *engine, const char *var_name, const struct pattern *p,
                              bool is_written) {
  const struct neff_var *v = find_var(r, var_name);
  if (!v)
    return fail(r->err, ST_INPUT, "%.80s: a descriptor names %.60s, which is no variable of def.json", engine,
                var_name);
  const int64_t end = end_of(p);
  if (end < 0 || end > v->size)
    return fail(r->err, ST_INPUT, "%.80s: a descriptor reaches past the end of %.60s, which has %lld bytes", engine,
                var_name, (long long)v->size);
  if (is_written && !is_distinct(*p))
    return fail(r->err, ST_INPUT, "%.80s: a descriptor writes bytes of %.60s twice", engine, var_name);
  return ST_OK;
}

static enum status read_descriptor(struct reading *r, const char *engine, const json_t *d, int64_t *bytes) {
  struct pattern from, to;
  const json_t *many = json_object_get(d, "from_arr");
  if (!json_is_object(d) || !read_pattern(d, "from", &from) || !read_pattern(d, "to", &to))
    return fail(r->err, ST_INPUT, "%.80s: a descriptor needs offsets, 1 to %d sizes and their steps", engine, DIMS);
  enum status st = check_side(r, engine, text_of(d, "to"), &to, true);
  if (json_array_size(many) > SOURCES)
    return fail(r->err, ST_INPUT, "%.80s: a descriptor has more than %d sources", engine, SOURCES);
  if (!many && !st)
    st = check_side(r, engine, text_of(d, "from"), &from, false);
  for (size_t i = 0; i < json_array_size(many) && !st; i++) {
    const json_t *one = json_array_get(many, i);
    const char *name = json_is_object(one) ? text_of(one, "from") : json_string_value(one);
    st = check_side(r, engine, name ? name : "", &from, false);
  }
  *bytes = to.bytes;
  return st;
}

/* A transfer names its queue, or one of the queue's instances. */
static bool is_of_queue(const struct neff_queue *q, const char *queue, const char *instance) {
  const json_t *one;
  size_t i;
  if (!strcmp(q->name, queue))
    return true;
  json_array_foreach(json_object_get(q->json, "queue_instances"), i, one) {
    if (*instance && !strcmp(json_string_value(one), instance))
      return true;
  }
  return false;
}

static struct neff_queue *find_queue(const struct reading *r, const json_t *transfer) {
  const char *queue = text_of(transfer, "queue"), *instance = text_of(transfer, "instance_name");
  for (int i = 0; i < r->sub->queues.n; i++)
    if (is_of_queue(&r->sub->queues.v[i], queue, instance))
      return &r->sub->queues.v[i];
  return NULL;
}

static enum neff_move_op op_of(const json_t *descriptor) {
  const json_t *op = json_object_get(descriptor, "op");
  const char *name = op ? json_string_value(op) : neff_move_op_name(NEFF_OP_COPY);
  for (int k = 0; name && k < NEFF_OP_OTHER; k++)
    if (!strcmp(neff_move_op_name((enum neff_move_op)k), name))
      return (enum neff_move_op)k;
  return NEFF_OP_OTHER;
}

static enum status read_transfers(struct reading *r, struct neff_engine *e, const json_t *list) {
  const json_t *transfer, *d;
  size_t i, k;
  enum status st = ST_OK;

  json_array_foreach(list, i, transfer) {
    struct neff_queue *q = find_queue(r, transfer);
    const json_t *desc = json_object_get(transfer, "desc");
    int64_t sum = 0, bytes = 0;
    json_array_foreach(desc, k, d) {
      st = read_descriptor(r, e->json, d, &bytes);
      if (st)
        return st;
      if (__builtin_add_overflow(sum, bytes, &sum))
        return fail(r->err, ST_INPUT, "%.80s: a transfer moves too many bytes", e->json);
      e->ops[op_of(d)]++;
    }
    e->transfers++;
    e->descriptors += (int64_t)json_array_size(desc);
    if (__builtin_add_overflow(e->bytes, sum, &e->bytes))
      return fail(r->err, ST_INPUT, "%.80s: its transfers move too many bytes", e->json);
    if (q) {
      q->transfers++;
      q->descriptors += (int64_t)json_array_size(desc);
      if (__builtin_add_overflow(q->bytes, sum, &q->bytes))
        return fail(r->err, ST_INPUT, "%.40s/def.json: the transfers of %.60s move too many bytes", r->sub->name,
                    q->name);
    }
  }
  return st;
}

/* ---- engines and subgraphs --------------------------------------------------------------------------------------- */

/* def.json names files relative to its own folder. */
static const struct neff_member *find_file(const struct reading *r, const char *file) {
  return *file ? neff_find(r->neff, arena_printf(r->arena, "%s/%s", r->sub->name, file)) : NULL;
}

static enum status read_engine(struct reading *r, const json_t *def, int k) {
  struct neff_engine e = {.key = engine_keys[k].key, .instructions = -1};
  const char *json_name = text_of(def, e.key), *instr_name = text_of(def, engine_keys[k].instr);
  const struct neff_member *text = find_file(r, json_name), *instr = find_file(r, instr_name);
  json_t *v;

  if (!*json_name && !*instr_name)
    return ST_OK;
  if ((*json_name && !text) || (*instr_name && !instr))
    return fail(r->err, ST_INPUT, "%.40s/def.json names %.80s, which is no member", r->sub->name,
                text ? instr_name : json_name);
  e.instr = instr ? instr->name : NULL;
  e.instr_size = instr ? (int64_t)instr->size : 0;
  enum status st = ST_OK;
  if (text) {
    e.json = text->name;
    st = parse_member(r, text, &v);
    e.object = st ? NULL : v;
    if (!st && json_is_array(json_object_get(v, "instr")))
      e.instructions = (int64_t)json_array_size(json_object_get(v, "instr"));
    if (!st)
      st = read_transfers(r, &e, json_object_get(v, "dma"));
  }
  if (!st)
    r->sub->engines[r->sub->n_engines++] = e;
  return st;
}

static enum status read_subgraph(struct reading *r, const char *name, const struct neff_member *m) {
  json_t *def, *v;
  const char *key, *rest;
  enum status st = parse_member(r, m, &def);

  r->sub = array_push(r->arena, &r->model->subgraphs, (struct neff_subgraph){.name = name});
  r->vars = (struct index){.arena = r->arena};
  if (st)
    return st;
  json_object_foreach(def, key, v) {
    if ((rest = after_prefix(key, "var.")))
      st = add_var(r, rest, v);
    else if ((rest = after_prefix(key, "dma_queue.")))
      st = add_queue(r, rest, v);
    if (st)
      return st;
  }
  for (int k = 0; k < NEFF_ENGINES && !st; k++)
    st = read_engine(r, def, k);
  return st;
}

/* Subgraphs are the folders that have a def.json. */
static enum status read_subgraphs(struct reading *r) {
  enum status st = ST_OK;
  for (int i = 0; i < r->neff->members.n && !st; i++) {
    const struct neff_member *m = &r->neff->members.v[i];
    const char *slash = strchr(m->name, '/');
    if (slash && !strcmp(slash, "/def.json"))
      st = read_subgraph(r, arena_strndup(r->arena, m->name, (size_t)(slash - m->name)), m);
  }
  return st;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* An attribute of a graph in the form ["list_shape", [...]]. */
static const json_t *graph_attr(const json_t *graph, const char *key) {
  const json_t *v = json_object_get(json_object_get(graph, "attrs"), key);
  return json_is_array(v) && json_array_size(v) == 2 ? json_array_get(v, 1) : v;
}

static int64_t size_of(const struct neff_model *m, const char *name) {
  for (int s = 0; s < m->subgraphs.n; s++)
    for (int i = 0; i < m->subgraphs.v[s].vars.n; i++)
      if (!strcmp(m->subgraphs.v[s].vars.v[i].name, name))
        return m->subgraphs.v[s].vars.v[i].size;
  return -1;
}

static void add_node_tensor(struct reading *r, const json_t *graph, size_t node, bool is_output) {
  const json_t *n = json_array_get(json_object_get(graph, "nodes"), node);
  const json_t *shape = json_array_get(graph_attr(graph, "shape"), node);
  const char *dtype = json_string_value(json_array_get(graph_attr(graph, "dltype"), node)), *name = text_of(n, "name");
  if (*name)
    array_push(r->arena, &r->model->tensors,
               (struct neff_tensor){name, dtype ? dtype : "", is_output, size_of(r->model, name),
                                    json_is_array(shape) ? shape : NULL});
}

/* A graph has its inputs in arg_nodes and its outputs in heads; without a graph the variables tell. */
static void read_tensors(struct reading *r, const json_t *graph) {
  const json_t *v;
  size_t i;
  json_array_foreach(json_object_get(graph, "arg_nodes"), i, v) if (json_is_integer(v) && json_integer_value(v) >= 0)
      add_node_tensor(r, graph, (size_t)json_integer_value(v), false);
  json_array_foreach(json_object_get(graph, "heads"), i, v) {
    const json_t *node = json_is_array(v) ? json_array_get(v, 0) : v;
    if (json_is_integer(node) && json_integer_value(node) >= 0)
      add_node_tensor(r, graph, (size_t)json_integer_value(node), true);
  }
  if (r->model->tensors.n)
    return;
  for (int s = 0; s < r->model->subgraphs.n; s++)
    for (int k = 0; k < r->model->subgraphs.v[s].vars.n; k++) {
      const struct neff_var *var = &r->model->subgraphs.v[s].vars.v[k];
      if (var->type == NEFF_VAR_INPUT || var->type == NEFF_VAR_OUTPUT)
        array_push(r->arena, &r->model->tensors,
                   (struct neff_tensor){var->name, "", var->type == NEFF_VAR_OUTPUT, var->size, NULL});
    }
}

enum status neff_model_read(struct arena *a, const struct neff *x, struct neff_model *out, struct error *err) {
  json_t *graph = NULL, *info = NULL;
  *out = (struct neff_model){.is_simulation = (x->header.features & NEFF_FEATURE_SIMULATION) != 0};
  struct reading r = {.arena = a, .neff = x, .model = out, .err = err};
  enum status st = read_subgraphs(&r);
  if (!st)
    st = parse_optional(&r, "info.json", &info);
  if (!st && info && !json_is_object(info))
    st = fail(err, ST_INPUT, "info.json: expected an object");
  if (!st)
    st = parse_optional(&r, "neff.json", &graph);
  if (!st) {
    out->info = info;
    read_tensors(&r, graph);
  }
  return st;
}

void neff_model_clear(struct neff_model *m) {
  for (const struct neff_json *p = m->parsed; p; p = p->next)
    json_decref(p->value);
  m->parsed = NULL;
}
