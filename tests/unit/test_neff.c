/* test_neff: the container of a NEFF: what is written is read again, and what does not fit is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "neff/inspect.h"

#include <cmocka.h> /* after ours: it defines fail() */

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % below;
}

static void draw_bytes(void *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    ((unsigned char *)p)[i] = (unsigned char)draw(256);
}

static void draw_text(char *out, size_t most) {
  const size_t n = draw((uint32_t)most + 1);
  for (size_t i = 0; i < n; i++)
    out[i] = (char)('!' + draw(94));
  out[n] = 0;
}

static struct neff draw_neff(struct arena *a) {
  struct neff x = {.is_compressed = draw(2)};
  struct neff_header *h = &x.header;
  draw_bytes(h->uuid, sizeof h->uuid);
  draw_bytes(h->node_cores, sizeof h->node_cores);
  draw_text(h->build, NEFF_BUILD_SIZE);
  draw_text(h->name, NEFF_NAME_SIZE);
  h->package_version = 1 + draw(2);
  h->major = draw(10);
  h->minor = (uint64_t)draw(1000) << 33;
  h->features = (uint64_t)draw(UINT32_MAX) << 32 | draw(UINT32_MAX);
  h->cores = draw(UINT32_MAX);
  h->requested_cores = draw(100);
  h->lnc = draw(3);
  const int n = (int)draw(12);
  for (int i = 0; i < n; i++) {
    const size_t size = draw(4) ? draw(3000) : 0;
    char *data = arena_alloc(a, size + 1);
    draw_bytes(data, size);
    neff_add(
        a, &x,
        arena_printf(
            a, "%s%d/%.*s.bin", draw(2) ? "sg00/" : "", i, (int)draw(120),
            "long-name-"
            "long-name-long-name-long-name-long-name-long-name-long-name-long-name-long-name-long-name-long-name-"),
        data, size);
  }
  return x;
}

static void assert_same(const struct neff *x, const struct neff *y) {
  assert_memory_equal(x->header.uuid, y->header.uuid, NEFF_UUID_SIZE);
  assert_memory_equal(x->header.node_cores, y->header.node_cores, NEFF_NODES);
  assert_string_equal(x->header.build, y->header.build);
  assert_string_equal(x->header.name, y->header.name);
  assert_int_equal(x->header.package_version, y->header.package_version);
  assert_int_equal(x->header.major, y->header.major);
  assert_int_equal(x->header.minor, y->header.minor);
  assert_int_equal(x->header.features, y->header.features);
  assert_int_equal(x->header.cores, y->header.cores);
  assert_int_equal(x->header.requested_cores, y->header.requested_cores);
  assert_int_equal(x->header.lnc, y->header.lnc);
  assert_int_equal(x->is_compressed, y->is_compressed);
  assert_int_equal(x->members.n, y->members.n);
  for (int i = 0; i < x->members.n; i++) {
    assert_string_equal(x->members.v[i].name, y->members.v[i].name);
    assert_int_equal(x->members.v[i].size, y->members.v[i].size);
    assert_memory_equal(x->members.v[i].data, y->members.v[i].data, x->members.v[i].size);
  }
}

static void what_is_written_is_read_and_written_the_same(void **state) {
  (void)state;
  for (int round = 0; round < 300; round++) {
    struct arena a;
    struct error err;
    struct buf b, again;
    struct neff y;
    arena_init(&a);
    buf_init(&b, 1 << 20);
    buf_init(&again, 1 << 20);
    const struct neff x = draw_neff(&a);
    assert_int_equal(neff_write(&x, &b, &err), ST_OK);
    assert_int_equal(neff_read(&a, b.data, b.len, NEFF_LIMITS, &y, &err), ST_OK);
    assert_int_equal(y.hash, NEFF_HASH_RIGHT);
    assert_int_equal(y.header.header_size + y.header.data_size, b.len);
    assert_same(&x, &y);
    json_t *differences = neff_diff(&x, &y);
    assert_int_equal(json_array_size(differences), 0);
    json_decref(differences);
    assert_int_equal(neff_write(&y, &again, &err), ST_OK);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.data, b.data, b.len);
    buf_clear(&again);
    buf_clear(&b);
    arena_clear(&a);
  }
}

/* ---- each field at its place ------------------------------------------------------------------------------------- */

static void each_field_of_the_header_is_at_its_documented_offset(void **state) {
  (void)state;
  unsigned char raw[NEFF_HEADER_SIZE + 16] = {0}, written[NEFF_HEADER_SIZE];
  struct neff_header h;
  static const struct {
    int at, size;
    uint64_t value;
  } integers[] = {{0, 8, 2},  {8, 8, 1024}, {16, 8, 16},   {24, 8, 0x1122334455667788},
                  {32, 8, 4}, {168, 4, 5},  {476, 4, 678}, {544, 8, 0x8000000000000001},
                  {552, 4, 2}};
  for (size_t k = 0; k < sizeof integers / sizeof *integers; k++)
    for (int i = 0; i < integers[k].size; i++)
      raw[integers[k].at + i] = (unsigned char)(integers[k].value >> 8 * i);
  memcpy(raw + 40, "compiler 2.0", 12);
  memset(raw + 172, 0xaa, 32);
  memset(raw + 204, 0xbb, 16);
  memcpy(raw + 220, "net", 3);
  raw[480] = 7;
  raw[543] = 9;
  assert_int_equal(neff_header_get(raw, sizeof raw, &h, NULL), ST_OK);
  assert_int_equal(h.package_version, 2);
  assert_int_equal(h.data_size, 16);
  assert_int_equal(h.major, 0x1122334455667788);
  assert_int_equal(h.minor, 4);
  assert_string_equal(h.build, "compiler 2.0");
  assert_int_equal(h.cores, 5);
  assert_int_equal(h.hash[0] + h.hash[31], 2 * 0xaa);
  assert_int_equal(h.uuid[0] + h.uuid[15], 2 * 0xbb);
  assert_string_equal(h.name, "net");
  assert_int_equal(h.requested_cores, 678);
  assert_int_equal(h.node_cores[0], 7);
  assert_int_equal(h.node_cores[63], 9);
  assert_int_equal(h.features, 0x8000000000000001);
  assert_int_equal(h.lnc, 2);
  neff_header_put(&h, written);
  assert_memory_equal(written, raw, NEFF_HEADER_SIZE);
}

static void a_text_of_the_header_that_is_no_utf8_is_readable(void **state) {
  (void)state;
  unsigned char raw[NEFF_HEADER_SIZE] = {[8] = 0,      [9] = 4,      [220] = 'a', [221] = 0xff,
                                         [222] = '\n', [223] = 0xc3, [224] = 0xa4};
  struct neff_header h;
  memset(raw + 40, 'x', NEFF_BUILD_SIZE); /* as long as its field, without a NUL */
  assert_int_equal(neff_header_get(raw, sizeof raw, &h, NULL), ST_OK);
  assert_string_equal(h.name, "a??\xc3\xa4");
  assert_int_equal(strlen(h.build), NEFF_BUILD_SIZE);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void assert_read(const struct buf *b, struct neff_limits limits, enum status want, const char *words) {
  struct arena a;
  struct error err = {0};
  struct neff x;
  arena_init(&a);
  assert_int_equal(neff_read(&a, buf_text(b), b->len, limits, &x, &err), want);
  if (!strstr(err.text, words))
    fail_msg("\"%s\" is not in \"%s\"", words, err.text);
  arena_clear(&a);
}

static void write_one(struct buf *b, const char *name, const void *data, size_t n, bool is_compressed) {
  struct arena a;
  struct error err;
  arena_init(&a);
  struct neff x = {.header.package_version = 2, .is_compressed = is_compressed};
  neff_add(&a, &x, name, data, n);
  buf_init(b, 64 << 20);
  assert_int_equal(neff_write(&x, b, &err), ST_OK);
  arena_clear(&a);
}

static void every_prefix_of_a_file_is_refused(void **state) {
  (void)state;
  struct buf b;
  write_one(&b, "info.json", "{}", 2, true);
  const size_t whole = b.len;
  for (size_t n = 0; n < whole; n++) {
    struct arena a;
    struct error err = {0};
    struct neff x;
    arena_init(&a);
    assert_int_equal(neff_read(&a, b.data, n, NEFF_LIMITS, &x, &err), ST_INPUT);
    assert_true(err.text[0]);
    arena_clear(&a);
  }
  buf_clear(&b);
}

static void a_compressed_bomb_stops_at_the_limit(void **state) {
  (void)state;
  struct buf b;
  const size_t size = 32 << 20;
  char *zeros = calloc(1, size);
  write_one(&b, "zeros", zeros, size, true);
  free(zeros);
  assert_true(b.len < size / 100);
  assert_read(&b, (struct neff_limits){.total_bytes = 1 << 20, .members = 10}, ST_LIMIT, "more than 1048576 bytes");
  assert_read(&b, (struct neff_limits){.total_bytes = 64 << 20, .members = 0}, ST_LIMIT, "more than 0 members");
  buf_clear(&b);
}

static void a_wrong_hash_is_reported(void **state) {
  (void)state;
  struct arena a;
  struct error err;
  struct neff x;
  struct buf b;
  write_one(&b, "a", "b", 1, false);
  b.data[172] ^= 1;
  arena_init(&a);
  assert_int_equal(neff_read(&a, b.data, b.len, NEFF_LIMITS, &x, &err), ST_OK);
  assert_int_equal(x.hash, NEFF_HASH_WRONG);
  b.data[0] = 9; /* a version whose hash is not documented */
  assert_int_equal(neff_read(&a, b.data, b.len, NEFF_LIMITS, &x, &err), ST_OK);
  assert_int_equal(x.hash, NEFF_HASH_UNKNOWN);
  arena_clear(&a);
  buf_clear(&b);
}

static void sizes_of_the_header_that_do_not_fit_are_refused(void **state) {
  (void)state;
  struct buf b;
  write_one(&b, "a", "b", 1, false);
  memset(b.data + 16, 0xff, 8);
  assert_read(&b, NEFF_LIMITS, ST_INPUT, "promises 18446744073709551615 bytes");
  memset(b.data + 8, 0xff, 8);
  assert_read(&b, NEFF_LIMITS, ST_INPUT, "gives itself 18446744073709551615 bytes");
  memset(b.data + 8, 0, 8);
  assert_read(&b, NEFF_LIMITS, ST_INPUT, "gives itself 0 bytes");
  buf_clear(&b);
}

/* Changes the name of the one member of a plain archive, and its checksum. */
static void rename_member(struct buf *b, const char *name, char type) {
  unsigned char *tar = (unsigned char *)b->data + NEFF_HEADER_SIZE;
  unsigned sum = 0;
  memset(tar, 0, 100);
  memcpy(tar, name, strlen(name));
  tar[156] = (unsigned char)type;
  memset(tar + 148, ' ', 8);
  for (int i = 0; i < 512; i++)
    sum += tar[i];
  snprintf((char *)tar + 148, 8, "%06o", sum);
}

static void names_that_leave_the_folder_and_members_that_are_no_files_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {"../a", "/etc/passwd", "a/../../b", "a//b", "a/.", "a\\b", "a\x01z", "\xff"};
  struct buf b;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    write_one(&b, "plain", "b", 1, false);
    rename_member(&b, names[k], '0');
    assert_read(&b, NEFF_LIMITS, ST_INPUT, names[k][0] == '\xff' ? "archive" : "cannot be a file's");
    buf_clear(&b);
  }
  for (const char *type = "1236"; *type; type++) { /* hard link, symbolic link, device, FIFO */
    write_one(&b, "plain", "b", 1, false);
    rename_member(&b, "plain", *type);
    assert_read(&b, NEFF_LIMITS, ST_INPUT, "archive");
    buf_clear(&b);
  }
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

#define DEF(queue, var) \
  "{\"name\": \"sg00\", \"pe\": \"PE0.json\", \"dma_queue.q0\": " queue ", \"var.x\": " var \
  ", \"var.y\": {\"type\": \"state-buffer\", \"var_id\": 2, \"size\": 64}}"
#define QUEUE "{\"type\": \"in\", \"owner\": \"sp\", \"num_queues\": 4}"
#define VAR "{\"type\": \"input\", \"var_id\": 1, \"size\": 64}"
#define PE(desc) "{\"instr\": [1, 2, 3], \"dma\": [{\"id\": 0, \"queue\": \"q0\", \"desc\": [" desc "]}]}"
#define DESC(from, to, sizes, steps) \
  "{\"op\": \"copy\", \"from\": \"" from "\", \"to\": \"" to \
  "\", \"from_off\": 0, \"to_off\": 0, \"from_sizes\": " sizes ", \"to_sizes\": " sizes ", \"from_steps\": " steps \
  ", \"to_steps\": " steps "}"

static enum status read_model(struct arena *a, const char *def, const char *pe, struct neff_model *m,
                              struct error *err) {
  struct neff x = {.header.package_version = 2};
  neff_add(a, &x, "sg00/def.json", def, strlen(def));
  neff_add(a, &x, "sg00/PE0.json", pe, strlen(pe));
  return neff_model_read(a, &x, m, err);
}

static void variables_queues_and_transfers_are_counted(void **state) {
  (void)state;
  struct arena a;
  struct error err;
  struct neff_model m;
  arena_init(&a);
  assert_int_equal(
      read_model(&a, DEF(QUEUE, VAR), PE(DESC("x", "y", "[8, 4]", "[16]") "," DESC("x", "y", "[16]", "[]")), &m, &err),
      ST_OK);
  assert_int_equal(m.subgraphs.n, 1);
  const struct neff_subgraph *s = &m.subgraphs.v[0];
  assert_string_equal(s->name, "sg00");
  assert_int_equal(s->vars.n, 2);
  assert_int_equal(s->vars.v[0].size, 64);
  assert_int_equal(s->queues.v[0].rings, 4);
  assert_int_equal(s->queues.v[0].transfers, 1);
  assert_int_equal(s->queues.v[0].descriptors, 2);
  assert_int_equal(s->queues.v[0].bytes, 48);
  assert_int_equal(s->n_engines, 1);
  assert_int_equal(s->engines[0].instructions, 3);
  assert_int_equal(m.tensors.n, 1);
  assert_string_equal(m.tensors.v[0].name, "x");
  neff_model_clear(&m);
  arena_clear(&a);
}

static void each_documented_field_of_def_json_is_read(void **state) {
  (void)state;
  static const char def[] =
      "{\"name\": \"sg00\", \"pe\": \"PE0.json\", "
      "\"dma_queue.q\": {\"type\": \"dynamic\", \"num_queues\": 16, \"owner\": \"act\", \"queue_instances\": [\"q.a\", "
      "\"q.b\"], \"semaphore_set\": [3, 4], \"semaphore\": 5, \"fabric_path\": \"alt\", \"pinned\": true}, "
      "\"var.sb\": {\"type\": \"state-buffer\", \"var_id\": 1, \"size\": 1, \"alignment\": 64}, "
      "\"var.in\": {\"type\": \"input\", \"var_id\": 2, \"size\": 64, \"fabric_path\": \"main\"}, "
      "\"var.out\": {\"type\": \"output\", \"var_id\": 3, \"size\": 64}, "
      "\"var.f\": {\"type\": \"file\", \"var_id\": 4, \"size\": 4, \"file_name\": \"f.npy\"}, "
      "\"var.t\": {\"type\": \"tmp-buf\", \"var_id\": 5, \"size\": 5}, "
      "\"var.v\": {\"type\": \"virtual\", \"var_id\": 6, \"size\": 6, \"backing_variable_off\": 128, \"ops\": []}, "
      "\"var.p\": {\"type\": \"pointer\", \"var_id\": 7, \"size\": 7, \"referenced_var_id\": 2}, "
      "\"var.d\": {\"type\": \"dge-table\", \"var_id\": 8, \"size\": 8, \"list\": [2, 3]}}";
  static const char transfer[] =
      "{\"id\": 0, \"instance_name\": \"q.b\", \"function_start\": true, \"section_start_desc\": 0, "
      "\"event\": 1, \"semaphore\": 5, \"remote_semaphores\": [1], \"desc\": [%s]}";
#define SIDES \
  "\"to\": \"out\", \"from_off\": 0, \"to_off\": 0, \"from_sizes\": [8], \"to_sizes\": [8], \"from_steps\": [], " \
  "\"to_steps\": []"
  static const char desc[] =
      "{\"from\": \"in\", " SIDES "}, {\"op\": \"copy\", \"from\": \"in\", " SIDES "}, "
      "{\"op\": \"cast\", \"from_dtype\": \"float32\", \"to_dtype\": \"bfloat16\", \"from\": \"in\", " SIDES "}, "
      "{\"op\": \"add\", \"from_arr\": [\"in\", \"out\"], " SIDES "}, "
      "{\"op\": \"min\", \"constant_dtype\": \"float32\", \"constant\": 1, \"from\": \"in\", " SIDES "}, "
      "{\"op\": \"max\", \"constant\": 1, \"from\": \"in\", " SIDES "}, "
      "{\"op\": \"fma\", \"scale_dtype\": \"float32\", \"scale\": 2.0, \"from_arr\": [{\"from\": \"in\"}], " SIDES "}, "
      "{\"op\": \"transpose\", \"transpose_shape\": [1, 1, 2, 2], \"transpose_element_size\": 2, "
      "\"num_tiling_dimensions\": 1, \"from\": \"in\", " SIDES "}, {\"op\": \"new\", \"from\": \"in\", " SIDES "}";
#undef SIDES
  static const char tables[] =
      "\"activation_function_sets\": [\"gelu_and_others\"], \"dve_tables\": [{\"control_table\": \"c.bin\", "
      "\"datapath_table\": \"d.bin\", \"opcode_table\": \"o.bin\"}]";
  static const char *const fields[] = {
      "{\"alignment\": 64}",        "{\"fabric_path\": \"main\"}", "{}", "{}", "{}", "{\"backing_variable_off\": 128}",
      "{\"referenced_var_id\": 2}", "{\"list\": [2, 3]}"};
  static const enum neff_var_type types[] = {NEFF_VAR_STATE_BUFFER, NEFF_VAR_INPUT,    NEFF_VAR_OUTPUT,
                                             NEFF_VAR_FILE,         NEFF_VAR_TMP_BUF,  NEFF_VAR_VIRTUAL,
                                             NEFF_VAR_POINTER,      NEFF_VAR_DGE_TABLE};
  struct arena a;
  struct error err;
  struct neff_model m;
  arena_init(&a);
  const char *pe = arena_printf(&a, "{\"dma\": [%s], %s, \"other\": 1}", arena_printf(&a, transfer, desc), tables);
  if (read_model(&a, def, pe, &m, &err))
    fail_msg("%s", err.text);
  const struct neff_subgraph *s = &m.subgraphs.v[0];
  assert_int_equal(s->vars.n, 8);
  for (int k = 0; k < 8; k++) {
    json_t *found = neff_model_fields(s->vars.v[k].json, NEFF_OF_VAR), *want = json_loads(fields[k], 0, NULL);
    assert_true(json_equal(found, want));
    assert_int_equal(s->vars.v[k].type, types[k]);
    assert_int_equal(s->vars.v[k].id, k + 1);
    json_decref(found);
    json_decref(want);
  }
  assert_string_equal(s->vars.v[3].file, "f.npy");
  const struct neff_queue *q = &s->queues.v[0];
  assert_true(q->rings == 16 && q->transfers == 1 && q->descriptors == 9 && q->bytes == 72); /* by its instance */
  assert_string_equal(q->type, "dynamic");
  assert_string_equal(q->owner, "act");
  json_t *found = neff_model_fields(q->json, NEFF_OF_QUEUE);
  assert_int_equal(json_object_size(found), 4);
  json_decref(found);
  json_t *engine = neff_model_fields(s->engines[0].object, NEFF_OF_ENGINE);
  json_t *want_engine = json_loads(arena_printf(&a, "{%s}", tables), 0, NULL);
  assert_true(json_equal(engine, want_engine));
  json_decref(engine);
  json_decref(want_engine);
  static const int64_t ops[NEFF_MOVE_OPS] = {2, 1, 1, 1, 1, 1, 1, 1};
  assert_memory_equal(s->engines[0].ops, ops, sizeof ops);
  neff_model_clear(&m);
  arena_clear(&a);
}

static void descriptors_outside_of_their_variables_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *def, *pe, *words;
  } cases[] = {
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[65]", "[]")), "past the end of y"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[8, 8]", "[9]")), "past the end of y"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[8, 4]", "[4]")), "writes bytes of y twice"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[8, 4]", "[0]")), "writes bytes of y twice"},
      {DEF(QUEUE, VAR), PE(DESC("z", "y", "[8]", "[]")), "z, which is no variable"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[8, 9223372036854775807]", "[9223372036854775807]")),
       "offsets, 1 to 4 sizes"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[1, 9223372036854775807]", "[9]")), "past the end of y"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[0]", "[]")), "offsets, 1 to 4 sizes"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[8, 2]", "[-8]")), "offsets, 1 to 4 sizes"},
      {DEF(QUEUE, VAR), PE(DESC("x", "y", "[1, 1, 1, 1, 1]", "[1, 1, 1, 1]")), "offsets, 1 to 4 sizes"},
      {DEF("{\"num_queues\": 17}", VAR), PE(""), "1 to 16 rings"},
      {DEF(QUEUE, "{\"type\": \"disk\", \"size\": 1}"), PE(""), "unknown type \"disk\""},
      {DEF(QUEUE, "{\"type\": \"input\", \"size\": -1}"), PE(""), "needs a size"},
      {DEF(QUEUE, "{\"type\": \"input\", \"size\": 1, \"alignment\": -64}"), PE(""),
       "variable x has a wrong alignment"},
      {DEF(QUEUE, "{\"type\": \"dge-table\", \"size\": 1, \"list\": [\"x\"]}"), PE(""), "variable x has a wrong list"},
      {DEF("{\"queue_instances\": [1]}", VAR), PE(""), "queue q0 has a wrong queue_instances"},
      {DEF("{\"semaphore_set\": 1}", VAR), PE(""), "queue q0 has a wrong semaphore_set"},
      {DEF(QUEUE, VAR), "[1]", "no JSON object"},
      {DEF(QUEUE, VAR), "{\"dma\": 1,", "sg00/PE0.json:1:"},
      {"{\"pe\": \"other.json\"}", "{}", "no member"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct arena a;
    struct error err = {0};
    struct neff_model m;
    arena_init(&a);
    assert_int_equal(read_model(&a, cases[k].def, cases[k].pe, &m, &err), ST_INPUT);
    if (!strstr(err.text, cases[k].words))
      fail_msg("case %zu: \"%s\" is not in \"%s\"", k, cases[k].words, err.text);
    neff_model_clear(&m);
    arena_clear(&a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_and_written_the_same),
      cmocka_unit_test(each_field_of_the_header_is_at_its_documented_offset),
      cmocka_unit_test(a_text_of_the_header_that_is_no_utf8_is_readable),
      cmocka_unit_test(every_prefix_of_a_file_is_refused),
      cmocka_unit_test(a_compressed_bomb_stops_at_the_limit),
      cmocka_unit_test(a_wrong_hash_is_reported),
      cmocka_unit_test(sizes_of_the_header_that_do_not_fit_are_refused),
      cmocka_unit_test(names_that_leave_the_folder_and_members_that_are_no_files_are_refused),
      cmocka_unit_test(variables_queues_and_transfers_are_counted),
      cmocka_unit_test(each_documented_field_of_def_json_is_read),
      cmocka_unit_test(descriptors_outside_of_their_variables_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
