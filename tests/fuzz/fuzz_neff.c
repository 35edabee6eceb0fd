/* A NEFF: what is read can be described, opened as a package, and written and read again with the same members. */
#include <string.h>

#include "fuzz.h"
#include "neff/inspect.h"
#include "neff/package.h"

/* What a worker may use of memory is much less than a container may unpack to. */
static const struct neff_limits limits = {.total_bytes = 16 << 20, .members = 500};

static void describe(struct arena *a, const struct neff *x) {
  struct error err = {0};
  struct neff_model m;
  struct neff_opened opened;
  if (neff_model_read(a, x, &m, &err) == ST_OK) {
    json_t *v = neff_inspect(x, &m);
    FUZZ_CHECK(v);
    char *text = json_dumps(v, 0);
    FUZZ_CHECK(text);
    free(text);
    json_decref(v);
  } else {
    FUZZ_CHECK(err.text[0]);
  }
  neff_model_clear(&m);
  (void)!neff_package_open(a, x, &opened, &err);
}

static void write_again(struct arena *a, struct neff *x) {
  struct error err = {0};
  struct neff y;
  struct buf b;
  x->header.package_version = 1 + x->header.package_version % 2;
  buf_init(&b, 64 << 20);
  FUZZ_CHECK(neff_write(x, &b, &err) == ST_OK);
  FUZZ_CHECK(neff_read(a, b.data, b.len, limits, &y, &err) == ST_OK);
  json_t *differences = neff_diff(x, &y);
  FUZZ_CHECK(differences && !json_array_size(differences));
  json_decref(differences);
  buf_clear(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  struct error err = {0};
  struct neff x;
  arena_init(&a);
  if (neff_read(&a, data, size, limits, &x, &err) == ST_OK) {
    describe(&a, &x);
    write_again(&a, &x);
  } else {
    FUZZ_CHECK(err.text[0]);
  }
  arena_clear(&a);
  return 0;
}
