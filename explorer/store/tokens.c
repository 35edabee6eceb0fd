#include "store/tokens.h"

#include <string.h>

#include "store/db.h"
#include "store/rows.h"

#define COLUMNS "name, role, member_of, created_ms, revoked_ms"

struct listing {
  access_token_fn fn;
  void *user;
};

static bool copy_text(const struct db_value *v, char *out, size_t size) {
  if (v->kind != DB_TEXT || v->n >= size)
    return false;
  memcpy(out, v->p, v->n);
  out[v->n] = 0;
  return true;
}

static enum status see(void *user, const struct db_value *row, int n, struct error *err) {
  const struct listing *l = user;
  char name[ACCESS_NAME_MAX + 1], role[ACCESS_ROLE_MAX + 1], groups[ACCESS_GROUPS_MAX + 1];
  (void)n;
  if (!copy_text(&row[0], name, sizeof name) || !copy_text(&row[1], role, sizeof role) ||
      !copy_text(&row[2], groups, sizeof groups) || row[3].kind != DB_INT || row[4].kind != DB_INT)
    return fail(err, ST_IO, "a damaged token");
  const struct access_token t = {name, role, groups, row[3].i, row[4].i};
  l->fn(l->user, &t);
  return ST_OK;
}

enum status store_put_access_token(struct db *db, const struct ident_hash *hash, const struct access_token *t,
                                   struct error *err) {
  const struct db_value args[] = {row_hash(hash), db_text(t->name), db_text(t->role), db_text(t->groups),
                                  db_int(store_now_ms())};
  return db_run(db, "INSERT INTO access_tokens (hash, " COLUMNS ") VALUES ($1, $2, $3, $4, $5, 0)", args, 5, NULL, NULL,
                NULL, err);
}

enum status store_revoke_access_token(struct db *db, const char *name, bool *found, struct error *err) {
  const struct db_value args[] = {db_int(store_now_ms()), db_text(name)};
  int64_t n = 0;
  const enum status st = db_run(db, "UPDATE access_tokens SET revoked_ms = $1 WHERE name = $2 AND revoked_ms = 0", args,
                                2, NULL, NULL, &n, err);
  *found = !st && n > 0;
  return st;
}

enum status store_find_access_token(struct db *db, const struct ident_hash *hash, access_token_fn fn, void *user,
                                    struct error *err) {
  const struct db_value arg = row_hash(hash);
  struct listing l = {fn, user};
  return db_run(db, "SELECT " COLUMNS " FROM access_tokens WHERE hash = $1 AND revoked_ms = 0", &arg, 1, see, &l, NULL,
                err);
}

enum status store_each_access_token(struct db *db, access_token_fn fn, void *user, struct error *err) {
  struct listing l = {fn, user};
  return db_run(db, "SELECT " COLUMNS " FROM access_tokens ORDER BY created_ms, name", NULL, 0, see, &l, NULL, err);
}
