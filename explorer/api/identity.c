#include "api/identity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "http/framing.h"

static const char *const roles[ROLES] = {"none", "reader", "author", "operator"};
static const char *const kinds[] = {"anonymous", "person", "token"};

const char *identity_kind_name(enum identity_kind kind) {
  return kinds[kind];
}

const char *role_name(enum role r) {
  return roles[r];
}

enum role role_find(const char *name) {
  for (int r = ROLE_READER; name && r < ROLES; r++)
    if (!strcmp(name, roles[r]))
      return (enum role)r;
  return ROLE_NONE;
}

void identity_clear(struct identity *id) {
  free(id->groups);
  id->groups = NULL;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool has_line(const char *lines, const char *text, size_t len) {
  for (const char *p = lines; p && *p; p = strchr(p, '\n') + 1)
    if (!strncmp(p, text, len) && p[len] == '\n')
      return len > 0;
  return false;
}

bool identity_has_group(const struct identity *id, const char *group) {
  return has_line(id->groups, group, strlen(group));
}

bool identity_is(const struct identity *id, const char *who) {
  return id->kind != IDENTITY_ANONYMOUS && *who &&
         (!strcmp(id->name, who) || (id->email[0] && !strcasecmp(id->email, who)));
}

static void put_group(struct buf *lines, const char *text, size_t len) {
  while (len && isspace((unsigned char)*text))
    text++, len--;
  while (len && isspace((unsigned char)text[len - 1]))
    len--;
  if (len && !memchr(text, '\n', len)) {
    buf_append(lines, text, len);
    buf_putc(lines, '\n');
  }
}

/* Envoy writes a claim that is a list as JSON in base64url, without padding. */
static json_t *read_encoded(const char *text) {
  size_t n = strcspn(text, "=");
  const size_t pad = (4 - n % 4) % 4;
  if (strncmp(text, "Wy", 2) != 0 || n >= FRAMING_HEAD_MAX) /* of "[" and what may follow it */
    return NULL;
  char *padded = calloc(1, n + pad + 1);
  unsigned char *raw = malloc(n + pad + 1);
  for (size_t i = 0; padded && i < n + pad; i++)
    padded[i] = i >= n ? '=' : text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
  const int got = padded && raw ? EVP_DecodeBlock(raw, (const unsigned char *)padded, (int)(n + pad)) : -1;
  json_t *list = got > (int)pad ? json_loadb((const char *)raw, (size_t)got - pad, 0, NULL) : NULL;
  free(padded);
  free(raw);
  if (json_is_array(list))
    return list;
  json_decref(list);
  return NULL;
}

char *identity_read_groups(const char *text) {
  struct buf lines;
  buf_init(&lines, 2 * FRAMING_HEAD_MAX);
  json_t *list = read_encoded(text), *one;
  size_t i;
  json_array_foreach(list, i, one) put_group(&lines, json_string_value(one), json_string_length(one));
  for (const char *p = list ? "" : text; *p; p += strcspn(p, ","), p += *p == ',')
    put_group(&lines, p, strcspn(p, ","));
  json_decref(list);
  return lines.data; /* NULL: there is none */
}

bool identity_has_any_group(const struct identity *id, const char *list) {
  for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
    size_t n = strcspn(p, ",");
    while (n && *p == ' ')
      p++, n--;
    while (n && p[n - 1] == ' ')
      n--;
    if (has_line(id->groups, p, n))
      return true;
  }
  return false;
}
