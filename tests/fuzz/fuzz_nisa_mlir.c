/* The readable form of NISA: what is read is printed, and what is printed reads back and prints the same. */
#include <string.h>

#include "fuzz.h"
#include "nisa/parse.h"
#include "nisa/print.h"

enum { TEXT_ROOM = 16 << 20 };

static struct ir ir;

static char *print(MlirModule m, struct arena *a) {
  struct buf b;
  const int *lines;
  struct error err;
  buf_init(&b, TEXT_ROOM);
  FUZZ_CHECK(nisa_print(&ir, mlirModuleGetOperation(m), 0, &b, a, &lines, &err) == ST_OK);
  char *text = arena_strndup(a, buf_text(&b), b.len);
  buf_clear(&b);
  return text;
}

static enum status parse(const char *text, size_t len, struct arena *a, MlirModule *m) {
  struct diags ds;
  diags_init(&ds, a);
  enum status st = nisa_parse(&ir, text, len, "t.nisa", a, &ds, m);
  FUZZ_CHECK(st == ST_OK || ds.has_error);
  return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct arena a;
  struct error err;
  MlirModule m, again;

  if (mlirContextIsNull(ir.ctx) && ir_init(&ir, &err))
    abort();
  arena_init(&a);
  if (parse((const char *)data, size, &a, &m) == ST_OK) {
    const char *text = print(m, &a);
    FUZZ_CHECK(parse(text, strlen(text), &a, &again) == ST_OK);
    FUZZ_CHECK(!strcmp(print(again, &a), text));
    mlirModuleDestroy(again);
    mlirModuleDestroy(m);
  }
  arena_clear(&a);
  return 0;
}
