#include "api/access.h"

#include <string.h>

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

json_t *access_make(const struct identity *owner, const json_t *asked, struct error *err) {
  if (owner->kind == IDENTITY_ANONYMOUS) {
    (void)fail(err, ST_INPUT, "visibility: only who has signed in can make a private link");
    return NULL;
  }
  if (check_asked(asked, err))
    return NULL;
  json_t *o = json_pack("{s:s,s:o,s:o}", "owner", owner->name, "people", names_of(asked, "people"), "groups",
                        names_of(asked, "groups"));
  if (!o) /* a name that is no UTF-8 cannot be written down */
    (void)fail(err, ST_INPUT, "visibility: a private link needs a name of its owner in UTF-8");
  return o;
}

bool access_is_private(const struct buf *doc) {
  static const char begin[] = "{\"access\":";
  return doc->len >= sizeof begin && !memcmp(doc->data, begin, sizeof begin - 1);
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
  if (!access_is_private(doc) || who->role == ROLE_OPERATOR)
    return true;
  if (who->kind == IDENTITY_ANONYMOUS)
    return false;
  json_t *root = json_loadb(doc->data, doc->len, JSON_ALLOW_NUL, NULL);
  const bool is = is_listed(json_object_get(root, "access"), who);
  json_decref(root);
  return is;
}
