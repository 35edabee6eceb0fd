/* What an operator asks about links, and does to them, by their ids or by their names in the log.
 *
 * An unlisted link is known by the hash of its id only.  Its name, in the log and here, is the beginning of that hash; so an
 * operator can remove a link without ever having its id.
 */
#include "store/operate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/db.h"
#include "store/remote.h"
#include "store/rows.h"

/* ---- all links --------------------------------------------------------------------------------------------------- */

static enum status take_link(void *user, const struct db_value *row, int n, struct error *err) {
  struct store_links *l = user;
  (void)n;
  if (l->n == l->room) {
    const size_t room = l->room ? 2 * l->room : 64;
    struct store_link *at = realloc(l->at, room * sizeof *at);
    if (!at)
      return fail(err, ST_NOMEM, "links");
    l->at = at;
    l->room = room;
  }
  struct store_link *k = &l->at[l->n];
  *k = (struct store_link){
      .created_ms = row[2].i, .expires_ms = row[3].i, .n_revisions = 1 + (int)row[4].i, .bytes = row[5].i};
  if (!row_take_hash(&row[0], &k->hash) || (row[1].kind == DB_TEXT && row[1].n != IDENT_PUBLIC_LEN))
    return fail(err, ST_IO, "a damaged snippet; see `nkx store check`");
  if (row[1].kind == DB_TEXT)
    memcpy(k->public_id, row[1].p, IDENT_PUBLIC_LEN);
  l->n++;
  return ST_OK;
}

static int compare_hash(const void *a, const void *b) {
  return memcmp(((const struct store_link *)a)->hash.bytes, ((const struct store_link *)b)->hash.bytes,
                IDENT_HASH_SIZE);
}

static int compare_time(const void *a, const void *b) {
  const struct store_link *x = a, *y = b;
  return x->created_ms < y->created_ms ? -1 : x->created_ms > y->created_ms ? 1 : compare_hash(a, b);
}

/* Adds later revisions, which are rows of their own, to their links. */
static void join_revisions(struct store_links *l) {
  size_t n = 0;
  for (size_t i = 0; i < l->n; i++)
    for (int revision = 2; revision <= l->at[i].n_revisions && revision <= STORE_REVISIONS_MAX; revision++) {
      struct store_link key = {0};
      ident_hash_revision(&l->at[i].hash, revision, &key.hash);
      struct store_link *found = bsearch(&key, l->at, l->n, sizeof key, compare_hash);
      if (!found)
        continue; /* it was purged */
      l->at[i].bytes += found->bytes;
      found->is_revision = true;
    }
  for (size_t i = 0; i < l->n; i++)
    if (!l->at[i].is_revision)
      l->at[n++] = l->at[i];
  l->n = n;
}

static enum status read_links(struct db *db, struct store_links *out, struct error *err) {
  static const char sql[] = "SELECT id_hash, public_id, created_ms, expires_ms, revisions,"
                            " CAST(COALESCE((SELECT length(data) + packed FROM blobs WHERE hash = doc), 0)"
                            " + COALESCE((SELECT length(data) + packed FROM blobs WHERE hash = frames), 0) AS BIGINT)"
                            " FROM snippets ORDER BY id_hash";
  *out = (struct store_links){0};
  enum status st = db_run(db, sql, NULL, 0, take_link, out, NULL, err);
  if (!st)
    join_revisions(out);
  return st;
}

static enum status open_to_read(const char *url, struct db **out, struct error *err) {
  enum status st = db_open(url, false, out, err);
  return st ? st : db_check_version(*out, err);
}

/* A public link is for everybody. */
static void look_for_private(struct db *db, bool (*is_private)(const struct buf *doc), struct store_links *l) {
  for (size_t i = 0; i < l->n; i++) {
    struct store_snippet s;
    bool found;
    if (l->at[i].public_id[0])
      continue;
    store_snippet_init(&s);
    if (!store_get_snippet(db, &l->at[i].hash, STORE_DOC, &s, &found, NULL) && found)
      l->at[i].is_private = is_private(&s.doc);
    store_snippet_clear(&s);
  }
}

enum status store_list_links(const char *url, bool (*is_private)(const struct buf *doc), struct store_links *out,
                             struct error *err) {
  struct db *db = NULL;
  *out = (struct store_links){0};
  enum status st = open_to_read(url, &db, err);
  if (!st)
    st = read_links(db, out, err);
  if (!st && out->n)
    qsort(out->at, out->n, sizeof *out->at, compare_time);
  if (!st)
    look_for_private(db, is_private, out);
  db_close(db);
  return st;
}

void store_links_clear(struct store_links *l) {
  free(l->at);
  *l = (struct store_links){0};
}

/* ---- one link ---------------------------------------------------------------------------------------------------- */

/* The id in "https://host/z/ID?revision=2", or the text itself. */
static size_t cut_id(const char **text) {
  const char *z = strstr(*text, "/z/"), *e = strstr(*text, "/e/");
  if (z || e)
    *text = (z ? z : e) + 3;
  return strcspn(*text, "/?#");
}

static bool has_name(const struct store_link *l, const char *text, size_t len) {
  char hex[2 * IDENT_HASH_SIZE + 1];
  for (int i = 0; i < IDENT_HASH_SIZE; i++)
    snprintf(hex + 2 * i, 3, "%02x", l->hash.bytes[i]);
  return len >= IDENT_NAME_SIZE - 1 && len < sizeof hex && !memcmp(hex, text, len);
}

/* Reads all links: an operator asks rarely, and this finds out whether a name is that of a revision, or of two links. */
static enum status find(struct db *db, const char *text, struct store_link *out, bool *found, struct error *err) {
  struct store_links all;
  struct ident_hash hash;
  const size_t len = cut_id(&text);
  ident_hash(text, len, &hash);
  *found = false;
  enum status st = read_links(db, &all, err);
  for (size_t i = 0; !st && i < all.n; i++) {
    const bool is_it = ident_hash_equal(&all.at[i].hash, &hash) || has_name(&all.at[i], text, len);
    if (is_it && *found)
      st = fail(err, ST_INPUT, "%.64s: two links have this name; give more of its digits", text);
    if (is_it)
      *out = all.at[i];
    *found |= is_it;
  }
  store_links_clear(&all);
  return st;
}

enum status store_show_link(const char *url, const char *text, struct store_link *out, struct buf *doc, bool *found,
                            struct error *err) {
  struct db *db = NULL;
  struct store_snippet s;
  store_snippet_init(&s);
  *found = false;
  enum status st = open_to_read(url, &db, err);
  if (!st)
    st = find(db, text, out, found, err);
  if (!st && *found)
    st = store_get_revision(db, &out->hash, 0, STORE_DOC, &s, found, err);
  if (!st && *found)
    st = buf_append(doc, buf_text(&s.doc), s.doc.len);
  store_snippet_clear(&s);
  db_close(db);
  return st;
}

static enum status change(struct db *db, const struct remote_order *o, bool *found, struct error *err) {
  bool done;
  return o->at_ms ? store_expire_snippet(db, &o->link, NULL, o->at_ms, found, &done, err)
                  : store_delete_snippet(db, &o->link, NULL, found, &done, err);
}

enum status store_remove_link(const char *url, const char *text, int64_t at_ms, struct store_link *out, bool *found,
                              struct error *err) {
  static const char prefix[] = "sqlite:";
  struct db *db = NULL;
  *found = false;
  enum status st = open_to_read(url, &db, err);
  if (!st)
    st = find(db, text, out, found, err);
  db_close(db);
  db = NULL;
  if (st || !*found)
    return st;
  const struct remote_order order = {out->hash, at_ms};
  st = db_open(url, true, &db, err);
  if (!st)
    st = change(db, &order, found, err);
  else if (st == ST_BUSY && !strncmp(url, prefix, sizeof prefix - 1))
    st = remote_ask(url + sizeof prefix - 1, &order, found, err);
  db_close(db);
  return st;
}
