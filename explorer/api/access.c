#include "api/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static enum status check_names(const char *what, const json_t *names, struct error *err) {
  json_t *one;
  size_t i;
  if (names && (!json_is_array(names) || json_array_size(names) > ACCESS_ENTRIES_MAX))
    return fail(err, ST_INPUT, "access.%s: expected at most %d names", what, ACCESS_ENTRIES_MAX);
  json_array_foreach(names, i, one) {
    const size_t n = json_string_length(one);
    if (!n || n > ACCESS_ENTRY_MAX || strlen(json_string_value(one)) != n)
      return fail(err, ST_INPUT, "access.%s: expected names of at most %d bytes", what, ACCESS_ENTRY_MAX);
  }
  return ST_OK;
}

static enum status check_asked(const json_t *asked, struct error *err) {
  static const char *const known[] = {"people", "groups"};
  const char *key;
  json_t *value;
  enum status st = ST_OK;
  if (!asked)
    return ST_OK;
  if (!json_is_object(asked))
    return fail(err, ST_INPUT, "access: expected an object with people and groups");
  json_object_foreach((json_t *)(uintptr_t)asked, key, value) {
    if (strcmp(key, known[0]) != 0 && strcmp(key, known[1]) != 0)
      return fail(err, ST_INPUT, "access: there is no member \"%.40s\"", key);
    st = st ? st : check_names(key, value, err);
  }
  return st;
}

/* A copy, or an empty list. */
static json_t *names_of(const json_t *asked, const char *what) {
  const json_t *names = json_object_get(asked, what);
  return names ? json_deep_copy(names) : json_array();
}

static json_t *make(const char *owner, const json_t *asked, struct error *err) {
  if (check_asked(asked, err))
    return NULL;
  json_t *o = json_pack("{s:s,s:o,s:o}", "owner", owner, "people", names_of(asked, "people"), "groups",
                        names_of(asked, "groups"));
  if (!o) /* a name that is no UTF-8 cannot be written down */
    (void)fail(err, ST_INPUT, "visibility: a private link needs a name of its owner in UTF-8");
  return o;
}

json_t *access_make(const struct identity *owner, const json_t *asked, struct error *err) {
  if (owner->kind != IDENTITY_ANONYMOUS)
    return make(owner->name, asked, err);
  (void)fail(err, ST_INPUT, "visibility: only who has signed in can make a private link");
  return NULL;
}

/* ---- in a document ----------------------------------------------------------------------------------------------- */

static const char begin[] = "{\"access\":";
enum { BEGIN = sizeof begin - 1 };

bool access_is_private(const struct buf *doc) {
  return doc->len > BEGIN && !memcmp(doc->data, begin, BEGIN);
}

/* The member of a private link's document, a new reference; NULL if it is damaged.  *end: where it ends. */
static json_t *read_member(const struct buf *doc, size_t *end) {
  json_error_t at;
  json_t *o = json_loadb(doc->data + BEGIN, doc->len - BEGIN, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &at);
  *end = BEGIN + (o ? (size_t)at.position : 0);
  return o;
}

/* The document with this member (NULL: with none) in place of its own.  The rest stays as it is, byte by byte. */
static enum status put_member(const struct buf *doc, const json_t *member, struct buf *out, struct error *err) {
  size_t end = 1; /* after the brace */
  if (access_is_private(doc)) {
    json_t *own = read_member(doc, &end);
    json_decref(own);
    if (!own || end >= doc->len || doc->data[end++] != ',')
      return fail(err, ST_IO, "a damaged snippet");
  }
  buf_putc(out, '{');
  if (member) {
    char *text = json_dumps(member, JSON_COMPACT);
    if (!text)
      return fail(err, ST_NOMEM, "access");
    buf_printf(out, "\"access\":%s,", text);
    free(text);
  }
  buf_append(out, doc->data + end, doc->len - end);
  return buf_status(out) ? fail(err, buf_status(out), "access") : ST_OK;
}

enum status access_carry(const struct buf *from, struct buf *to, struct error *err) {
  struct buf whole;
  size_t end;
  if (!access_is_private(from))
    return ST_OK;
  json_t *member = read_member(from, &end);
  buf_init(&whole, to->max);
  enum status st = member ? put_member(to, member, &whole, err) : fail(err, ST_IO, "a damaged snippet");
  json_decref(member);
  if (!st) {
    to->len = 0;
    st = buf_append(to, whole.data, whole.len) ? fail(err, buf_status(to), "access") : ST_OK;
  }
  buf_clear(&whole);
  return st;
}

bool access_is_owner(const struct buf *doc, const struct identity *who) {
  size_t end;
  if (!access_is_private(doc) || who->kind == IDENTITY_ANONYMOUS)
    return false;
  json_t *own = read_member(doc, &end);
  const char *owner = json_string_value(json_object_get(own, "owner"));
  const bool is = owner && !strcmp(owner, who->name);
  json_decref(own);
  return is;
}

/* For the document's owner, or for `who` if it has none. */
static json_t *make_for(const struct buf *doc, const struct identity *who, const json_t *asked, struct error *err) {
  size_t end;
  if (!access_is_private(doc))
    return access_make(who, asked, err);
  json_t *own = read_member(doc, &end);
  const char *owner = json_string_value(json_object_get(own, "owner"));
  json_t *made = NULL;
  if (owner)
    made = make(owner, asked, err);
  else
    (void)fail(err, ST_IO, "a damaged snippet");
  json_decref(own);
  return made;
}

enum status access_change(const struct buf *doc, const struct identity *who, bool is_private, const json_t *asked,
                          struct buf *out, struct error *err) {
  if (!is_private)
    return put_member(doc, NULL, out, err);
  json_t *member = make_for(doc, who, asked, err);
  enum status st = member ? put_member(doc, member, out, err) : err->code;
  json_decref(member);
  return st;
}

static bool is_listed(const json_t *access, const struct identity *who) {
  const char *owner = json_string_value(json_object_get(access, "owner"));
  json_t *one;
  size_t i;
  if (owner && !strcmp(owner, who->name))
    return true;
  json_array_foreach(json_object_get(access, "people"), i, one) {
    if (json_is_string(one) && identity_is(who, json_string_value(one)))
      return true;
  }
  json_array_foreach(json_object_get(access, "groups"), i, one) {
    if (json_is_string(one) && identity_has_group(who, json_string_value(one)))
      return true;
  }
  return false;
}

bool access_allows(const struct buf *doc, const struct identity *who) {
  size_t end;
  if (!access_is_private(doc) || who->role == ROLE_OPERATOR)
    return true;
  if (who->kind == IDENTITY_ANONYMOUS)
    return false;
  json_t *access = read_member(doc, &end);
  const bool is = is_listed(access, who);
  json_decref(access);
  return is;
}

void access_put(struct buf *out, const struct buf *doc) {
  size_t end;
  if (!access_is_private(doc))
    return;
  json_decref(read_member(doc, &end));
  json_put_key(out, "access");
  buf_append(out, doc->data + BEGIN, end - BEGIN);
}
