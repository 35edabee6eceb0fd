/* The stage diff: what it leaves out, what it must find, and random programs with known edits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* before cmocka, which has a macro called fail */
#include "diff/diff.h"

#include <cmocka.h>

static struct diff_text text(const char *s) {
  return (struct diff_text){s, strlen(s)};
}

/* "from+n to+n" per hunk, then " c<changed> r<removed> a<added>". */
static const char *shape(const char *a, const char *b) {
  static char out[4096];
  struct diff d;
  assert_int_equal(diff_make(text(a), text(b), &d, NULL), ST_OK);
  int n = 0;
  for (int i = 0; i < d.n; i++)
    n += snprintf(out + n, sizeof out - (size_t)n, "%d+%d %d+%d; ", d.hunks[i].from, d.hunks[i].n_from, d.hunks[i].to,
                  d.hunks[i].n_to);
  snprintf(out + n, sizeof out - (size_t)n, "c%d r%d a%d", d.n_changed, d.n_removed, d.n_added);
  diff_clear(&d);
  return out;
}

static void spelling_is_no_change(void **state) {
  (void)state;
  assert_string_equal(shape("", ""), "c0 r0 a0");
  assert_string_equal(shape("%0 = a.b %x : f32\n", "  %17 = a.b  %y : f32 loc(\"k.py\":3:4)\n"), "c0 r0 a0");
  assert_string_equal(shape("%0 = a.b() {x = 1 : i32, y = [2, 3]}\n", "%a = a.b() {y = [2, 3], x = 1 : i32}"),
                      "c0 r0 a0");
  assert_string_equal(shape("#map = affine_map<(d0) -> (d0)>\n%1 = l.g {m = #map}\n",
                            "#map1 = affine_map<(d0) -> (d0)>\n%1 = l.g {m = #map1}\n"),
                      "c0 r0 a0");
  assert_string_equal(shape("%op1 = f32[2]{0} negate(%p), metadata={op_name=\"x (\" source_line=3}\n",
                            "%op9 = f32[2]{0} negate(%q), metadata={op_name=\"y\"}\n"),
                      "c0 r0 a0");
  assert_string_equal(shape("%o = f32[2]{0} dot(%p, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n",
                            "%o = f32[2]{0} dot(%p, %q), rhs_contracting_dims={0}, lhs_contracting_dims={1}\n"),
                      "c0 r0 a0");
  assert_string_equal(shape("^bb0(%a: f32):\n  cf.br ^bb1\n", "^bb3(%z: f32):\n  cf.br ^bb7\n"), "c0 r0 a0");
}

static void a_change_is_found(void **state) {
  (void)state;
  assert_string_equal(shape("a\nb\nc\n", "a\nx\nc\n"), "2+1 2+1; c1 r0 a0");
  assert_string_equal(shape("a\nc\n", "a\nb\nc\n"), "2+0 2+1; c0 r0 a1");
  assert_string_equal(shape("a\nb\nc\n", "a\nc\n"), "2+1 2+0; c0 r1 a0");
  assert_string_equal(shape("", "a\n"), "1+0 1+1; c0 r0 a1");
  assert_string_equal(shape("a\n", ""), "1+1 1+0; c0 r1 a0");
  assert_string_equal(shape("%0 = t.e() {x = [1, 2]}\n", "%0 = t.e() {x = [2, 1]}\n"), "1+1 1+1; c1 r0 a0");
  /* the same map under another name, and another map under the same name */
  assert_string_equal(shape("#map = affine_map<(d0) -> (d0)>\n%1 = l.g {m = #map}\n",
                            "#map = affine_map<(d0) -> (0)>\n%1 = l.g {m = #map}\n"),
                      "1+2 1+2; c2 r0 a0");
}

/* What was edited is one of two lines that say the same: the other has not changed. */
static void the_right_one_of_equal_lines_stays(void **state) {
  (void)state;
  assert_string_equal(shape("a\nb\nb\nc\n", "a\nx\nb\nc\n"), "2+1 2+1; c1 r0 a0");
  assert_string_equal(shape("a\nb\nb\nc\n", "a\nb\nx\nc\n"), "3+1 3+1; c1 r0 a0");
  assert_string_equal(shape("a\nx\nb\nc\n", "a\nb\nb\nc\n"), "2+1 2+1; c1 r0 a0");
  assert_string_equal(shape("%0 = p\n%1 = q %0\n%2 = q %1\n%3 = r %2\n", "%0 = p\n%1 = s %0\n%2 = q %1\n%3 = r %2\n"),
                      "2+1 2+1; c1 r0 a0");
  /* two of three */
  assert_string_equal(shape("a\nb\nb\nb\nc\n", "a\nx\ny\nb\nc\n"), "2+2 2+2; c2 r0 a0");
}

static void operands_are_followed(void **state) {
  (void)state;
  const char *a = "f(%a: f32, %b: f32)\n%0 = x.add %a, %b : f32\n%1 = x.mul %0, %a : f32\nreturn %1\n";
  assert_string_equal(shape(a, "f(%p: f32, %q: f32)\n%7 = x.add %p, %q : f32\n%8 = x.mul %7, %p : f32\nreturn %8\n"),
                      "c0 r0 a0");
  assert_string_equal(shape(a, "f(%p: f32, %q: f32)\n%7 = x.add %p, %q : f32\n%8 = x.mul %7, %q : f32\nreturn %8\n"),
                      "3+1 3+1; c1 r0 a0");
  assert_string_equal(shape(a, "f(%p: f32, %q: f32)\n%7 = x.sub %p, %q : f32\n%8 = x.mul %7, %p : f32\nreturn %8\n"),
                      "2+1 2+1; c1 r0 a0");
  /* one of two equal constants went: users of the other have not changed */
  assert_string_equal(shape("%c = arith.constant 0 : index\n%d = arith.constant 0 : index\nu %c\nu %d\n",
                            "%c = arith.constant 0 : index\nu %c\nu %c\n"),
                      "2+1 2+0; c0 r1 a0");
}

static void words_are_marked(void **state) {
  (void)state;
  struct diff_text a = text("%0 = x.add %a, %b {t = 1 : i32} : f32\n"),
                   b = text("%5 = x.add %a, %b {t = 12 : i32} : f\xc3\xa9 32\n");
  struct diff d;
  assert_int_equal(diff_make(a, b, &d, NULL), ST_OK);
  struct buf out;
  buf_init(&out, 1 << 16);
  diff_json(&d, a, b, &out);
  assert_int_equal(out.failed, ST_OK);
  json_t *j = json_loadb(out.data, out.len, 0, NULL);
  assert_non_null(j);
  json_t *pair = json_array_get(json_object_get(json_array_get(json_object_get(j, "hunks"), 0), "pairs"), 0);
  char *from = json_dumps(json_object_get(pair, "words_from"), JSON_COMPACT),
       *to = json_dumps(json_object_get(pair, "words_to"), JSON_COMPACT);
  assert_string_equal(from, "[[24,25],[35,38]]");
  assert_string_equal(to, "[[24,26],[36,41]]");
  free(from);
  free(to);
  json_decref(j);
  buf_clear(&out);
  diff_clear(&d);
}

/* ---- random programs --------------------------------------------------------------------------------------------- */

static unsigned seed;
static unsigned draw(unsigned n) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % n;
}

struct op {
  int kind, a, b; /* operands: earlier operations */
};

static char *print(const struct op *v, int n, int first_name) {
  size_t cap = (size_t)n * 64 + 64, at = 0;
  char *s = malloc(cap);
  assert_non_null(s);
  for (int i = 0; i < n; i++)
    at += (size_t)snprintf(s + at, cap - at, "  %%v%d = d.op%d %%v%d, %%v%d : tensor<%dxf32>\n", i * 3 + first_name,
                           v[i].kind, v[i].a * 3 + first_name, v[i].b * 3 + first_name, v[i].kind % 7);
  return s;
}

/* Random operations, and the same with `edits` of them edited, or (-1) up to one in twenty: in what they do, or in where an
 * operand comes from. */
static void make_programs(struct op *v, struct op *w, bool *is_edited, int n, int edits) {
  for (int i = 0; i < n; i++)
    w[i] = v[i] = (struct op){(int)draw(40), i ? (int)draw((unsigned)i) : 0, i ? (int)draw((unsigned)i) : 0};
  if (edits < 0)
    edits = (int)draw(1 + (unsigned)n / 20);
  for (int k = 0; k < edits; k++) {
    int i = (int)draw((unsigned)n);
    if (draw(2) || i < 2)
      w[i].kind = 50 + (int)draw(40);
    else
      w[i].a = (v[i].a + 1 + (int)draw((unsigned)i - 1)) % i;
    is_edited[i] = w[i].kind != v[i].kind || w[i].a != v[i].a;
  }
}

/* Every edited operation lies in a hunk, and hunks hold nothing else, although every name is another. */
static void check_program(int n, int edits) {
  struct op *v = calloc((size_t)n, sizeof *v), *w = calloc((size_t)n, sizeof *w);
  bool *is_edited = calloc((size_t)n, sizeof *is_edited), *is_shown = calloc((size_t)n, sizeof *is_shown);
  assert_true(v && w && is_edited && is_shown);
  unsigned at = seed;
  make_programs(v, w, is_edited, n, edits);
  char *a = print(v, n, 1), *b = print(w, n, 1000);
  struct diff d;
  assert_int_equal(diff_make(text(a), text(b), &d, NULL), ST_OK);
  for (int i = 0; i < d.n; i++) {
    assert_int_equal(d.hunks[i].n_from, d.hunks[i].n_to);
    for (int k = 0; k < d.hunks[i].n_from; k++)
      is_shown[d.hunks[i].from - 1 + k] = true;
  }
  for (int i = 0; i < n; i++)
    if (is_shown[i] != is_edited[i])
      fail_msg("seed %u: operation %d of %d: edited %d, shown %d", at, i, n, is_edited[i], is_shown[i]);
  diff_clear(&d);
  free(is_shown);
  free(is_edited);
  free(v);
  free(w);
  free(a);
  free(b);
}

static void random_edits_are_found(void **state) {
  (void)state;
  for (unsigned s = 1; s < 5000; s++) {
    seed = s;
    check_program(2 + (int)draw(300), -1);
  }
}

static void one_in_a_hundred_of_fifty_thousand_is_found(void **state) {
  (void)state;
  seed = 7;
  check_program(50000, 500);
}

/* Whatever the bytes: hunks are in order, within the texts, and what lies between them has the same number of lines. */
static void any_bytes_are_survived(void **state) {
  static const char bytes[] = "%a01=(){}[]<>,:#!^\"\\ \n\n-.loc(metadata={ROOT\xc3\xa9";
  (void)state;
  for (seed = 7; seed < 3000; seed++) {
    unsigned at = seed;
    char a[400] = {0}, b[400];
    int n = (int)draw(400), m = (int)draw(400);
    for (int i = 0; i < n; i++)
      a[i] = bytes[draw(sizeof bytes)];
    for (int i = 0; i < m; i++)
      b[i] = draw(3) && i < n ? a[i] : bytes[draw(sizeof bytes)];
    struct diff d;
    assert_int_equal(diff_make((struct diff_text){a, (size_t)n}, (struct diff_text){b, (size_t)m}, &d, NULL), ST_OK);
    int x = 1, y = 1;
    for (int i = 0; i < d.n; i++) {
      const struct diff_hunk *h = &d.hunks[i];
      assert_true(h->from >= x && h->to >= y && h->from - x == h->to - y && h->n_from + h->n_to > 0);
      x = h->from + h->n_from;
      y = h->to + h->n_to;
      for (int k = 0; k < h->n_pairs; k++)
        assert_true(h->pairs[k].from >= h->from && h->pairs[k].from < x && h->pairs[k].to >= h->to &&
                    h->pairs[k].to < y);
    }
    assert_int_equal(d.lines_from + 1 - x, d.lines_to + 1 - y);
    struct buf out;
    buf_init(&out, 1 << 20);
    diff_json(&d, (struct diff_text){a, (size_t)n}, (struct diff_text){b, (size_t)m}, &out);
    json_t *j = json_loadb(out.data, out.len, 0, NULL);
    assert_non_null(j);
    json_decref(j);
    buf_clear(&out);
    diff_clear(&d);
    seed = at;
  }
}

/* Nothing in common, or everything the same line: bounded work, and an answer. */
static void large_strangers_end(void **state) {
  (void)state;
  size_t n = 60000, cap = n * 24;
  char *a = malloc(cap), *b = malloc(cap);
  assert_true(a && b);
  for (int mode = 0; mode < 3; mode++) {
    size_t p = 0, q = 0;
    for (size_t i = 0; i < n; i++) {
      p += (size_t)snprintf(a + p, cap - p, "op%zu\n", mode == 2 ? i * 7919 % 61 : i);
      q += (size_t)snprintf(b + q, cap - q, "op%zu\n", mode == 0 ? n + i : mode == 1 ? n - 1 - i : i * 104729 % 59);
    }
    struct diff d;
    assert_int_equal(diff_make((struct diff_text){a, p}, (struct diff_text){b, q}, &d, NULL), ST_OK);
    assert_int_equal(d.lines_from, (int)n);
    assert_true(d.n > 0);
    diff_clear(&d);
  }
  free(a);
  free(b);
  char *huge = calloc(1, (size_t)DIFF_TEXT_MAX + 2);
  assert_non_null(huge);
  struct diff d;
  assert_int_equal(diff_make((struct diff_text){huge, (size_t)DIFF_TEXT_MAX + 1}, text(""), &d, NULL), ST_LIMIT);
  free(huge);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(spelling_is_no_change),
      cmocka_unit_test(a_change_is_found),
      cmocka_unit_test(the_right_one_of_equal_lines_stays),
      cmocka_unit_test(operands_are_followed),
      cmocka_unit_test(words_are_marked),
      cmocka_unit_test(random_edits_are_found),
      cmocka_unit_test(one_in_a_hundred_of_fifty_thousand_is_found),
      cmocka_unit_test(any_bytes_are_survived),
      cmocka_unit_test(large_strangers_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
