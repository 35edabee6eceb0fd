#include "neff/inspect.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

const char *neff_what(const struct neff_model *m) {
  return m->is_simulation ? NEFF_SIMULATION_WHAT
                          : "A NEFF of the vendor's compiler: a Neuron device with the vendor's runtime executes it.";
}

static void put_hex(char *out, const uint8_t *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    snprintf(out + 2 * i, 3, "%02x", p[i]);
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

static json_t *features_json(uint64_t bits) {
  json_t *list = json_array();
  for (int i = 0; i < 64; i++)
    if (bits >> i & 1)
      json_array_append_new(list, json_integer(i));
  return list;
}

static json_t *header_json(const struct neff *x) {
  const struct neff_header *h = &x->header;
  char hash[2 * NEFF_HASH_SIZE + 1], uuid[2 * NEFF_UUID_SIZE + 1], format[48];
  put_hex(hash, h->hash, h->package_version == 2 ? NEFF_HASH_SIZE / 2 : NEFF_HASH_SIZE); /* MD5 has 16 bytes */
  put_hex(uuid, h->uuid, NEFF_UUID_SIZE);
  snprintf(format, sizeof format, "%llu.%llu", (unsigned long long)h->major, (unsigned long long)h->minor);
  return json_pack("{s:I, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:s, s:o, s:s}", "package_version",
                   (json_int_t)h->package_version, "header_size", (json_int_t)h->header_size, "data_size",
                   (json_int_t)h->data_size, "format", format, "build", h->build, "name", h->name, "cores",
                   (json_int_t)h->cores, "requested_cores", (json_int_t)h->requested_cores, "lnc", (json_int_t)h->lnc,
                   "features", features_json(h->features), "hash", hash, "hash_matches",
                   x->hash == NEFF_HASH_UNKNOWN ? json_null() : json_boolean(x->hash == NEFF_HASH_RIGHT), "uuid", uuid);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static json_t *known(int64_t v) {
  return v < 0 ? json_null() : json_integer(v);
}

static json_t *name_or_null(const char *s) {
  return s ? json_string(s) : json_null();
}

static json_t *tensors_json(const struct neff_model *m) {
  json_t *list = json_array();
  for (int i = 0; i < m->tensors.n; i++) {
    const struct neff_tensor *t = &m->tensors.v[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", t->name, "usage",
                                          t->is_output ? "output" : "input", "dtype", t->dtype, "shape",
                                          t->shape ? json_deep_copy(t->shape) : json_null(), "size", known(t->size)));
  }
  return list;
}

static void set_fields(json_t *one, const json_t *def, enum neff_object of) {
  json_t *fields = neff_model_fields(def, of);
  if (json_object_size(fields))
    json_object_set(one, "fields", fields);
  json_decref(fields);
}

static json_t *variables_json(const struct neff_subgraph *s) {
  json_t *list = json_array();
  for (int i = 0; i < s->vars.n; i++) {
    const struct neff_var *v = &s->vars.v[i];
    json_t *one = json_pack("{s:s, s:s, s:s, s:o, s:I}", "name", v->name, "type", neff_var_type_name(v->type), "place",
                            neff_var_type_place(v->type), "id", known(v->id), "size", (json_int_t)v->size);
    if (v->file)
      json_object_set_new(one, "file", json_string(v->file));
    set_fields(one, v->json, NEFF_OF_VAR);
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *queues_json(const struct neff_subgraph *s) {
  json_t *list = json_array();
  for (int i = 0; i < s->queues.n; i++) {
    const struct neff_queue *q = &s->queues.v[i];
    json_t *one = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "name", q->name, "type", q->type, "owner", q->owner,
                            "rings", (json_int_t)q->rings, "transfers", (json_int_t)q->transfers, "descriptors",
                            (json_int_t)q->descriptors, "bytes", (json_int_t)q->bytes);
    set_fields(one, q->json, NEFF_OF_QUEUE);
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *ops_json(const struct neff_engine *e) {
  json_t *ops = json_object();
  for (int k = 0; k < NEFF_MOVE_OPS; k++)
    if (e->ops[k])
      json_object_set_new(ops, neff_move_op_name((enum neff_move_op)k), json_integer((json_int_t)e->ops[k]));
  return ops;
}

static json_t *engines_json(const struct neff_subgraph *s) {
  json_t *list = json_array();
  for (int i = 0; i < s->n_engines; i++) {
    const struct neff_engine *e = &s->engines[i];
    json_t *one =
        json_pack("{s:s, s:o, s:o, s:I, s:o, s:I, s:I, s:I, s:o}", "key", e->key, "json", name_or_null(e->json),
                  "instr", name_or_null(e->instr), "instr_size", (json_int_t)e->instr_size, "instructions",
                  known(e->instructions), "transfers", (json_int_t)e->transfers, "descriptors",
                  (json_int_t)e->descriptors, "bytes", (json_int_t)e->bytes, "ops", ops_json(e));
    if (e->object)
      set_fields(one, e->object, NEFF_OF_ENGINE);
    json_array_append_new(list, one);
  }
  return list;
}

static json_t *subgraphs_json(const struct neff_model *m) {
  json_t *list = json_array();
  for (int i = 0; i < m->subgraphs.n; i++) {
    const struct neff_subgraph *s = &m->subgraphs.v[i];
    json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o}", "name", s->name, "variables", variables_json(s),
                                          "queues", queues_json(s), "engines", engines_json(s)));
  }
  return list;
}

json_t *neff_inspect(const struct neff *x, const struct neff_model *m) {
  json_t *members = json_array();
  for (int i = 0; i < x->members.n; i++)
    json_array_append_new(
        members, json_pack("{s:s, s:I}", "name", x->members.v[i].name, "size", (json_int_t)x->members.v[i].size));
  return json_pack("{s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o}", "kind", m->is_simulation ? "simulation" : "vendor",
                   "what", neff_what(m), "header", header_json(x), "compressed", x->is_compressed, "members", members,
                   "info", m->info ? json_deep_copy(m->info) : json_null(), "tensors", tensors_json(m), "subgraphs",
                   subgraphs_json(m));
}

/* ---- two files --------------------------------------------------------------------------------------------------- */

static json_t *member_json(const struct neff_member *m) {
  unsigned char digest[EVP_MAX_MD_SIZE] = {0};
  char hex[2 * 32 + 1];
  unsigned len = 0;
  if (!EVP_Digest(m->data, m->size, digest, &len, EVP_sha256(), NULL) || len != 32)
    return NULL;
  put_hex(hex, digest, len);
  return json_pack("{s:I, s:s}", "size", (json_int_t)m->size, "sha256", hex);
}

static void add_change(json_t *list, const char *what, json_t *before, json_t *after) {
  json_t *one = json_pack("{s:s, s:s}", "what", what, "change", !before ? "added" : !after ? "removed" : "changed");
  if (before)
    json_object_set_new(one, "before", before);
  if (after)
    json_object_set_new(one, "after", after);
  json_array_append_new(list, one);
}

static void diff_headers(json_t *list, const struct neff *before, const struct neff *after) {
  static const char *const derived[] = {"header_size", "data_size", "hash", "hash_matches", "uuid"};
  json_t *b = header_json(before), *a = header_json(after), *v;
  const char *key;
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
    json_object_del(b, derived[i]);
  json_object_foreach(b, key, v) {
    json_t *other = json_object_get(a, key);
    char what[64];
    snprintf(what, sizeof what, "header.%s", key);
    if (!json_equal(v, other))
      add_change(list, what, json_incref(v), json_incref(other));
  }
  json_decref(a);
  json_decref(b);
}

json_t *neff_diff(const struct neff *before, const struct neff *after) {
  json_t *list = json_array();
  diff_headers(list, before, after);
  for (int i = 0; i < before->members.n; i++) {
    const struct neff_member *b = &before->members.v[i], *a = neff_find(after, b->name);
    if (!a || a->size != b->size || memcmp(a->data, b->data, b->size) != 0)
      add_change(list, b->name, member_json(b), a ? member_json(a) : NULL);
  }
  for (int i = 0; i < after->members.n; i++)
    if (!neff_find(before, after->members.v[i].name))
      add_change(list, after->members.v[i].name, NULL, member_json(&after->members.v[i]));
  return list;
}
