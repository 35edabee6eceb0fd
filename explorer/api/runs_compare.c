/* Compares the outputs of a run with what was expected of it. */
#include "api/runs_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

#include "base/arena.h"
#include "base/json.h"
#include "driver/check.h"
#include "driver/device_report.h"
#include "neff/tensors.h"

static const char simulated_prefix[] = "simulated/", reference_prefix[] = "reference/", spread_prefix[] = "spread/";

static struct trace_array as_array(struct arena *a, const struct tensor *t) {
  return (struct trace_array){.shape = hlo_shape_array(a, t->dtype, t->rank, t->dims),
                              .data = (void *)(uintptr_t)t->data};
}

/* What the reference's elements depend on rounding by; NULL if that is not known. */
static const float *spread_of(const struct tensors *expected, const char *name, const struct tensor *of) {
  const struct tensor *s = tensors_find(expected, spread_prefix, name);
  return s && s->dtype == DT_F32 && s->size / sizeof(float) == of->size / dtype_size(of->dtype) ? s->data : NULL;
}

/* What is expected comes from the process that ran the kernel's Python, so it is not trusted, either: a reference of another shape
 * is none. */
static void put_output(struct arena *a, const struct tensors *expected, const char *name, const struct tensor *got,
                       struct buf *out) {
  const struct tensor *reference = tensors_find(expected, reference_prefix, name);
  const struct tensor *simulated = tensors_find(expected, simulated_prefix, name);
  struct trace_array want = {0}, other = as_array(a, simulated);
  const struct trace_array x = as_array(a, got);
  struct check_result r[2];
  if (reference && !tensor_same_type(reference, got))
    reference = NULL;
  if (reference) {
    want = as_array(a, reference);
    want.spread = other.spread = spread_of(expected, name, reference);
  }
  const char *of = tensors_meta(expected, "reference");
  const struct device_expected e = {reference ? of ? of : "numpy" : NULL, &want, &other};
  device_report_put_output(out, name, &x, &e, &r[0], &r[1]);
}

/* Every output that was simulated must be there, with its type and shape, and no other. */
static enum status compare_all(struct arena *a, const struct tensors *expected, const struct tensors *got,
                               struct buf *out, struct error *err) {
  const size_t n = sizeof simulated_prefix - 1;
  int matched = 0;
  json_put_key(out, "outputs");
  buf_putc(out, '[');
  for (int i = 0; i < expected->n; i++) {
    const struct tensor *want = &expected->v[i];
    if (strncmp(want->name, simulated_prefix, n) != 0)
      continue;
    const struct tensor *x = tensors_find(got, "", want->name + n);
    if (!x)
      return fail(err, ST_INPUT, "the output %.80s is missing", want->name + n);
    if (!tensor_same_type(want, x))
      return fail(err, ST_INPUT, "the output %.80s has another type or shape than the kernel's", want->name + n);
    put_output(a, expected, want->name + n, x, out);
    matched++;
  }
  buf_putc(out, ']');
  return matched == got->n ? ST_OK : fail(err, ST_INPUT, "there are outputs that the kernel has not");
}

static bool has_hash(const struct buf *b, const char *sha256) {
  struct ident_hash want, now;
  SHA256((const unsigned char *)buf_text(b), b->len, now.bytes);
  return run_read_hex(sha256, strlen(sha256), &want) && ident_hash_equal(&want, &now);
}

static enum status compare(struct arena *a, const struct buf *expected, const struct buf *got, struct buf *out,
                           struct error *err) {
  struct tensors want, have;
  struct error why;
  if (tensors_read(a, expected->data, expected->len, &want, &why))
    return fail(err, ST_IO, "what is expected of a run is damaged: %.120s", why.text);
  enum status st = tensors_read(a, got->data, got->len, &have, &why);
  if (st)
    return fail(err, ST_INPUT, "outputs.safetensors: %.180s", why.text);
  st = compare_all(a, &want, &have, out, err);
  const char *us = tensors_meta(&want, "simulated_us");
  if (!st && us)
    json_put_field_double(out, "simulated_us", strtod(us, NULL));
  return st;
}

enum status runs_compare(struct db *db, const struct ident_hash *run, const char *sha256, struct buf *out,
                         struct error *err) {
  struct buf expected, got;
  struct arena a;
  bool has_expected = false, has_got = false;
  buf_init(&expected, RUN_FILE_MAX);
  buf_init(&got, RUN_FILE_MAX);
  enum status st = store_get_run_file(db, run, "expected.safetensors", &expected, &has_expected, err);
  if (!st)
    st = store_get_run_file(db, run, RUN_OUT "outputs.safetensors", &got, &has_got, err);
  if (!st && !has_expected)
    st = fail(err, ST_IO, "a run without what is expected of it");
  if (!st && (!has_got || !has_hash(&got, sha256)))
    st = fail(err, ST_INPUT, "outputs.safetensors was not sent, or is not the one that outputs_sha256 says");
  if (!st) {
    arena_init(&a);
    st = compare(&a, &expected, &got, out, err);
    arena_clear(&a);
  }
  buf_clear(&expected);
  buf_clear(&got);
  return st;
}
