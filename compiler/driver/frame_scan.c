/* frame_scan: implements the grammar of JSON as a recursive descent that only moves a cursor. */
#include "driver/frame_scan.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { WORD = sizeof(uint64_t) };

struct cursor {
  const char *p, *end;
};

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static bool skip_value(struct cursor *c, int depth);

static bool take(struct cursor *c, char want) {
  if (c->p == c->end || *c->p != want)
    return false;
  c->p++;
  return true;
}

/* Newlines are not space, because a frame is one line. */
static void skip_space(struct cursor *c) {
  while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
    c->p++;
}

/* Returns the value of four hexadecimal digits, or -1. */
static int take_hex(struct cursor *c) {
  int v = 0;
  if (c->end - c->p < 4)
    return -1;
  for (int i = 0; i < 4; i++) {
    char d = *c->p++;
    int n = d >= '0' && d <= '9'   ? d - '0'
            : d >= 'a' && d <= 'f' ? d - 'a' + 10
            : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                   : -1;
    if (n < 0)
      return -1;
    v = v << 4 | n;
  }
  return v;
}

/* Skips the rest of an escape, after its backslash.  Surrogates must come in pairs; U+0000 is refused. */
static bool skip_escape(struct cursor *c) {
  if (c->p == c->end)
    return false;
  char e = *c->p++;
  if (e != 'u')
    return e && strchr("\"\\/bfnrt", e);
  int v = take_hex(c);
  if (v <= 0 || (v >= 0xDC00 && v <= 0xDFFF))
    return false;
  if (v < 0xD800 || v > 0xDBFF)
    return true;
  if (!take(c, '\\') || !take(c, 'u'))
    return false;
  int low = take_hex(c);
  return low >= 0xDC00 && low <= 0xDFFF;
}

/* The bytes of a string that stand for themselves: printable ASCII but '"' and '\\'.  Most of a frame is such. */
static const bool is_plain[256] = {
    [0x20] = 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    [0x40] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1,
    [0x60] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};

/* True if the WORD bytes are all plain; it may miss that, but is never wrong when it says so. */
static bool are_plain(const char *p) {
  const uint64_t ones = 0x0101010101010101, high = ones << 7;
  uint64_t v;
  memcpy(&v, p, WORD);
  /* the high bit of a byte is set if it is no ASCII, or if a subtraction from it, or from a byte before it, borrows */
  const uint64_t control = v - ones * 0x20, quote = (v ^ ones * '"') - ones, slash = (v ^ ones * '\\') - ones;
  return !((v | control | quote | slash) & high);
}

static void skip_plain(struct cursor *c) {
  while (c->end - c->p >= WORD && are_plain(c->p))
    c->p += WORD;
  while (c->p < c->end && is_plain[(unsigned char)*c->p])
    c->p++;
}

static bool skip_string(struct cursor *c) {
  if (!take(c, '"'))
    return false;
  for (skip_plain(c); c->p < c->end; skip_plain(c)) {
    unsigned char b = (unsigned char)*c->p++;
    if (b == '"')
      return true;
    if (b < 0x20 || (b == '\\' && !skip_escape(c)))
      return false;
    if (b >= 0x80) {
      size_t n = utf8_char(c->p - 1, (size_t)(c->end - c->p) + 1);
      if (!n)
        return false;
      c->p += n - 1;
    }
  }
  return false;
}

static bool skip_digits(struct cursor *c) {
  const char *from = c->p;
  while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
    c->p++;
  return c->p > from;
}

/* Skips a number of any length in the form of JSON. */
static bool skip_number_form(struct cursor *c, bool *has_exponent) {
  take(c, '-');
  if (!take(c, '0') && !skip_digits(c))
    return false;
  if (take(c, '.') && !skip_digits(c))
    return false;
  *has_exponent = take(c, 'e') || take(c, 'E');
  if (*has_exponent) {
    if (!take(c, '+'))
      take(c, '-');
    return skip_digits(c);
  }
  return true;
}

/* True if a number of that form is one to all readers: an integer of 64 bits with its sign, or finite as a double. */
static bool is_representable(const char *number, size_t len, bool has_exponent) {
  enum { NUMBER_MAX = 40, SHORT = 18 };
  if (len <= SHORT && !has_exponent)
    return true;
  char text[NUMBER_MAX + 1];
  if (len > NUMBER_MAX) /* longer than any that we write */
    return false;
  memcpy(text, number, len);
  text[len] = 0;
  if (has_exponent || strchr(text, '.'))
    return isfinite(strtod(text, NULL));
  errno = 0;
  (void)strtoll(text, NULL, 10);
  return errno == 0;
}

/* Numbers that some readers of the result fail on, and others take for infinite, are refused. */
static bool skip_number(struct cursor *c) {
  const char *from = c->p;
  bool has_exponent;
  return skip_number_form(c, &has_exponent) && is_representable(from, (size_t)(c->p - from), has_exponent);
}

static bool skip_word(struct cursor *c, const char *word) {
  size_t n = strlen(word);
  if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n))
    return false;
  c->p += n;
  return true;
}

static bool skip_array(struct cursor *c, int depth) {
  c->p++;
  skip_space(c);
  if (take(c, ']'))
    return true;
  do {
    if (!skip_value(c, depth))
      return false;
  } while (take(c, ','));
  return take(c, ']');
}

/* Skips "key": and the space around it. */
static bool skip_key(struct cursor *c) {
  skip_space(c);
  if (!skip_string(c))
    return false;
  skip_space(c);
  return take(c, ':');
}

static bool skip_object(struct cursor *c, int depth) {
  c->p++;
  skip_space(c);
  if (take(c, '}'))
    return true;
  do {
    if (!skip_key(c) || !skip_value(c, depth))
      return false;
  } while (take(c, ','));
  return take(c, '}');
}

/* Skips a value and the space around it.  depth: the number of arrays and objects that may still be nested. */
static bool skip_value(struct cursor *c, int depth) {
  bool ok;
  skip_space(c);
  if (c->p == c->end)
    return false;
  switch (*c->p) {
  case '{':
    ok = depth > 0 && skip_object(c, depth - 1);
    break;
  case '[':
    ok = depth > 0 && skip_array(c, depth - 1);
    break;
  case '"':
    ok = skip_string(c);
    break;
  case 't':
    ok = skip_word(c, "true");
    break;
  case 'f':
    ok = skip_word(c, "false");
    break;
  case 'n':
    ok = skip_word(c, "null");
    break;
  default:
    ok = skip_number(c);
  }
  skip_space(c);
  return ok;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

const struct frame_member *frame_get(const struct frame *f, const char *key) {
  size_t n = strlen(key);
  for (int i = 0; i < f->n; i++)
    if (f->members[i].key_len == n && !memcmp(f->members[i].key, key, n))
      return &f->members[i];
  return NULL;
}

bool frame_has_string(const struct frame *f, const char *key, const char *text, size_t len) {
  const struct frame_member *m = frame_get(f, key);
  return m && *m->value == '"' && m->value_len == len + 2 && !memcmp(m->value + 1, text, len);
}

long frame_int(const struct frame *f, const char *key) {
  const struct frame_member *m = frame_get(f, key);
  long v = 0;
  if (!m || m->value_len > 9)
    return -1;
  for (size_t i = 0; i < m->value_len; i++) {
    if (m->value[i] < '0' || m->value[i] > '9')
      return -1;
    v = v * 10 + (m->value[i] - '0');
  }
  return v;
}

static bool has_twin(const struct frame *f, const struct frame_member *m) {
  for (int i = 0; i < f->n; i++)
    if (f->members[i].key_len == m->key_len && !memcmp(f->members[i].key, m->key, m->key_len))
      return true;
  return false;
}

/* Reads one member; its value is recorded without the space around it. */
static bool scan_member(struct cursor *c, struct frame_member *m) {
  skip_space(c);
  m->key = c->p + 1;
  if (!skip_string(c))
    return false;
  m->key_len = (size_t)(c->p - 1 - m->key);
  skip_space(c);
  if (!take(c, ':'))
    return false;
  skip_space(c);
  m->value = c->p;
  if (!skip_value(c, FRAME_NEST_MAX - 1))
    return false;
  const char *end = c->p;
  while (end > m->value && (end[-1] == ' ' || end[-1] == '\t'))
    end--;
  m->value_len = (size_t)(end - m->value);
  assert(m->key + m->key_len < m->value && m->value_len > 0 && end <= c->end);
  return true;
}

static enum status scan_members(struct cursor *c, struct frame *f, struct error *err) {
  skip_space(c);
  if (!take(c, '{'))
    return fail(err, ST_INPUT, "not an object");
  skip_space(c);
  bool is_closed = take(c, '}');
  for (bool has_more = !is_closed; has_more; has_more = take(c, ',')) {
    struct frame_member m;
    if (!scan_member(c, &m))
      return fail(err, ST_INPUT, "not JSON");
    if (memchr(m.key, '\\', m.key_len)) /* none of ours has escapes, and such a key may be another one's twin */
      return fail(err, ST_INPUT, "a key with an escape");
    if (has_twin(f, &m))
      return fail(err, ST_INPUT, "a member twice");
    if (f->n == FRAME_MEMBERS_MAX)
      return fail(err, ST_INPUT, "more than %d members", FRAME_MEMBERS_MAX);
    f->members[f->n++] = m;
  }
  is_closed = is_closed || take(c, '}');
  skip_space(c);
  if (!is_closed || c->p != c->end)
    return fail(err, ST_INPUT, "not JSON");
  return ST_OK;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

/* The members that each kind must have, and the first character of their values; '0' means a whole number. */
static const struct {
  const char *name;
  struct {
    const char *key;
    char first;
  } needs[5];
} kinds[] = {
    [FRAME_START] = {"\"start\"", {{"key", '"'}, {"language", '"'}, {"target", '"'}, {"pipeline", '"'}}},
    [FRAME_KERNEL] = {"\"kernel\"", {{"kernel", '0'}, {"name", '"'}, {"inputs", '['}, {"outputs", '['}}},
    [FRAME_SOURCES] = {"\"sources\"", {{"files", '['}, {"places", '['}, {"sources", '['}}},
    [FRAME_STAGE] = {"\"stage\"", {{"kernel", '0'}, {"stage", '{'}}},
    [FRAME_SIMULATION] = {"\"simulation\"", {{"kernel", '0'}, {"simulation", '{'}}},
    [FRAME_PROFILE] = {"\"profile\"", {{"kernel", '0'}, {"profile", '{'}}},
    [FRAME_DEVICE] = {"\"device\"", {{"kernel", '0'}, {"device", '{'}}},
    [FRAME_VALUE] = {"\"value\"", {{"kernel", '0'}, {"value", '{'}}},
    [FRAME_STEPS] = {"\"steps\"", {{"kernel", '0'}, {"steps", '{'}}},
    [FRAME_TUNE] = {"\"tune\"", {{"tune", '{'}}},
    [FRAME_SHRINK] = {"\"shrink\"", {{"shrink", '{'}}},
    [FRAME_SHRUNK] = {"\"shrunk\"", {{"shrunk", '{'}}},
    [FRAME_PARTING] = {"\"parting\"", {{"parting", '{'}}},
    [FRAME_UPGRADE] = {"\"upgrade\"", {{"upgrade", '{'}}},
    [FRAME_NEFF] = {"\"neff\"", {{"neff", '{'}}},
    [FRAME_DIAGNOSTIC] = {"\"diagnostic\"", {{"diagnostic", '{'}}},
    [FRAME_ARTIFACT] = {"\"artifact\"", {{"artifact", '{'}}},
    [FRAME_END] = {"\"end\"", {{"status", '"'}, {"time_us", '0'}}},
};

static enum status check_kind(struct frame *f, struct error *err) {
  const struct frame_member *kind = frame_get(f, "frame");
  for (size_t k = 0; kind && k < sizeof kinds / sizeof *kinds; k++) {
    if (strlen(kinds[k].name) != kind->value_len || memcmp(kinds[k].name, kind->value, kind->value_len))
      continue;
    f->kind = (enum frame_kind)k;
    for (int i = 0; kinds[k].needs[i].key; i++) {
      const char *key = kinds[k].needs[i].key;
      const struct frame_member *m = frame_get(f, key);
      bool is_right =
          m && (kinds[k].needs[i].first == '0' ? frame_int(f, key) >= 0 : *m->value == kinds[k].needs[i].first);
      if (!is_right)
        return fail(err, ST_INPUT, "%s frame without a proper %s", kinds[k].name, key);
    }
    return ST_OK;
  }
  return fail(err, ST_INPUT, "a frame of no known kind");
}

enum status frame_scan_object(const char *json, size_t len, struct frame *out, struct error *err) {
  struct cursor c = {json, json + len};
  out->n = 0;
  return scan_members(&c, out, err);
}

enum status frame_scan(const char *json, size_t len, struct frame *out, struct error *err) {
  enum status st = frame_scan_object(json, len, out, err);
  return st ? st : check_kind(out, err);
}
