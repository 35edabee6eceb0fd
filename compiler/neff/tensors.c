#include "neff/tensors.h"

#include <endian.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"

enum { HEADER_MAX = 1 << 20, ALIGN = 8, NAME_MAX_LEN = 512 };

static const char metadata[] = "__metadata__";

static const struct {
  enum dtype dtype;
  const char *name;
} names[] = {
    {DT_BOOL, "BOOL"},      {DT_I8, "I8"},   {DT_I16, "I16"}, {DT_I32, "I32"},          {DT_I64, "I64"},
    {DT_U8, "U8"},          {DT_U16, "U16"}, {DT_U32, "U32"}, {DT_U64, "U64"},          {DT_F16, "F16"},
    {DT_BF16, "BF16"},      {DT_F32, "F32"}, {DT_F64, "F64"}, {DT_F8E4M3FN, "F8_E4M3"}, {DT_F8E4M3, "F8_E4M3B"},
    {DT_F8E5M2, "F8_E5M2"},
};

static const char *name_of(enum dtype t) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].dtype == t)
      return names[i].name;
  return NULL;
}

static enum dtype dtype_of(const char *name) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i].name, name))
      return names[i].dtype;
  return DT_NONE;
}

/* False if the product is larger than any size. */
static bool bytes_of(const struct tensor *t, size_t *out) {
  size_t n = dtype_size(t->dtype);
  for (int d = 0; d < t->rank; d++)
    if (t->dims[d] < 0 || __builtin_mul_overflow(n, (size_t)t->dims[d], &n))
      return false;
  *out = n;
  return true;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_header(struct buf *h, const struct tensors *t) {
  size_t at = 0;
  buf_putc(h, '{');
  if (t->n_meta) {
    json_put_key(h, metadata);
    buf_putc(h, '{');
    for (int i = 0; i < t->n_meta; i++)
      json_put_field_str(h, t->meta[i].key, t->meta[i].value);
    buf_putc(h, '}');
  }
  for (int i = 0; i < t->n; i++) {
    const struct tensor *x = &t->v[i];
    json_put_comma(h); /* a name may need escapes, which a key of ours never does */
    json_put_cstr(h, x->name);
    buf_puts(h, ":{");
    json_put_field_str(h, "dtype", name_of(x->dtype));
    json_put_key(h, "shape");
    buf_putc(h, '[');
    for (int d = 0; d < x->rank; d++)
      buf_printf(h, d ? ",%lld" : "%lld", (long long)x->dims[d]);
    buf_printf(h, "],\"data_offsets\":[%zu,%zu]}", at, at + x->size);
    at += x->size;
  }
  buf_putc(h, '}');
  while (h->len % ALIGN && !buf_status(h))
    buf_putc(h, ' ');
}

enum status tensors_write(struct buf *b, const struct tensors *t, struct error *err) {
  struct buf h;
  size_t size;
  for (int i = 0; i < t->n; i++)
    if (!name_of(t->v[i].dtype) || !bytes_of(&t->v[i], &size) || size != t->v[i].size)
      return fail(err, ST_INPUT, "%.80s has a type or a size that cannot be written", t->v[i].name);
  buf_init(&h, HEADER_MAX);
  put_header(&h, t);
  const uint64_t n = htole64((uint64_t)h.len);
  enum status st = buf_status(&h);
  if (!st) {
    buf_append(b, &n, sizeof n);
    buf_append(b, buf_text(&h), h.len);
    for (int i = 0; i < t->n; i++)
      buf_append(b, t->v[i].data, t->v[i].size);
    st = buf_status(b);
  }
  buf_clear(&h);
  return st ? fail(err, st, "the arrays are too large") : ST_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct reader {
  struct arena *arena;
  const char *data; /* the elements */
  size_t size, at;
  struct tensors *out;
};

static enum status read_meta(struct reader *r, const json_t *o, struct error *err) {
  const char *key;
  json_t *v;
  if (!json_is_object(o) || json_object_size(o) > TENSORS_META_MAX)
    return fail(err, ST_INPUT, "%s is no object of at most %d texts", metadata, TENSORS_META_MAX);
  json_object_foreach((json_t *)o, key, v) {
    if (!json_is_string(v))
      return fail(err, ST_INPUT, "%s has a value that is no text", metadata);
    r->out->meta[r->out->n_meta++] =
        (struct tensors_meta){arena_strdup(r->arena, key), arena_strdup(r->arena, json_string_value(v))};
  }
  return ST_OK;
}

static enum status read_type(const json_t *o, struct tensor *t, struct error *err) {
  const char *dtype = json_string_value(json_object_get(o, "dtype"));
  const json_t *shape = json_object_get(o, "shape"), *d;
  size_t i;
  t->dtype = dtype ? dtype_of(dtype) : DT_NONE;
  if (t->dtype == DT_NONE || !json_is_array(shape) || json_array_size(shape) > TENSOR_RANK_MAX)
    return fail(err, ST_INPUT, "\"%.60s\" has no known type or no shape", t->name);
  json_array_foreach(shape, i, d) {
    if (!json_is_integer(d))
      return fail(err, ST_INPUT, "\"%.60s\" has a shape that is no list of numbers", t->name);
    t->dims[t->rank++] = json_integer_value(d);
  }
  return bytes_of(t, &t->size) ? ST_OK : fail(err, ST_INPUT, "\"%.60s\" has an impossible shape", t->name);
}

/* The array must begin where the one before ends, so that none overlap and nothing is hidden between them. */
static enum status read_tensor(struct reader *r, const char *name, const json_t *o, struct error *err) {
  struct tensor *t = &r->out->v[r->out->n];
  const json_t *offsets = json_object_get(o, "data_offsets"), *from = json_array_get(offsets, 0),
               *to = json_array_get(offsets, 1);
  *t = (struct tensor){.name = arena_strdup(r->arena, name)};
  if (strlen(name) > NAME_MAX_LEN || json_object_size(o) != 3)
    return fail(err, ST_INPUT, "\"%.60s\" is no description of an array", name);
  const enum status st = read_type(o, t, err);
  if (st)
    return st;
  if (json_array_size(offsets) != 2 || !json_is_integer(from) || !json_is_integer(to) ||
      json_integer_value(from) != (json_int_t)r->at || t->size > r->size - r->at ||
      json_integer_value(to) != (json_int_t)(r->at + t->size))
    return fail(err, ST_INPUT, "\"%.60s\" does not lie where an array of its shape ends", name);
  char *copy = arena_alloc(r->arena, t->size + 1);
  memcpy(copy, r->data + r->at, t->size);
  t->data = copy;
  r->at += t->size;
  r->out->n++;
  return ST_OK;
}

static enum status read_header(struct reader *r, const json_t *root, struct error *err) {
  enum status st = ST_OK;
  const char *key;
  json_t *v;
  if (!json_is_object(root) || json_object_size(root) > TENSORS_MAX + 1)
    return fail(err, ST_INPUT, "the header is no object of at most %d arrays", TENSORS_MAX);
  r->out->v = arena_new_array(r->arena, struct tensor, json_object_size(root) + 1);
  json_object_foreach((json_t *)root, key, v) {
    st = !strcmp(key, metadata) ? read_meta(r, v, err) : read_tensor(r, key, v, err);
    if (st)
      return st;
  }
  return r->at == r->size ? ST_OK : fail(err, ST_INPUT, "bytes follow the last array");
}

enum status tensors_read(struct arena *a, const void *data, size_t size, struct tensors *out, struct error *err) {
  uint64_t n;
  *out = (struct tensors){0};
  if (size < sizeof n)
    return fail(err, ST_INPUT, "the file is too short");
  memcpy(&n, data, sizeof n);
  n = le64toh(n);
  if (n > (uint64_t)HEADER_MAX || n > size - sizeof n)
    return fail(err, ST_INPUT, "the header is longer than the file, or than %d bytes", HEADER_MAX);
  const char *header = (const char *)data + sizeof n;
  struct reader r = {.arena = a, .data = header + n, .size = size - sizeof n - (size_t)n, .out = out};
  json_t *root = json_loadb(header, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
  const enum status st = root ? read_header(&r, root, err) : fail(err, ST_INPUT, "the header is no JSON");
  json_decref(root);
  return st;
}

const struct tensor *tensors_find(const struct tensors *t, const char *prefix, const char *name) {
  const size_t n = strlen(prefix);
  for (int i = 0; i < t->n; i++)
    if (!strncmp(t->v[i].name, prefix, n) && !strcmp(t->v[i].name + n, name))
      return &t->v[i];
  return NULL;
}

const char *tensors_meta(const struct tensors *t, const char *key) {
  for (int i = 0; i < t->n_meta; i++)
    if (!strcmp(t->meta[i].key, key))
      return t->meta[i].value;
  return NULL;
}

bool tensor_same_type(const struct tensor *x, const struct tensor *y) {
  return x->dtype == y->dtype && x->rank == y->rank && !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}
