#include "driver/value_find.h"

#include <stdlib.h>
#include <string.h>

/* A part of the text. */
struct span {
  const char *at, *end;
};

static struct span line_at(const char *at, const char *end) {
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return (struct span){at, newline ? newline : end};
}

static struct span line_of(const char *text, size_t len, int line) {
  struct span s = line_at(text, text + len);
  for (int k = 1; k < line; k++) {
    if (s.end == text + len)
      return (struct span){s.end, s.end};
    s = line_at(s.end + 1, text + len);
  }
  return s;
}

static bool begins(struct span s, const char *word) {
  const size_t n = strlen(word);
  return (size_t)(s.end - s.at) >= n && !memcmp(s.at, word, n);
}

static struct span find(struct span s, const char *word) {
  for (; s.at < s.end && !begins(s, word); s.at++)
    ;
  return s;
}

static bool is_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
         c == '$' || c == '-';
}

/* The "%name" at s; empty if there is none. */
static struct span name_at(struct span s) {
  struct span out = {s.at, s.at};
  if (s.at == s.end || *s.at != '%')
    return out;
  for (out.end++; out.end < s.end && is_letter(*out.end); out.end++)
    ;
  return out;
}

/* What is looked for: the name without "#1", and that number. */
struct wanted {
  const char *name;
  size_t n;
  int result;
};

static struct wanted read_wanted(const char *name) {
  const char *hash = strchr(name, '#');
  name += *name == '%';
  return (struct wanted){name, hash ? (size_t)(hash - name) : strlen(name), hash ? atoi(hash + 1) : 0};
}

static bool is_wanted(const struct wanted *w, struct span name) {
  return (size_t)(name.end - name.at) == w->n + 1 && !memcmp(name.at + 1, w->name, w->n);
}

/* "%a, %b = …", "%a:2 = …", "ROOT %a = …" */
static bool finds_result(const struct wanted *w, struct span line, struct value_place *out) {
  const struct span equals = find(line, " = ");
  if (equals.at == equals.end)
    return false;
  line.end = equals.at;
  while (line.at < line.end && *line.at == ' ')
    line.at++;
  if (begins(line, "ROOT "))
    line.at += 5;
  for (int index = 0; line.at < line.end; index++) {
    const struct span name = name_at(line);
    if (name.at == name.end)
      return false;
    if (is_wanted(w, name)) {
      *out = (struct value_place){.kind = VALUE_RESULT, .index = index + w->result};
      return true;
    }
    line.at = find((struct span){name.end, line.end}, "%").at;
  }
  return false;
}

/* The names in the list that are followed by this word are arguments number 0, 1, … */
static bool finds_argument(const struct wanted *w, struct span list, const char *after, enum value_kind kind,
                           struct value_place *out) {
  for (int index = 0;;) {
    list = find(list, "%");
    if (list.at == list.end)
      return false;
    const struct span name = name_at(list);
    list.at = name.end;
    if (!begins(list, after))
      continue;
    if (is_wanted(w, name)) {
      *out = (struct value_place){.kind = kind, .index = index};
      return true;
    }
    index++;
  }
}

static bool finds_block_argument(const struct wanted *w, struct span line, struct value_place *out) {
  static const struct {
    const char *word, *after;
    enum value_kind kind;
  } lists[] = {{"func.func ", ": ", VALUE_ARGUMENT},
               {"scf.for ", " = ", VALUE_ARGUMENT},
               {"scf.while ", " = ", VALUE_ARGUMENT},
               {"^bb0(", ": ", VALUE_ELEMENT}};
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
    const struct span list = find(line, lists[k].word);
    if (list.at < list.end && finds_argument(w, list, lists[k].after, lists[k].kind, out))
      return true;
  }
  return false;
}

bool value_find(const char *text, size_t len, const char *name, int line, struct value_place *out) {
  const struct wanted w = read_wanted(name);
  const char *end = text + len;
  bool found = false;
  int number = 1;
  for (struct span s = line_at(text, end);; s = line_at(s.end + 1, end), number++) {
    struct value_place place;
    if ((!found || number <= line) && (finds_result(&w, s, &place) || finds_block_argument(&w, s, &place))) {
      *out = place;
      out->line = number;
      found = true;
    }
    if (s.end == end || (found && number >= line))
      return found;
  }
}

bool value_name_on(const char *text, size_t len, int line, const char **name, size_t *n) {
  struct span s = line_of(text, len, line);
  while (s.at < s.end && *s.at == ' ')
    s.at++;
  if (begins(s, "ROOT "))
    s.at += 5;
  const struct span word = name_at(s), equals = find(s, " = ");
  *name = word.at;
  *n = (size_t)(word.end - word.at);
  return *n > 1 && equals.at < equals.end;
}

bool value_is_operand(const char *text, size_t len, int line, const char *name, const char *operand) {
  const struct wanted w = read_wanted(name);
  const size_t n = strlen(operand);
  struct span s = line_of(text, len, line);
  for (;;) {
    s = find(s, operand);
    if (s.at == s.end)
      return false;
    const bool is_word =
        s.at > text && (s.at[-1] == '(' || s.at[-1] == ' ') && s.at + n < s.end && (s.at[n] == '<' || s.at[n] == '=');
    s.at += n;
    if (is_word)
      return is_wanted(&w, name_at(find(s, "%")));
  }
}
