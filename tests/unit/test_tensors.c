/* Files of arrays: what is written is read back, and what is damaged is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* before cmocka, which has a macro called fail */
#include "neff/tensors.h"

#include <cmocka.h>

static const float floats[6] = {1, 2, 3, 4, 5, -6};
static const uint8_t bytes[3] = {7, 8, 9};

static void write_sample(struct buf *b) {
  struct error err;
  struct tensor v[] = {
      {.name = "a \"b\"", .dtype = DT_F32, .rank = 2, .dims = {2, 3}, .data = floats, .size = sizeof floats},
      {.name = "scalar", .dtype = DT_F32, .data = floats, .size = 4},
      {.name = "empty", .dtype = DT_I64, .rank = 2, .dims = {0, 5}, .data = "", .size = 0},
      {.name = "bytes", .dtype = DT_U8, .rank = 1, .dims = {3}, .data = bytes, .size = 3},
  };
  const struct tensors t = {.n = 4, .v = v, .n_meta = 1, .meta = {{"reference", "numpy"}}};
  buf_init(b, 1 << 20);
  assert_int_equal(tensors_write(b, &t, &err), ST_OK);
}

static void what_is_written_is_read_back(void **state) {
  struct buf b;
  struct arena a;
  struct tensors t;
  struct error err;
  (void)state;
  write_sample(&b);
  arena_init(&a);
  assert_int_equal(tensors_read(&a, b.data, b.len, &t, &err), ST_OK);
  assert_int_equal(t.n, 4);
  const struct tensor *x = tensors_find(&t, "a ", "\"b\"");
  assert_non_null(x);
  assert_true(x->rank == 2 && x->dims[0] == 2 && x->dims[1] == 3 && !memcmp(x->data, floats, sizeof floats));
  assert_int_equal(tensors_find(&t, "", "scalar")->rank, 0);
  assert_int_equal(tensors_find(&t, "", "empty")->size, 0);
  assert_memory_equal(tensors_find(&t, "", "bytes")->data, bytes, 3);
  assert_string_equal(tensors_meta(&t, "reference"), "numpy");
  assert_null(tensors_find(&t, "", "none"));
  assert_null(tensors_meta(&t, "none"));
  arena_clear(&a);
  buf_clear(&b);
}

static void every_file_that_is_cut_is_refused(void **state) {
  struct buf b;
  (void)state;
  write_sample(&b);
  for (size_t n = 0; n < b.len; n++) {
    struct arena a;
    struct tensors t;
    struct error err;
    char *copy = malloc(n + 1); /* of its own, so that a sanitizer sees what is read past its end */
    assert_non_null(copy);
    memcpy(copy, b.data, n);
    arena_init(&a);
    assert_int_equal(tensors_read(&a, copy, n, &t, &err), ST_INPUT);
    arena_clear(&a);
    free(copy);
  }
  buf_clear(&b);
}

/* One byte of the header is another one: it is read as it says, or refused; never more is read than there is. */
static void no_changed_header_reads_beyond_the_file(void **state) {
  struct buf b;
  uint64_t header;
  int refused = 0;
  (void)state;
  write_sample(&b);
  memcpy(&header, b.data, sizeof header);
  for (size_t at = 0; at < 8 + (size_t)header; at++)
    for (int c = 0; c < 256; c += 5) {
      struct arena a;
      struct tensors t;
      struct error err;
      const char old = b.data[at];
      b.data[at] = (char)c;
      arena_init(&a);
      const enum status st = tensors_read(&a, b.data, b.len, &t, &err);
      size_t sum = 0;
      for (int i = 0; !st && i < t.n; i++)
        sum += t.v[i].size;
      assert_true(st == ST_INPUT || sum <= b.len);
      refused += st == ST_INPUT;
      arena_clear(&a);
      b.data[at] = old;
    }
  assert_true(refused > 1000);
  buf_clear(&b);
}

static void refuse(const char *header, size_t n_data) {
  struct arena a;
  struct tensors t;
  struct error err;
  struct buf b;
  const uint64_t n = strlen(header);
  buf_init(&b, 1 << 20);
  buf_append(&b, &n, sizeof n);
  buf_puts(&b, header);
  for (size_t i = 0; i < n_data; i++)
    buf_putc(&b, 'x');
  arena_init(&a);
  if (tensors_read(&a, b.data, b.len, &t, &err) != ST_INPUT)
    fail_msg("%s", header);
  arena_clear(&a);
  buf_clear(&b);
}

static void headers_that_lie_are_refused(void **state) {
  (void)state;
  refuse("[]", 0);
  refuse("{", 0);
  refuse("{}", 1);
  refuse("{\"a\":1}", 0);
  refuse("{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 4);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,5]}}", 5);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4);
  refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         8);
  refuse("{\"__metadata__\":{\"a\":1}}", 0);
  refuse("{\"__metadata__\":[]}", 0);
}

static void what_has_no_name_or_a_wrong_size_is_not_written(void **state) {
  struct buf b;
  struct error err;
  struct tensor complex = {.name = "c", .dtype = DT_C64, .rank = 1, .dims = {1}, .data = floats, .size = 8};
  struct tensor wrong = {.name = "w", .dtype = DT_F32, .rank = 1, .dims = {2}, .data = floats, .size = 4};
  struct tensor large = {.name = "l", .dtype = DT_F32, .rank = 1, .dims = {6}, .data = floats, .size = 24};
  (void)state;
  buf_init(&b, 16);
  assert_int_equal(tensors_write(&b, &(struct tensors){.n = 1, .v = &complex}, &err), ST_INPUT);
  assert_int_equal(tensors_write(&b, &(struct tensors){.n = 1, .v = &wrong}, &err), ST_INPUT);
  assert_int_equal(tensors_write(&b, &(struct tensors){.n = 1, .v = &large}, &err), ST_LIMIT);
  buf_clear(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_back),
      cmocka_unit_test(every_file_that_is_cut_is_refused),
      cmocka_unit_test(no_changed_header_reads_beyond_the_file),
      cmocka_unit_test(headers_that_lie_are_refused),
      cmocka_unit_test(what_has_no_name_or_a_wrong_size_is_not_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
