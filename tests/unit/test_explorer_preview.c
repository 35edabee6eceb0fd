/* The preview of a link: a PNG that decodes, whatever the texts are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "preview/canvas.h"
#include "preview/preview.h"
#include "preview/words.h"

#include <cmocka.h>

enum { PNG_MAX = 4 << 20 };

static uint32_t u32(const unsigned char *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Decodes the PNG's pixels, which the caller frees: indices of the palette. */
static unsigned char *decode(const struct buf *png) {
  const unsigned char *p = (const unsigned char *)png->data + 8, *end = (const unsigned char *)png->data + png->len;
  const size_t size = (PREVIEW_WIDTH + 1) * PREVIEW_HEIGHT;
  unsigned char *rows = malloc(size);
  int chunks = 0;
  assert_memory_equal(png->data, "\x89PNG\r\n\x1a\n", 8);
  for (; p < end; p += 12 + u32(p), chunks++) {
    const uint32_t len = u32(p);
    assert_true(len <= (size_t)(end - p) - 12);
    assert_int_equal(crc32(0, p + 4, len + 4), u32(p + 8 + len));
    if (!memcmp(p + 4, "IHDR", 4)) {
      assert_int_equal(u32(p + 8), PREVIEW_WIDTH);
      assert_int_equal(u32(p + 12), PREVIEW_HEIGHT);
    } else if (!memcmp(p + 4, "IDAT", 4)) {
      uLongf n = size;
      assert_int_equal(uncompress(rows, &n, p + 8, len), Z_OK);
      assert_int_equal(n, size);
    }
  }
  assert_ptr_equal(p, end);
  assert_int_equal(chunks, 4);
  return rows;
}

static unsigned char *draw(const struct preview *p) {
  struct buf png;
  buf_init(&png, PNG_MAX);
  assert_int_equal(preview_png(p, &png), ST_OK);
  unsigned char *rows = decode(&png);
  buf_clear(&png);
  return rows;
}

/* Returns how many pixels two pictures of a title differ in. */
static int difference(const char *x, const char *y) {
  unsigned char *a = draw(&(struct preview){.title = x, .title_len = strlen(x)});
  unsigned char *b = draw(&(struct preview){.title = y, .title_len = strlen(y)});
  int n = 0;
  for (int i = 0; i < (PREVIEW_WIDTH + 1) * PREVIEW_HEIGHT; i++)
    n += a[i] != b[i];
  free(a);
  free(b);
  return n;
}

static void the_title_is_drawn(void **state) {
  (void)state;
  assert_int_equal(difference("softmax", "softmax"), 0);
  assert_true(difference("softmax", "softmin") > 100);
  assert_true(difference("", "softmax") > 1000);
}

static void characters_without_a_glyph_are_boxes(void **state) {
  (void)state;
  assert_int_equal(difference("\xe6\x97\xa5", "\xe6\x9c\xac"), 0); /* two of Japanese */
  assert_int_equal(difference("\xff", "\xe6\x97\xa5"), 0);         /* a byte that is not UTF-8 */
  assert_true(difference("", "\xff") > 50);
  assert_true(difference("\xc3\xbc", "\xe6\x97\xa5") > 50); /* an umlaut is not */
}

static void a_text_stays_left_of_its_border(void **state) {
  (void)state;
  static const struct canvas_ink inks[] = {{0, 0}, {0xffffff, 0}};
  enum { WIDTH = 400, HEIGHT = 60, BORDER = 200 };
  char text[300];
  for (int len = 1; len < (int)sizeof text; len += 7) {
    struct canvas c;
    memset(text, 'W', sizeof text);
    assert_int_equal(canvas_open(&c, WIDTH, HEIGHT, inks, 2), ST_OK);
    const int end = canvas_text(&c, FACE_TEXT, 10, 40, BORDER, 1, text, (size_t)len);
    assert_true(end <= BORDER);
    for (int y = 0; y < HEIGHT; y++)
      for (int x = BORDER + 2; x < WIDTH; x++)
        assert_int_equal(c.pixels[y * WIDTH + x], 15);
    canvas_close(&c);
  }
}

static void words_have_all_characters_of_a_line(void **state) {
  (void)state;
  static const char line[] = "@trace(a='x\\'y') # \"no string\"";
  static const enum word_kind kinds[] = {WORD_DECORATOR, WORD_PLAIN, WORD_PLAIN,  WORD_PLAIN,
                                         WORD_STRING,    WORD_PLAIN, WORD_COMMENT};
  struct words w = {.is_python = true};
  struct word word;
  const char *at = line;
  size_t n = 0;
  words_line(&w, line, line + strlen(line));
  for (; words_next(&w, &word); n++) {
    assert_ptr_equal(word.text, at);
    assert_true(n < sizeof kinds / sizeof *kinds);
    assert_int_equal(word.kind, kinds[n]);
    at += word.len;
  }
  assert_ptr_equal(at, line + strlen(line));
}

static void a_string_of_several_lines_stays_open(void **state) {
  (void)state;
  struct words w = {.is_python = true};
  struct word word;
  static const char *const lines[] = {"\"\"\"first", "for", "last\"\"\""};
  for (int i = 0; i < 3; i++) {
    words_line(&w, lines[i], lines[i] + strlen(lines[i]));
    assert_true(words_next(&w, &word));
    assert_int_equal(word.kind, WORD_STRING);
    assert_false(words_next(&w, &word));
  }
}

static void random_texts_are_drawn(void **state) {
  (void)state;
  static const char pieces[] = "\"'#@\\\n\t\r ()def0.\xff\xc3\xbc\xe6\x97\xa5\xf0\x9f\x99\x82\"\"\"";
  char title[200], source[4000];
  srand(7);
  for (int round = 0; round < 60; round++) {
    const size_t n = (size_t)rand() % sizeof source, k = (size_t)rand() % sizeof title;
    for (size_t i = 0; i < n; i++)
      source[i] = pieces[(size_t)rand() % (sizeof pieces - 1)];
    for (size_t i = 0; i < k; i++)
      title[i] = (char)rand();
    free(draw(&(struct preview){.title = title,
                                .title_len = k,
                                .target = "trn2",
                                .source = source,
                                .source_len = n,
                                .is_python = round % 2,
                                .stages = rand() % 3,
                                .checked = rand() % 3,
                                .failed = rand() % 2,
                                .simulated_us = rand() % 2 ? 1e300 : 0,
                                .is_refused = rand() % 4 == 0}));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_title_is_drawn),
      cmocka_unit_test(characters_without_a_glyph_are_boxes),
      cmocka_unit_test(a_text_stays_left_of_its_border),
      cmocka_unit_test(words_have_all_characters_of_a_line),
      cmocka_unit_test(a_string_of_several_lines_stays_open),
      cmocka_unit_test(random_texts_are_drawn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
