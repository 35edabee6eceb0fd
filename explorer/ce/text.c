/* The answer to a compile as text, in the exact form that clients' patterns expect. */
#include <string.h>

#include "ce/internal.h"

/* Appends the text without the escape sequences that colour a terminal. */
static void put_plain(struct buf *b, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\x1b' && i + 1 < n && s[i + 1] == '[') {
      i += 2;
      while (i < n && (s[i] < '@' || s[i] > '~'))
        i++;
    } else {
      buf_putc(b, s[i]);
    }
  }
}

static void put_lines(struct buf *b, const json_t *lines, bool is_plain) {
  const json_t *line;
  size_t i;
  json_array_foreach(lines, i, line) {
    const json_t *text = json_object_get(line, "text");
    if (i)
      buf_putc(b, '\n');
    if (is_plain)
      put_plain(b, json_string_value(text), json_string_length(text));
    else
      buf_append(b, json_string_value(text), json_string_length(text));
  }
}

static void put_part(struct buf *b, const char *title, const json_t *lines, bool is_plain) {
  if (!json_array_size(lines))
    return;
  buf_puts(b, title);
  put_lines(b, lines, is_plain);
}

void ce_reply_text(const json_t *o, bool is_plain, struct buf *b) {
  const json_t *exec = json_object_get(o, "execResult");
  json_int_t code = json_integer_value(json_object_get(o, "code"));
  put_lines(b, json_object_get(o, "asm"), is_plain);
  if (code)
    buf_printf(b, "\n# Compiler exited with result code %lld", (long long)code);
  put_part(b, "\nStandard out:\n", json_object_get(o, "stdout"), is_plain);
  put_part(b, "\nStandard error:\n", json_object_get(o, "stderr"), is_plain);
  if (exec) {
    buf_printf(b, "\n\n# Execution result with exit code %lld\n",
               (long long)json_integer_value(json_object_get(exec, "code")));
    put_part(b, "# Standard out:\n", json_object_get(exec, "stdout"), is_plain);
    put_part(b, "\n# Standard error:\n", json_object_get(exec, "stderr"), is_plain);
  }
  buf_putc(b, '\n');
}
