/* document: see the header. */
#include "lsp/document.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/utf8.h"

/* ---- documents --------------------------------------------------------------------------------------------------- */

static int hex(char c) {
  return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* The path of a file's URI; the URI itself if it is none of a file. */
static char *path_of(const char *uri) {
  char *path = strdup(uri);
  if (!path || strncmp(uri, "file://", 7) != 0)
    return path;
  const char *from = strchr(uri + 7, '/');
  char *to = path;
  for (; from && *from; from++) {
    const bool is_escape = *from == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0;
    *to++ = is_escape ? (char)(hex(from[1]) * 16 + hex(from[2])) : *from;
    from += is_escape ? 2 : 0;
  }
  *to = 0;
  return path;
}

void document_init(struct document *d, const char *uri, const char *text, long long version) {
  *d = (struct document){.uri = strdup(uri), .path = path_of(uri), .text = strdup(text), .version = version};
}

void document_clear(struct document *d) {
  free(d->uri);
  free(d->path);
  free(d->text);
  free(d->good.text);
  json_decref(d->good.result);
  *d = (struct document){0};
}

void document_set_text(struct document *d, const char *text, long long version) {
  char *copy = strdup(text);
  if (!copy)
    return;
  free(d->text);
  d->text = copy;
  d->version = version;
}

/* True if the line imports the module, or a part of it.  A text that is being edited often does not parse, so lines are read. */
static bool imports(const char *line, const char *module) {
  const size_t n = strlen(module);
  line += strspn(line, " \t");
  const bool has_list = !strncmp(line, "import ", 7);
  if (!has_list && strncmp(line, "from ", 5) != 0)
    return false;
  for (line += strcspn(line, " ");; line++) { /* to the next comma of the list */
    line += strspn(line, " \t");
    if (!strncmp(line, module, n) && strchr(" .\t\r\n,;#", line[n])) /* or the end */
      return true;
    line += strcspn(line, ",\n#");
    if (!has_list || *line != ',')
      return false;
  }
}

bool document_has_kernels(const struct document *d) {
  static const char *const modules[] = {"nkigen", "nkipy", "nki", "neuronxcc", "nkipy_kernelgen"};
  for (const char *p = d->text; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
      if (imports(p, modules[i]))
        return true;
  return false;
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

/* The start of a line, from 1; the end of the text after its last one. */
static const char *line_at(const char *text, int line) {
  for (; line > 1 && *text; line--) {
    text += strcspn(text, "\n");
    text += *text == '\n';
  }
  return text;
}

/* Bytes of the character at p, and its units of UTF-16. */
static size_t step(const char *p, int *units) {
  const size_t n = utf8_char(p, strnlen(p, 4));
  *units = n == 4 ? 2 : 1;
  return n ? n : 1;
}

static int bounded(const json_t *v) {
  const json_int_t n = json_integer_value(v);
  return n < 0 ? 0 : n > 1 << 28 ? 1 << 28 : (int)n;
}

struct place place_read(const char *text, const json_t *position) {
  struct place p = {bounded(json_object_get(position, "line")) + 1, 1};
  const char *at = line_at(text, p.line);
  int left = bounded(json_object_get(position, "character")), units;
  while (left > 0 && *at && *at != '\n') {
    at += step(at, &units);
    left -= units;
    p.col++;
  }
  return p;
}

json_t *place_write(const char *text, struct place p) {
  const char *at = line_at(text, p.line);
  int character = 0, units;
  for (int col = 1; col < p.col && *at && *at != '\n'; col++) {
    at += step(at, &units);
    character += units;
  }
  return json_pack("{s:i,s:i}", "line", p.line > 0 ? p.line - 1 : 0, "character", character);
}

json_t *range_write(const char *text, struct place from, struct place to) {
  return json_pack("{s:o,s:o}", "start", place_write(text, from), "end", place_write(text, to));
}

static int count_lines(const char *text) {
  int n = 1;
  for (; *text; text++)
    n += *text == '\n';
  return n;
}

/* How many of their first lines are equal. */
static int same_before(const char *a, const char *b) {
  int n = 0;
  for (; *a && *a == *b; a++, b++)
    n += *a == '\n';
  return n + (!*a && !*b);
}

static int same_after(const char *a, const char *b) {
  const char *p = a + strlen(a), *q = b + strlen(b);
  int n = 0;
  while (p > a && q > b && p[-1] == q[-1]) {
    p--;
    q--;
    n += *p == '\n';
  }
  return n;
}

/* How many lines of the text, before its line number `before`, are the same as the line. */
static int count_same(const char *text, const char *line, size_t len, int before) {
  int n = 0;
  for (int at = 1; at < before; at++) {
    const size_t k = strcspn(text, "\n");
    n += k == len && !memcmp(text, line, len);
    text += k;
    if (!*text)
      break;
    text++;
  }
  return n;
}

/* The number of the nth line, from 0, that is the same as the line; 0: there are fewer. */
static int find_same(const char *text, const char *line, size_t len, int nth) {
  for (int at = 1;; at++) {
    const size_t k = strcspn(text, "\n");
    if (k == len && !memcmp(text, line, len) && nth-- == 0)
      return at;
    text += k;
    if (!*text)
      return 0;
    text++;
  }
}

bool place_carry(const char *from, const char *to, struct place *p) {
  const int lines = count_lines(from);
  if (p->line <= same_before(from, to))
    return true;
  if (p->line > lines - same_after(from, to)) {
    p->line += count_lines(to) - lines;
    return true;
  }
  /* between two changes: a line that both texts have as often as the other is the same one */
  const char *line = line_at(from, p->line);
  const size_t len = strcspn(line, "\n");
  if (count_same(from, line, len, INT_MAX) != count_same(to, line, len, INT_MAX))
    return false;
  p->line = find_same(to, line, len, count_same(from, line, len, p->line));
  return p->line;
}
