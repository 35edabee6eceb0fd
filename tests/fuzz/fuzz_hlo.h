/* fuzz_hlo: what the targets of HLO share. */
#ifndef FUZZ_FUZZ_HLO_H
#define FUZZ_FUZZ_HLO_H

#include "fuzz.h"
#include "hlo/print.h"

/* The module's text, in the arena. */
static inline char *print_hlo(struct arena *a, const struct hlo_module *m) {
  struct buf b;
  buf_init(&b, 64 << 20);
  FUZZ_CHECK(hlo_print(m, &(struct hlo_print_options){0}, &b, a, NULL) == ST_OK);
  char *text = arena_strndup(a, buf_text(&b), b.len);
  buf_clear(&b);
  return text;
}

#endif
