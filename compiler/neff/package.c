#include "neff/package.h"

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "neff/inspect.h"
#include "neff/model.h"
#include "neff/package_internal.h"

#define PROGRAM_MEMBER "program.mlir"
#define PROGRAM_FORMAT "engine-programs"

enum { FORMAT_MAJOR = 1, PACKAGE_VERSION = 2 };

enum status neff_package_add_json(struct arena *a, struct neff *x, const char *name, json_t *v, struct error *err) {
  char *text = v ? json_dumps(v, JSON_INDENT(1)) : NULL;
  json_decref(v);
  if (!text)
    return fail(err, ST_NOMEM, "no memory for %.60s", name);
  const size_t n = strlen(text);
  neff_add(a, x, name, arena_dup(a, text, n + 1), n);
  free(text);
  return ST_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static json_t *shape_json(const struct neff_io *t) {
  json_t *list = json_array();
  for (int d = 0; d < t->rank; d++)
    json_array_append_new(list, json_integer((json_int_t)t->dims[d]));
  return list;
}

/* A graph in the form of NNVM: a node for each input, one for the program, and one for each output. */
static json_t *graph_json(const struct neff_package *p) {
  json_t *nodes = json_array(), *args = json_array(), *heads = json_array(), *shapes = json_array(),
         *types = json_array(), *operands = json_array();
  for (int k = 0; k < p->n_inputs; k++) {
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:[]}", "op", "null", "name", p->inputs[k].name, "inputs"));
    json_array_append_new(args, json_integer(k));
    json_array_append_new(operands, json_pack("[i, i, i]", k, 0, 0));
    json_array_append_new(shapes, shape_json(&p->inputs[k]));
    json_array_append_new(types, json_string(dtype_numpy_name(p->inputs[k].dtype)));
  }
  json_array_append_new(nodes, json_pack("{s:s, s:s, s:o}", "op", "NeuronCore", "name", "sg00", "inputs", operands));
  json_array_append_new(shapes, json_array());
  json_array_append_new(types, json_string(""));
  for (int k = 0; k < p->n_outputs; k++) {
    json_array_append_new(nodes, json_pack("{s:s, s:s, s:[[i, i, i]]}", "op", "output", "name", p->outputs[k].name,
                                           "inputs", p->n_inputs, k, 0));
    json_array_append_new(heads, json_pack("[i, i, i]", p->n_inputs + 1 + k, 0, 0));
    json_array_append_new(shapes, shape_json(&p->outputs[k]));
    json_array_append_new(types, json_string(dtype_numpy_name(p->outputs[k].dtype)));
  }
  return json_pack("{s:o, s:o, s:o, s:{s:[s, o], s:[s, o]}}", "nodes", nodes, "arg_nodes", args, "heads", heads,
                   "attrs", "shape", "list_shape", shapes, "dltype", "list_str", types);
}

static json_t *info_json(const struct neff_package *p) {
  json_t *aliases = json_array();
  for (int k = 0; k < p->n_outputs; k++)
    if (p->outputs[k].alias_of >= 0)
      json_array_append_new(aliases, json_pack("{s:s, s:s}", "output", p->outputs[k].name, "input",
                                               p->inputs[p->outputs[k].alias_of].name));
  json_t *v =
      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "tool_version", "nkx", "release", p->release, "pipeline",
                p->pipeline, "kernel", p->kernel, "target", target_name(p->target), "program", PROGRAM_MEMBER,
                "executed_by", "the simulated machine only: no device executes this package", "aliases", aliases);
  json_object_set_new(v, "simulation", json_true());
  if (p->time_ps >= 0)
    json_object_set_new(v, "simulated_time_us", json_real((double)p->time_ps / 1e6));
  return v;
}

static json_t *kelf_json(int n_cores, struct arena *a) {
  json_t *graphs = json_array();
  for (int k = 0; k < n_cores; k++)
    json_array_append_new(graphs, json_pack("{s:s, s:s}", "definition", arena_printf(a, "sg%02d/def.json", k), "name",
                                            arena_printf(a, "sg%02d", k)));
  return json_pack("{s:s, s:o}", "version", "0.5", "graphs", graphs);
}

/* The uuid is a hash of the program, so that equal packages are equal files. */
static bool put_header(const struct neff_package *p, int n_cores, struct neff_header *h) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned len = 0;
  *h = (struct neff_header){.package_version = PACKAGE_VERSION,
                            .major = FORMAT_MAJOR,
                            .features = NEFF_FEATURE_SIMULATION,
                            .cores = (uint32_t)n_cores,
                            .requested_cores = (uint32_t)n_cores,
                            .lnc = (uint32_t)n_cores};
  h->node_cores[0] = (uint8_t)n_cores;
  snprintf(h->build, sizeof h->build, "nkx %.40s simulation package", p->release);
  snprintf(h->name, sizeof h->name, "%.200s", p->kernel);
  if (!EVP_Digest(p->text, p->text_len, digest, &len, EVP_sha256(), NULL) || len < NEFF_UUID_SIZE)
    return false;
  memcpy(h->uuid, digest, NEFF_UUID_SIZE);
  return true;
}

enum status neff_package_make(struct arena *a, const struct neff_package *p, struct neff *out, struct error *err) {
  struct neff x = {.is_compressed = true};
  const int n_cores = p->program->n_cores > 1 ? p->program->n_cores : 1;

  assert(p->program->n_args == p->n_inputs && p->program->n_results == p->n_outputs);
  if (!p->program->has_engines)
    return fail(err, ST_INPUT, "only programs of the stage " PROGRAM_FORMAT " can be packed");
  if (!put_header(p, n_cores, &x.header))
    return fail(err, ST_BUG, "the hash of a program cannot be computed");
  enum status st = neff_package_add_json(a, &x, "info.json", info_json(p), err);
  if (!st)
    st = neff_package_add_json(a, &x, "neff.json", graph_json(p), err);
  if (!st)
    st = neff_package_add_json(a, &x, "kelf-0.json", kelf_json(n_cores, a), err);
  neff_add(a, &x, PROGRAM_MEMBER, p->text, p->text_len);
  for (int k = 0; k < n_cores && !st; k++)
    st = neff_package_core(a, p, k, &x, err);
  if (!st)
    *out = x;
  return st;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static enum status read_io(struct arena *a, const struct neff_tensor *t, struct neff_io *out, struct error *err) {
  const size_t rank = json_array_size(t->shape);
  *out = (struct neff_io){.name = arena_strdup(a, t->name), .dtype = dtype_from_name(t->dtype), .alias_of = -1};
  if (!t->shape || rank > NEFF_PACKAGE_RANK_MAX || out->dtype == DT_NONE || dtype_is_complex(out->dtype))
    return fail(err, ST_INPUT, "neff.json: %.60s needs a type and a shape", t->name);
  out->rank = (int)rank;
  for (size_t d = 0; d < rank; d++) {
    out->dims[d] = (int64_t)json_integer_value(json_array_get(t->shape, d));
    if (out->dims[d] < 0)
      return fail(err, ST_INPUT, "neff.json: the shape of %.60s has a negative size", t->name);
  }
  return ST_OK;
}

static enum status read_ios(struct arena *a, const struct neff_model *m, struct neff_opened *x, struct error *err) {
  x->inputs = arena_new_array(a, struct neff_io, (size_t)m->tensors.n + 1);
  x->outputs = arena_new_array(a, struct neff_io, (size_t)m->tensors.n + 1);
  enum status st = ST_OK;
  for (int k = 0; k < m->tensors.n && !st; k++) {
    const struct neff_tensor *t = &m->tensors.v[k];
    st = read_io(a, t, t->is_output ? &x->outputs[x->n_outputs++] : &x->inputs[x->n_inputs++], err);
  }
  return st;
}

static int find_io(int n, const struct neff_io *v, const char *name) {
  for (int k = 0; name && k < n; k++)
    if (!strcmp(v[k].name, name))
      return k;
  return -1;
}

static void read_aliases(const json_t *info, struct neff_opened *x) {
  const json_t *one;
  size_t i;
  json_array_foreach(json_object_get(info, "aliases"), i, one) {
    const int out = find_io(x->n_outputs, x->outputs, json_string_value(json_object_get(one, "output")));
    const int in = find_io(x->n_inputs, x->inputs, json_string_value(json_object_get(one, "input")));
    if (out >= 0)
      x->outputs[out].alias_of = in;
  }
}

enum status neff_package_open(struct arena *a, const struct neff *x, struct neff_opened *out, struct error *err) {
  const struct neff_member *text = neff_find(x, PROGRAM_MEMBER);
  struct neff_model m;
  *out = (struct neff_opened){0};
  enum status st = neff_model_read(a, x, &m, err);
  const char *kernel = json_string_value(json_object_get(m.info, "kernel"));
  const char *target = json_string_value(json_object_get(m.info, "target"));

  if (!st && !m.is_simulation)
    st = fail(
        err, ST_INPUT,
        "it is a NEFF of the vendor's compiler, which a Neuron device executes; the simulated machine runs simulation "
        "packages");
  if (!st && (!text || !kernel || !target || !target_from_name(target, &out->target)))
    st = fail(err, ST_INPUT, "the simulation package lacks its program, or info.json its kernel or machine");
  if (!st)
    st = read_ios(a, &m, out, err);
  if (!st) {
    out->kernel = arena_strdup(a, kernel);
    out->text = text->data;
    out->text_len = text->size;
    read_aliases(m.info, out);
  }
  neff_model_clear(&m);
  return st;
}
