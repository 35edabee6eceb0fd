#include "nisa/other.h"

#include <ctype.h>
#include <string.h>

static bool is_text(const char *s, size_t n, const char *word) {
  return strlen(word) == n && !memcmp(s, word, n);
}

const char *nisa_other_word(const char *name, size_t name_len, const char *value, size_t n) {
  return is_text(name, name_len, "reverse_operands") && is_text(value, n, "none_") ? "none" : NULL;
}

void nisa_other_default(enum nisa_kind kind, const char **name, const char **value) {
  *name = kind == NISA_DMA_COPY_INDIRECT ? "src_index_dim" : NULL;
  *value = "0 : i64";
}

bool nisa_other_index(const char *text, const char *at, const char *end, size_t *n) {
  *n = strlen("index");
  return at - text >= 2 && at[-1] == 'x' && isdigit((unsigned char)at[-2]) && (size_t)(end - at) > *n &&
         !memcmp(at, "index", *n) && (at[*n] == ',' || at[*n] == '>');
}
