/* The store against a model of it: random operations, each compared with what plain arrays say.  On SQLite, and on the
 * PostgreSQL database that NKX_TEST_STORE names, which must be empty. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* before cmocka, which has a macro called fail */
#include "store/db.h"
#include "store/store.h"

#include <cmocka.h>

enum { SNIPPETS = 40, KEYS = 12, STEPS = 600, TEXTS = 6 };

static char dir[64], url[300];
static bool is_own_file;

static uint64_t seed = 88172645463325252u;
static unsigned dice(unsigned n) { /* xorshift: the same steps in each run */
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (unsigned)(seed % n);
}

struct model {
  struct {
    bool exists, is_public;
    int text;
    int64_t expires_ms;
    char id[IDENT_LEN + 1], token[IDENT_LEN + 1];
    int parent; /* -1: none */
  } snippets[SNIPPETS];
  int results[KEYS]; /* text, or -1 */
};

/* One of a few texts, so that blobs are shared; some large, one empty. */
static void put_text(struct buf *b, int which) {
  for (int i = 0; i < which * which * 900; i++)
    buf_putc(b, (char)(i * 31 + which * 7 + (i >> 8)));
}

static bool is_text(const struct buf *b, int which) {
  struct buf want;
  buf_init(&want, STORE_BLOB_MAX);
  put_text(&want, which);
  bool same = want.len == b->len && !memcmp(buf_text(&want), buf_text(b), b->len);
  buf_clear(&want);
  return same;
}

static struct db *open_db(void) {
  struct db *db;
  struct error err;
  if (db_open(url, true, &db, &err) || db_migrate(db, &err)) {
    print_error("%s\n", err.text);
    assert_true(false);
  }
  return db;
}

static struct ident_hash hash_of(const char *id) {
  struct ident_hash h;
  ident_hash(id, strlen(id), &h);
  return h;
}

static void put(struct model *m, struct db *db, int i) {
  struct store_snippet s;
  struct error err;
  if (m->snippets[i].exists)
    return;
  store_snippet_init(&s);
  m->snippets[i].is_public = dice(3) == 0;
  m->snippets[i].text = (int)dice(TEXTS);
  m->snippets[i].expires_ms = dice(4) ? 0 : store_now_ms() + 1000000;
  m->snippets[i].parent = dice(2) ? (int)dice(SNIPPETS) : -1;
  assert_int_equal(ident_new(m->snippets[i].token, &err), ST_OK);
  if (m->snippets[i].is_public) {
    assert_int_equal(ident_new_public(m->snippets[i].id, &err), ST_OK);
    memcpy(s.public_id, m->snippets[i].id, sizeof s.public_id);
  } else {
    assert_int_equal(ident_new(m->snippets[i].id, &err), ST_OK);
  }
  s.id = hash_of(m->snippets[i].id);
  s.token = hash_of(m->snippets[i].token);
  s.has_parent = m->snippets[i].parent >= 0;
  if (s.has_parent)
    s.parent = hash_of(m->snippets[m->snippets[i].parent].id);
  s.created_ms = 1000 + i;
  s.expires_ms = m->snippets[i].expires_ms;
  put_text(&s.doc, m->snippets[i].text);
  put_text(&s.frames, (m->snippets[i].text + 1) % TEXTS);
  assert_int_equal(store_put_snippet(db, &s, &err), ST_OK);
  assert_int_equal(store_put_snippet(db, &s, &err), ST_DENIED); /* the id is taken now */
  m->snippets[i].exists = true;
  store_snippet_clear(&s);
}

static void check(struct model *m, struct db *db, int i) {
  struct store_snippet s;
  struct error err;
  bool found, is_whole = dice(2);
  struct ident_hash h = hash_of(m->snippets[i].id);
  store_snippet_init(&s);
  assert_int_equal(store_get_snippet(db, &h, is_whole ? STORE_WHOLE : STORE_ROW, &s, &found, &err), ST_OK);
  assert_int_equal(found, m->snippets[i].exists);
  if (found) {
    assert_int_equal(s.created_ms, 1000 + i);
    assert_int_equal(s.expires_ms, m->snippets[i].expires_ms);
    assert_string_equal(s.public_id, m->snippets[i].is_public ? m->snippets[i].id : "");
    assert_int_equal(s.has_parent, m->snippets[i].parent >= 0);
    assert_true(!is_whole || is_text(&s.doc, m->snippets[i].text));
    assert_true(!is_whole || is_text(&s.frames, (m->snippets[i].text + 1) % TEXTS));
  }
  store_snippet_clear(&s);
}

/* What is removed is removed from the cache as well. */
static void removed(struct model *m, int i) {
  m->snippets[i].exists = false;
  for (int k = 0; k < KEYS; k++)
    if (m->results[k] == (m->snippets[i].text + 1) % TEXTS)
      m->results[k] = -1;
}

static void delete(struct model *m, struct db *db, int i) {
  struct error err;
  bool found, is_removed, is_right = dice(3) > 0;
  struct ident_hash h = hash_of(m->snippets[i].id), token = hash_of(is_right ? m->snippets[i].token : "wrong");
  assert_int_equal(store_delete_snippet(db, &h, &token, &found, &is_removed, &err), ST_OK);
  assert_int_equal(found, m->snippets[i].exists);
  assert_int_equal(is_removed, found && is_right);
  if (is_removed)
    removed(m, i);
}

static void expire(struct model *m, struct db *db, int i) {
  struct error err;
  bool found, changed, is_past = dice(2);
  int64_t at = store_now_ms() + (is_past ? -1 : 2000000), n;
  struct ident_hash h = hash_of(m->snippets[i].id), token = hash_of(m->snippets[i].token);
  assert_int_equal(store_expire_snippet(db, &h, &token, at, &found, &changed, &err), ST_OK);
  assert_int_equal(found, m->snippets[i].exists);
  if (!found)
    return;
  if (!m->snippets[i].expires_ms || at < m->snippets[i].expires_ms) /* never later than it was to */
    m->snippets[i].expires_ms = at;
  m->snippets[i].exists = !is_past;
  check(m, db, i); /* gone at once, whether or not it was purged */
  assert_int_equal(store_purge(db, &n, &err), ST_OK);
  assert_int_equal(n, is_past);
  if (is_past)
    removed(m, i);
}

static void make_key(char key[65], int k) {
  for (int i = 0; i < 64; i++)
    key[i] = "0123456789abcdef"[(k * 5 + i * 3) % 16];
  key[64] = 0;
  key[0] = "0123456789abcdef"[k];
}

static void result(struct model *m, struct db *db, int k) {
  char key[65];
  struct error err;
  struct buf b;
  bool found;
  make_key(key, k);
  buf_init(&b, STORE_BLOB_MAX);
  if (dice(2)) {
    m->results[k] = (int)dice(TEXTS);
    put_text(&b, m->results[k]);
    assert_int_equal(store_put_result(db, key, buf_text(&b), b.len, &err), ST_OK);
    buf_clear(&b);
  }
  assert_int_equal(store_get_result(db, key, &b, &found, &err), ST_OK);
  assert_int_equal(found, m->results[k] >= 0);
  assert_true(!found || is_text(&b, m->results[k]));
  buf_clear(&b);
}

static enum status take_count(void *user, const struct db_value *row, int n, struct error *err) {
  (void)n;
  (void)err;
  *(int64_t *)user = row[0].i;
  return ST_OK;
}

static int64_t count(struct db *db, const char *sql) {
  int64_t n = -1;
  struct error err;
  assert_int_equal(db_run(db, sql, NULL, 0, take_count, &n, NULL, &err), ST_OK);
  return n;
}

static void tell(const char *line) {
  print_error("%s\n", line);
}

static void store_does_what_its_model_does(void **state) {
  static struct model m;
  struct db *db = open_db();
  struct error err;
  (void)state;
  print_message("on %s\n", is_own_file ? "SQLite" : "PostgreSQL");
  for (int i = 0; i < KEYS; i++)
    m.results[i] = -1;
  for (int step = 0; step < STEPS; step++) {
    int i = (int)dice(SNIPPETS);
    switch (dice(8)) {
    case 0:
    case 1:
      put(&m, db, i);
      break;
    case 2:
      delete(&m, db, i);
      break;
    case 3:
      expire(&m, db, i);
      break;
    case 4:
    case 5:
      result(&m, db, (int)dice(KEYS));
      break;
    case 6:
      db_close(db); /* nothing depends on the connection */
      db = open_db();
      break;
    default:
      check(&m, db, i);
    }
  }
  for (int i = 0; i < SNIPPETS; i++)
    check(&m, db, i);
  assert_int_equal(store_trim_results(db, 0, &err), ST_OK);
  assert_int_equal(count(db, "SELECT COUNT(*) FROM results"), 0);
  for (int i = 0; i < SNIPPETS; i++)
    while (m.snippets[i].exists)
      delete(&m, db, i);
  assert_int_equal(count(db, "SELECT COUNT(*) FROM snippets"), 0);
  assert_int_equal(count(db, "SELECT COUNT(*) FROM blobs"), 0); /* every text goes with the last that needs it */
  db_close(db);
}

static void put_revision(struct db *db, const struct ident_hash *id, const struct ident_hash *token, int text,
                         bool fits) {
  struct store_snippet s;
  struct error err;
  bool found, added;
  store_snippet_init(&s);
  s.created_ms = 1000 + text;
  put_text(&s.doc, text);
  put_text(&s.frames, (text + 1) % TEXTS);
  assert_int_equal(store_add_revision(db, id, token, &s, &found, &added, &err), fits ? ST_OK : ST_LIMIT);
  assert_true(!fits || (found && added));
  store_snippet_clear(&s);
}

/* Revision 0 is the newest one.  Returns its number; 0: there is no such revision. */
static int get_revision(struct db *db, const struct ident_hash *id, int revision, int text, int n_revisions) {
  struct store_snippet s;
  struct error err;
  bool found;
  store_snippet_init(&s);
  assert_int_equal(store_get_revision(db, id, revision, STORE_WHOLE, &s, &found, &err), ST_OK);
  if (found) {
    assert_true(is_text(&s.doc, text) && is_text(&s.frames, (text + 1) % TEXTS));
    assert_int_equal(s.n_revisions, n_revisions);
  }
  const int n = found ? s.revision : 0;
  store_snippet_clear(&s);
  return n;
}

static void store_keeps_every_revision_and_removes_all(void **state) {
  static struct model m;
  struct db *db = open_db();
  struct error err;
  struct store_snippet s;
  bool found, done;
  (void)state;
  put(&m, db, 0);
  const int text = m.snippets[0].text;
  const struct ident_hash id = hash_of(m.snippets[0].id), token = hash_of(m.snippets[0].token),
                          wrong = hash_of("wrong");
  assert_int_equal(get_revision(db, &id, 0, text, 1), 1);
  assert_int_equal(get_revision(db, &id, 2, text, 1), 0);
  put_revision(db, &id, &token, 3, true);
  put_revision(db, &id, &token, 4, true);
  assert_int_equal(get_revision(db, &id, 0, 4, 3), 3);
  assert_int_equal(get_revision(db, &id, 1, text, 3), 1);
  assert_int_equal(get_revision(db, &id, 2, 3, 3), 2);
  assert_int_equal(get_revision(db, &id, 4, 0, 3), 0);
  store_snippet_init(&s);
  assert_int_equal(store_add_revision(db, &id, &wrong, &s, &found, &done, &err), ST_OK);
  assert_true(found && !done);
  assert_int_equal(store_add_revision(db, &wrong, &token, &s, &found, &done, &err), ST_OK);
  assert_true(!found && !done);
  store_snippet_clear(&s);
  for (int i = 3; i < STORE_REVISIONS_MAX; i++)
    put_revision(db, &id, &token, i % TEXTS, true);
  put_revision(db, &id, &token, 1, false);
  /* a time of expiry is that of all, and the purge removes all */
  assert_int_equal(store_expire_snippet(db, &id, &token, store_now_ms() - 1, &found, &done, &err), ST_OK);
  assert_true(found && done);
  assert_int_equal(get_revision(db, &id, 2, 3, STORE_REVISIONS_MAX), 0);
  int64_t n;
  assert_int_equal(store_purge(db, &n, &err), ST_OK);
  assert_int_equal(n, STORE_REVISIONS_MAX);
  /* deleting removes all, too */
  m.snippets[0].exists = false;
  put(&m, db, 0);
  const struct ident_hash other = hash_of(m.snippets[0].id), its = hash_of(m.snippets[0].token);
  put_revision(db, &other, &its, 2, true);
  assert_int_equal(store_delete_snippet(db, &other, &its, &found, &done, &err), ST_OK);
  assert_true(found && done);
  assert_int_equal(count(db, "SELECT COUNT(*) FROM snippets"), 0);
  assert_int_equal(count(db, "SELECT COUNT(*) FROM blobs"), 0);
  db_close(db);
}

/* Three batches; the damaged ones are in different ones. */
static void store_purges_all_but_damaged_snippets(void **state) {
  enum { N = 150 };
  static char ids[N][IDENT_LEN + 1];
  static const int damaged[] = {3, 77, 140};
  struct store_snippet s;
  struct error err;
  int64_t n;
  struct db *db = open_db();
  (void)state;
  store_snippet_init(&s);
  for (int i = 0; i < N; i++) {
    assert_int_equal(ident_new(ids[i], &err), ST_OK);
    s.id = s.token = hash_of(ids[i]);
    s.created_ms = s.expires_ms = 1;
    assert_int_equal(store_put_snippet(db, &s, &err), ST_OK);
  }
  for (int i = 0; i < 3; i++) {
    const struct ident_hash h = hash_of(ids[damaged[i]]);
    const struct db_value args[] = {db_int(2), db_bytes(h.bytes, IDENT_HASH_SIZE)};
    assert_int_equal(
        db_run(db, "UPDATE snippets SET created_ms = $1 WHERE id_hash = $2", args, 2, NULL, NULL, NULL, &err), ST_OK);
  }
  assert_int_equal(store_purge(db, &n, &err), ST_IO);
  assert_int_equal(n, N - 3);
  assert_int_equal(count(db, "SELECT COUNT(*) FROM snippets"), 3);
  assert_int_equal(db_run(db, "DELETE FROM snippets", NULL, 0, NULL, NULL, NULL, &err), ST_OK);
  assert_int_equal(db_run(db, "DELETE FROM blobs", NULL, 0, NULL, NULL, NULL, &err), ST_OK);
  store_snippet_clear(&s);
  db_close(db);
}

static void store_copies_all_of_it(void **state) {
  static struct model m;
  struct store_report there, here;
  struct error err;
  char copy[200];
  struct db *db = open_db();
  (void)state;
  for (int i = 0; i < KEYS; i++)
    m.results[i] = -1;
  for (int i = 0; i < SNIPPETS; i++)
    put(&m, db, i);
  for (int i = 0; i < KEYS; i++)
    result(&m, db, i);
  db_close(db);
  snprintf(copy, sizeof copy, "sqlite:%s/copy.sqlite", dir);
  assert_int_equal(store_copy(url, copy, NULL, &there, tell, &err), ST_OK);
  assert_int_equal(store_check(copy, NULL, &here, tell, &err), ST_OK);
  assert_memory_equal(&there, &here, sizeof here);
  assert_int_equal(here.snippets, SNIPPETS);
  assert_int_equal(here.damaged, 0);
  assert_int_equal(store_copy(url, copy, NULL, &there, tell, &err), ST_INPUT); /* it is not empty any more */
  char saved[sizeof url];
  memcpy(saved, url, sizeof url);
  snprintf(url, sizeof url, "%s", copy);
  db = open_db();
  for (int i = 0; i < SNIPPETS; i++)
    check(&m, db, i);
  db_close(db);
  memcpy(url, saved, sizeof url);
}

static void store_refuses_a_second_writer(void **state) {
  struct db *one, *two, *reader;
  struct error err;
  (void)state;
  one = open_db();
  assert_int_equal(db_open(url, true, &two, &err), ST_BUSY);
  assert_non_null(strstr(err.text, "in use"));
  assert_int_equal(db_open(url, false, &reader, &err), ST_OK);
  assert_int_not_equal(db_run(reader, "DELETE FROM snippets", NULL, 0, NULL, NULL, NULL, &err), ST_OK);
  db_close(reader);
  db_close(one);
  one = open_db();
  db_close(one);
}

static void store_refuses_a_newer_version(void **state) {
  struct error err;
  struct db *db = open_db();
  (void)state;
  assert_int_equal(
      db_run(db, "INSERT INTO migrations (version, applied_ms) VALUES (9999, 0)", NULL, 0, NULL, NULL, NULL, &err),
      ST_OK);
  assert_int_equal(db_migrate(db, &err), ST_DENIED);
  assert_non_null(strstr(err.text, "newer"));
  assert_int_equal(db_run(db, "DELETE FROM migrations WHERE version = 9999", NULL, 0, NULL, NULL, NULL, &err), ST_OK);
  assert_int_equal(db_migrate(db, &err), ST_OK);
  db_close(db);
}

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  *n = (size_t)ftell(f);
  rewind(f);
  char *p = malloc(*n);
  assert_non_null(p);
  assert_int_equal(fread(p, 1, *n, f), *n);
  fclose(f);
  return p;
}

static void write_file(const char *path, const char *p, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(p, 1, n, f), n);
  fclose(f);
}

/* What a reader gets of snippet i: its own texts, or none.  True if none. */
static bool is_withheld(struct model *m, struct db *db, int i) {
  struct store_snippet s;
  struct error err;
  bool found;
  struct ident_hash h = hash_of(m->snippets[i].id);
  store_snippet_init(&s);
  enum status st = store_get_snippet(db, &h, STORE_WHOLE, &s, &found, &err);
  if (!st && found) {
    assert_int_equal(s.created_ms, 1000 + i);
    assert_int_equal(s.expires_ms, m->snippets[i].expires_ms);
    assert_true(is_text(&s.doc, m->snippets[i].text));
    assert_true(is_text(&s.frames, (m->snippets[i].text + 1) % TEXTS));
  }
  store_snippet_clear(&s);
  return st || !found;
}

static void ignore(const char *line) {
  (void)line;
}

/* D5: one bit of the file, again and again; NKX_STORE_FLIPS says how often. */
static void store_never_gives_out_what_a_flipped_bit_changed(void **state) {
  const char *more = getenv("NKX_STORE_FLIPS");
  int flips = more ? atoi(more) : 300;
  static struct model m;
  struct error err;
  struct store_report report;
  char path[100], saved[sizeof url];
  size_t n;
  int withheld = 0, told = 0;
  (void)state;
  memcpy(saved, url, sizeof url);
  snprintf(path, sizeof path, "%s/flip.sqlite", dir);
  snprintf(url, sizeof url, "sqlite:%s", path);
  struct db *db = open_db();
  for (int i = 0; i < SNIPPETS; i++)
    put(&m, db, i);
  db_close(db);
  char *whole = read_file(path, &n);
  for (int k = 0; k < flips; k++) {
    size_t at = dice((unsigned)(n * 8));
    bool none = false;
    whole[at / 8] ^= (char)(1 << at % 8);
    write_file(path, whole, n);
    whole[at / 8] ^= (char)(1 << at % 8);
    if (db_open(url, false, &db, &err)) {
      told++;
      withheld++;
      continue;
    }
    for (int i = 0; i < SNIPPETS; i++)
      none |= is_withheld(&m, db, i);
    db_close(db);
    withheld += none;
    bool is_told = store_check(url, NULL, &report, ignore, &err) || report.damaged;
    told += is_told;
    assert_true(is_told || !none); /* what is not given out, check names */
  }
  print_message("%d flips in %zu bytes: %d withheld something, %d were told by check\n", flips, n, withheld, told);
  assert_true(withheld > flips / 50 && told >= withheld);
  free(whole);
  memcpy(url, saved, sizeof url);
}

static int value_of(char c) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return (int)(strchr(letters, c) - letters);
}

static int compare(const void *a, const void *b) {
  return memcmp(a, b, 16);
}

/* P1: a million ids, no two the same.  Every bit after the first letter is as often one as zero, within five standard
 * deviations of a fair coin.  The first letter is a letter or a digit, and no one of them is frequent. */
static void ids_are_even_bits(void **state) {
  enum { N = 1000000 };
  uint8_t (*all)[16] = malloc((size_t)N * 16);
  static int ones[128];
  static long firsts[256];
  struct error err;
  (void)state;
  assert_non_null(all);
  for (int k = 0; k < N; k++) {
    char id[IDENT_LEN + 1];
    assert_int_equal(ident_new(id, &err), ST_OK);
    assert_true(isalnum((unsigned char)id[0]));
    firsts[(unsigned char)id[0]]++;
    unsigned acc = 0;
    int bits = 0, n = 0;
    for (int i = 0; i < IDENT_LEN; i++) {
      acc = acc << 6 | (unsigned)value_of(id[i]);
      for (bits += 6; bits >= 8 && n < 16; bits -= 8)
        all[k][n++] = (uint8_t)(acc >> (bits - 8));
    }
    for (int i = 0; i < 128; i++)
      ones[i] += all[k][i / 8] >> (i % 8) & 1;
  }
  for (int c = 0; c < 256; c++)
    assert_in_range(firsts[c], 0, 2 * N / 64 + 1000);
  for (int i = 0; i < 128; i++)
    if (i < 2 || i >= 8)                                    /* 2 to 7: the first letter */
      assert_in_range(ones[i], N / 2 - 2500, N / 2 + 2500); /* the deviation is 500 */
  long byte_counts[256] = {0};
  for (int k = 0; k < N; k++)
    for (int i = 1; i < 16; i++)
      byte_counts[all[k][i]]++;
  double chi = 0, want = N * 15 / 256.0;
  for (int i = 0; i < 256; i++)
    chi += ((double)byte_counts[i] - want) * ((double)byte_counts[i] - want) / want;
  assert_true(chi > 150 && chi < 380); /* 255 degrees of freedom: mean 255, deviation 22.6 */
  qsort(all, N, 16, compare);
  for (int k = 1; k < N; k++)
    assert_int_not_equal(compare(all[k - 1], all[k]), 0);
  free(all);
}

static void ids_have_one_form(void **state) {
  struct error err;
  char id[IDENT_LEN + 1], pub[IDENT_PUBLIC_LEN + 1];
  (void)state;
  assert_int_equal(ident_new(id, &err), ST_OK);
  assert_int_equal(ident_new_public(pub, &err), ST_OK);
  assert_true(ident_is_valid(id, IDENT_LEN) && !ident_is_public(id, IDENT_LEN));
  assert_true(ident_is_valid(pub, IDENT_PUBLIC_LEN) && ident_is_public(pub, IDENT_PUBLIC_LEN));
  assert_false(ident_is_valid(id, IDENT_LEN - 1) || ident_is_valid("", 0) || ident_is_valid("0OIl1000", 8));
  assert_false(ident_is_valid("AAAAAAAAAAAAAAAAAAAAA\0", IDENT_LEN));
}

int main(void) {
  const struct CMUnitTest on_any[] = {
      cmocka_unit_test(store_does_what_its_model_does),
      cmocka_unit_test(store_refuses_a_newer_version),
      cmocka_unit_test(store_keeps_every_revision_and_removes_all),
      cmocka_unit_test(store_purges_all_but_damaged_snippets),
      cmocka_unit_test(store_copies_all_of_it),
  };
  const struct CMUnitTest on_file[] = {
      cmocka_unit_test(ids_are_even_bits),
      cmocka_unit_test(ids_have_one_form),
      cmocka_unit_test(store_refuses_a_second_writer),
      cmocka_unit_test(store_never_gives_out_what_a_flipped_bit_changed),
  };
  const char *given = getenv("NKX_TEST_STORE");
  snprintf(dir, sizeof dir, "/tmp/nkx-store-XXXXXX");
  if (!mkdtemp(dir))
    return 1;
  is_own_file = !given;
  if (given)
    snprintf(url, sizeof url, "%s", given);
  else
    snprintf(url, sizeof url, "sqlite:%s/store.sqlite", dir);
  int failed = cmocka_run_group_tests(on_any, NULL, NULL);
  if (is_own_file)
    failed += cmocka_run_group_tests(on_file, NULL, NULL);
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", dir);
  return system(command) || failed;
}
