/* token: `nkx runner token create|list|revoke` and `nkx token …`, for the operator of a server: the tokens of Neuron hosts, and those of
 * programs, which have a role (api/identity.h).
 *
 * The store has one writer, which may be the running server; so the server is asked, and is shown that the store can be read
 * (store/operator.h).  A token is made here, and only its hash is sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "runner/runner.h"
#include "runner/wire.h"
#include "store/ident.h"
#include "store/operator.h"

enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_FAULT = 4, ASK_MS = 30000 };

#define OPTIONS \
  "  --server URL               the server, which must be running (http://127.0.0.1:10240)\n" \
  "  --store URL                its store, which must be readable: sqlite:PATH (../data/nkx.sqlite beside this " \
  "program) " \
  "or\n" \
  "                             postgresql://…\n" \
  "  --ca-file FILE, --allow-http   as of nkx runner\n"

/* The two kinds of tokens. */
static const struct kind {
  const char *path, *prefix; /* prefix: of a token's text, by which programs that look for secrets know it */
  bool has_role;
  const char *usage;
} kinds[] = {
    {"/api/v1/runners/tokens", "", false,
     "usage: nkx runner token create NAME [-o FILE] [options]   makes a token and prints it, or writes it to a file\n"
     "       nkx runner token list [options]                    the tokens' names\n"
     "       nkx runner token revoke NAME [options]             what its runners have begun goes to others\n" OPTIONS},
    {"/api/v1/tokens", "nkx_", true,
     "usage: nkx token create NAME [-o FILE] [options]   makes a token for a program and prints it, or writes it to a "
     "file\n"
     "       nkx token list [options]                    the tokens' names, roles and groups\n"
     "       nkx token revoke NAME [options]             from now on it is refused\n"
     "  --role ROLE                reader: opens links and compiles; author: also stores links; operator: also "
     "manages\n"
     "                             links and tokens (author)\n"
     "  --groups LIST              groups whose private links it may open, separated by commas\n" OPTIONS},
};

struct command {
  const struct kind *kind;
  const char *what, *name, *file, *role, *groups;
  char store[PATH_MAX + 40];
  struct wire_config wire;
};

/* ---- asking the server --------------------------------------------------------------------------------------------- */

static enum status ask(const struct command *c, const char *method, const char *path, const char *body,
                       struct wire_answer *out, struct error *err) {
  uint8_t secret[STORE_SECRET_SIZE];
  char proof[OPERATOR_PROOF_SIZE], header[sizeof OPERATOR_HEADER + OPERATOR_PROOF_SIZE + 4];
  struct wire *w = NULL;
  enum status st = operator_read_secret(c->store, secret, err);
  if (!st)
    st = wire_open(&c->wire, &w, err);
  if (st)
    return st;
  operator_prove(secret, store_now_ms(), method, path, body, strlen(body), proof);
  snprintf(header, sizeof header, OPERATOR_HEADER ": %s", proof);
  const struct wire_ask a = {.method = method,
                             .path = path,
                             .type = *body ? "application/json" : NULL,
                             .body = body,
                             .len = strlen(body),
                             .headers = {header},
                             .timeout_ms = ASK_MS,
                             .max = 1 << 20};
  st = wire_send(w, &a, out, err);
  if (!st && out->status >= 400)
    st = fail(err, ST_INPUT, "the server answered %ld %s: %s", out->status, out->code, out->message);
  wire_close(w);
  return st;
}

/* ---- the commands -------------------------------------------------------------------------------------------------- */

/* The file must be new, so that no other token is lost; only its owner may read it. */
static enum status write_token(const struct command *c, const char *token, struct error *err) {
  if (!c->file) {
    printf("%s%s\n", c->kind->prefix, token);
    return fflush(stdout) ? fail(err, ST_IO, "%m") : ST_OK;
  }
  const int fd = open(c->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool ok = fd >= 0 && dprintf(fd, "%s%s\n", c->kind->prefix, token) > IDENT_LEN;
  const int number = errno;
  if (fd >= 0)
    close(fd);
  errno = number;
  return ok ? ST_OK : fail(err, ST_INPUT, "%.160s: %m", c->file);
}

/* "a,b" as a list. */
static json_t *groups_of(const char *text) {
  json_t *list = json_array();
  for (const char *p = text; p && *p; p += strcspn(p, ","), p += *p == ',')
    json_array_append_new(list, json_stringn(p, strcspn(p, ",")));
  return list;
}

static enum status create(const struct command *c, struct wire_answer *a, struct error *err) {
  char token[IDENT_LEN + 1], hex[2 * IDENT_HASH_SIZE + 1];
  struct ident_hash hash;
  enum status st = ident_new(token, err);
  if (st)
    return st;
  ident_hash(token, IDENT_LEN, &hash);
  for (int i = 0; i < IDENT_HASH_SIZE; i++)
    snprintf(hex + 2 * i, 3, "%02x", hash.bytes[i]);
  json_t *o = json_pack("{s:s,s:s}", "name", c->name, "hash", hex);
  if (c->kind->has_role) {
    json_object_set_new(o, "role", json_string(c->role ? c->role : "author"));
    json_object_set_new(o, "groups", groups_of(c->groups));
  }
  char *body = o ? json_dumps(o, JSON_COMPACT) : NULL;
  json_decref(o);
  st = body ? ask(c, "POST", c->kind->path, body, a, err) : fail(err, ST_INPUT, "the name is no UTF-8");
  free(body);
  return st ? st : write_token(c, token, err);
}

static void print_time(const json_t *ms) {
  const time_t t = (time_t)(json_integer_value(ms) / 1000);
  struct tm tm;
  char text[40] = "";
  if (gmtime_r(&t, &tm))
    strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &tm);
  printf("%s", text);
}

static enum status list(const struct command *c, struct wire_answer *a, struct error *err) {
  const enum status st = ask(c, "GET", c->kind->path, "", a, err);
  json_t *o = st ? NULL : json_loadb(buf_text(&a->body), a->body.len, 0, NULL), *t;
  size_t i;
  json_array_foreach(json_object_get(o, "tokens"), i, t) {
    const json_t *revoked = json_object_get(t, "revoked_ms"), *role = json_object_get(t, "role"), *group;
    size_t g;
    printf("%-24s created ", json_string_value(json_object_get(t, "name")));
    print_time(json_object_get(t, "created_ms"));
    if (revoked) {
      printf(", revoked ");
      print_time(revoked);
    }
    if (role)
      printf(", %s", json_string_value(role));
    json_array_foreach(json_object_get(t, "groups"), g, group)
        printf("%s%s", g ? "," : ", groups ", json_string_value(group));
    putchar('\n');
  }
  json_decref(o);
  return st;
}

static enum status run(const struct command *c, struct error *err) {
  struct wire_answer a = {0};
  char path[400];
  enum status st;
  if (!strcmp(c->what, "list")) {
    st = list(c, &a, err);
  } else if (!strcmp(c->what, "create")) {
    st = create(c, &a, err);
  } else {
    snprintf(path, sizeof path, "%s/%.200s", c->kind->path, c->name);
    st = ask(c, "DELETE", path, "", &a, err);
  }
  buf_clear(&a.body);
  return st;
}

/* ---- options ------------------------------------------------------------------------------------------------------- */

static bool set_default_store(struct command *c) {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0)
    return false;
  path[n] = 0;
  *strrchr(path, '/') = 0;
  snprintf(c->store, sizeof c->store, "sqlite:%s/../data/nkx.sqlite", path);
  return true;
}

/* False: wrong usage. */
static bool read_arguments(struct command *c, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const bool has_value = i + 1 < argc;
    if (!strcmp(argv[i], "--server") && has_value)
      c->wire.url = argv[++i];
    else if (!strcmp(argv[i], "--store") && has_value)
      snprintf(c->store, sizeof c->store, "%s", argv[++i]);
    else if (!strcmp(argv[i], "--ca-file") && has_value)
      c->wire.ca_file = argv[++i];
    else if (!strcmp(argv[i], "--allow-http"))
      c->wire.allows_plain = true;
    else if (!strcmp(argv[i], "-o") && has_value)
      c->file = argv[++i];
    else if (c->kind->has_role && !strcmp(argv[i], "--role") && has_value)
      c->role = argv[++i];
    else if (c->kind->has_role && !strcmp(argv[i], "--groups") && has_value)
      c->groups = argv[++i];
    else if (argv[i][0] == '-' || (c->what && c->name))
      return false;
    else
      *(c->what ? &c->name : &c->what) = argv[i];
  }
  const bool is_list = c->what && !strcmp(c->what, "list"), is_create = c->what && !strcmp(c->what, "create");
  return c->what && (is_list || is_create || !strcmp(c->what, "revoke")) && is_list == !c->name &&
         (is_create || !(c->file || c->role || c->groups));
}

int runner_token_main(enum token_kind kind, int argc, char **argv) {
  struct command c = {.kind = &kinds[kind], .wire = {.url = "http://127.0.0.1:10240"}};
  struct error err = {0};
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      fputs(c.kind->usage, stdout);
      return EXIT_DONE;
    }
  if (!set_default_store(&c))
    return EXIT_FAULT;
  if (!read_arguments(&c, argc, argv)) {
    fputs(c.kind->usage, stderr);
    return EXIT_USAGE;
  }
  const enum status st = run(&c, &err);
  if (!st)
    return EXIT_DONE;
  fprintf(stderr, "nkx: %s\n", err.text);
  return st == ST_INPUT ? EXIT_REFUSED : EXIT_FAULT;
}
