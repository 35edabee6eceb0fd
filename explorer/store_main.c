#include "store_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/access.h"
#include "base/arena.h"
#include "config.h"
#include "store/operate.h"
#include "store/s3.h"

enum { EXIT_DONE, EXIT_REFUSED, EXIT_USAGE, EXIT_FAULT = 4 };
enum { TIME_SIZE = 24, AFTER_MAX_S = 10 * 366 * 24 * 3600 };

static const char help[] =
    "usage: nkx store backup  [--store URL] FILE     copies the store into a new SQLite file; the server may be "
    "running\n"
    "       nkx store salvage [--store URL] FILE     copies what can be read of a damaged SQLite store\n"
    "       nkx store restore [--store URL] FILE     copies such a file into an empty store\n"
    "       nkx store check   [--store URL]          reads everything and verifies every checksum\n"
    "       nkx store list    [--store URL]          the links: name, visibility, times, revisions, bytes\n"
    "       nkx store show    [--store URL] LINK…    what is kept under a link\n"
    "       nkx store delete  [--store URL] LINK…    deletes links for good; needs no edit token\n"
    "       nkx store expire  [--store URL] [--after SECONDS] LINK…   … in a while (a day)\n"
    "URL is sqlite:PATH (../data/nkx.sqlite beside this program) or postgresql://…\n"
    "Where results were moved to an object store, `backup`, `salvage` and `check` need the server's --s3-url, "
    "--s3-region,\n"
    "--s3-credentials and --s3-ca-file, or NKX_S3_URL, … and NKX_S3_CA_FILE in the environment.\n"
    "LINK is an id, a link with it, or a name as `list` and the log give it.  A server may be running; run the command "
    "as\n"
    "its user.  Exit status 1: there is no such link, or data are damaged.\n";

struct options {
  const char *url;
  struct s3_config s3;
  char **rest;
  int n_rest;
  int64_t after_s;
};

static int fail_with(enum status st, const struct error *err) {
  fprintf(stderr, "nkx: %s\n", err->text);
  return st == ST_INPUT || st == ST_DENIED ? EXIT_USAGE : EXIT_FAULT;
}

/* *out: the object store of the store, NULL if there is none. */
static enum status open_objects(const struct options *o, struct s3_site **out, struct error *err) {
  *out = NULL;
  return o->s3.url ? s3_site_open(&o->s3, out, err) : ST_OK;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static void tell(const char *line) {
  fprintf(stderr, "%s\n", line);
}

static int report(const char *verb, const struct store_report *r) {
  printf("%s %lld snippets, %lld results, %lld blobs; %lld damaged\n", verb, (long long)r->snippets,
         (long long)r->results, (long long)r->blobs, (long long)r->damaged);
  return r->damaged ? EXIT_REFUSED : EXIT_DONE;
}

static int check(const struct options *o) {
  struct store_report r;
  struct error err;
  struct s3_site *objects;
  enum status st = open_objects(o, &objects, &err);
  if (!st)
    st = store_check(o->url, objects, &r, tell, &err);
  s3_site_close(objects);
  return st ? fail_with(st, &err) : report("checked", &r);
}

static int copy(const struct options *o, const char *from, const char *to, const char *verb) {
  struct store_report r;
  struct error err;
  struct s3_site *objects;
  enum status st = open_objects(o, &objects, &err);
  if (!st)
    st = store_copy(from, to, objects, &r, tell, &err);
  s3_site_close(objects);
  return st ? fail_with(st, &err) : report(verb, &r);
}

static int backup(const struct options *o) {
  struct arena a;
  arena_init(&a);
  int status = copy(o, o->url, arena_printf(&a, "sqlite:%s", o->rest[0]), "backed up");
  arena_clear(&a);
  return status;
}

static int salvage(const struct options *o) {
  struct store_report r;
  struct error err;
  struct arena a;
  arena_init(&a);
  struct s3_site *objects;
  enum status st = open_objects(o, &objects, &err);
  if (!st)
    st = store_salvage(o->url, arena_printf(&a, "sqlite:%s", o->rest[0]), objects, &r, tell, &err);
  s3_site_close(objects);
  arena_clear(&a);
  return st ? fail_with(st, &err) : report("salvaged", &r);
}

static int restore(const struct options *o) {
  struct arena a;
  arena_init(&a);
  int status = copy(o, arena_printf(&a, "sqlite:%s", o->rest[0]), o->url, "restored");
  arena_clear(&a);
  return status;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void write_time(int64_t ms, char out[TIME_SIZE]) {
  time_t t = (time_t)(ms / 1000);
  struct tm tm;
  if (!ms || !gmtime_r(&t, &tm) || !strftime(out, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm))
    snprintf(out, TIME_SIZE, "never");
}

static void print_link(const struct store_link *l) {
  char name[IDENT_NAME_SIZE], created[TIME_SIZE], expires[TIME_SIZE];
  const char *id = l->public_id[0] ? l->public_id : l->is_private ? "private" : "unlisted";
  ident_name(&l->hash, name);
  write_time(l->created_ms, created);
  write_time(l->expires_ms, expires);
  printf("%s\t%s\t%s\t%s\t%d\t%lld\n", name, id, created, expires, l->n_revisions, (long long)l->bytes);
}

static int list(const struct options *o) {
  struct store_links all;
  struct error err;
  enum status st = store_list_links(o->url, access_is_private, &all, &err);
  if (!st)
    puts("link\tid\tcreated\texpires\trevisions\tbytes");
  for (size_t i = 0; !st && i < all.n; i++)
    print_link(&all.at[i]);
  store_links_clear(&all);
  return st ? fail_with(st, &err) : EXIT_DONE;
}

/* Prints JSON that a stranger wrote.  It has no control characters but those that terminals also obey: DEL and U+0080 to U+009F. */
static void print_json(const struct buf *json) {
  const unsigned char *p = (const unsigned char *)buf_text(json);
  for (size_t i = 0; i < json->len; i++) {
    if (p[i] == 0x7f)
      fputs("\\u007f", stdout);
    else if (p[i] == 0xc2 && i + 1 < json->len && p[i + 1] < 0xa0)
      printf("\\u%04x", p[++i]);
    else
      putchar(p[i]);
  }
  putchar('\n');
}

static int missing(const char *text) {
  fprintf(stderr, "nkx: %s: there is no such link\n", text);
  return EXIT_REFUSED;
}

static int show(const struct options *o) {
  int status = EXIT_DONE;
  for (int i = 0; i < o->n_rest; i++) {
    struct store_link link;
    struct buf doc;
    struct error err;
    bool found;
    buf_init(&doc, STORE_BLOB_MAX);
    enum status st = store_show_link(o->url, o->rest[i], &link, &doc, &found, &err);
    if (!st && found) {
      link.is_private = access_is_private(&doc);
      print_link(&link);
      print_json(&doc);
    }
    buf_clear(&doc);
    if (st)
      return fail_with(st, &err);
    if (!found)
      status = missing(o->rest[i]);
  }
  return status;
}

/* at_ms 0: now. */
static int remove_links(const struct options *o, int64_t at_ms) {
  int status = EXIT_DONE;
  for (int i = 0; i < o->n_rest; i++) {
    struct store_link link;
    struct error err;
    char name[IDENT_NAME_SIZE];
    bool found;
    enum status st = store_remove_link(o->url, o->rest[i], at_ms, &link, &found, &err);
    if (st)
      return fail_with(st, &err);
    if (!found) {
      status = missing(o->rest[i]);
      continue;
    }
    ident_name(&link.hash, name);
    printf("%s %s\n", at_ms ? "expires" : "deleted", name);
  }
  return status;
}

static int delete(const struct options *o) {
  return remove_links(o, 0);
}

static int expire(const struct options *o) {
  return remove_links(o, store_now_ms() + o->after_s * 1000);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const struct command {
  const char *name;
  int (*run)(const struct options *o);
  int least, most; /* arguments */
  bool takes_after;
} commands[] = {
    {"backup", backup, 1, 1, false},    {"restore", restore, 1, 1, false}, {"check", check, 0, 0, false},
    {"salvage", salvage, 1, 1, false},  {"list", list, 0, 0, false},       {"show", show, 1, 1000, false},
    {"delete", delete, 1, 1000, false}, {"expire", expire, 1, 1000, true},
};

static const struct command *find_command(const char *name) {
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(commands[i].name, name))
      return &commands[i];
  return NULL;
}

static bool read_seconds(const char *text, int64_t *out) {
  char *end;
  *out = strtol(text, &end, 10);
  return end != text && !*end && *out > 0 && *out <= AFTER_MAX_S;
}

/* Takes the options out of argv. */
static bool read_options(int argc, char **argv, const struct command *c, struct options *o) {
  const char *region = getenv("NKX_S3_REGION");
  *o = (struct options){.rest = argv,
                        .s3 = {getenv("NKX_S3_URL"), region ? region : "us-east-1", getenv("NKX_S3_CREDENTIALS"),
                               getenv("NKX_S3_CA_FILE")},
                        .after_s = 24 * 3600};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--store") && i + 1 < argc)
      o->url = argv[++i];
    else if (!strcmp(argv[i], "--s3-url") && i + 1 < argc)
      o->s3.url = argv[++i];
    else if (!strcmp(argv[i], "--s3-region") && i + 1 < argc)
      o->s3.region = argv[++i];
    else if (!strcmp(argv[i], "--s3-credentials") && i + 1 < argc)
      o->s3.credentials = argv[++i];
    else if (!strcmp(argv[i], "--s3-ca-file") && i + 1 < argc)
      o->s3.ca_file = argv[++i];
    else if (c->takes_after && !strcmp(argv[i], "--after") && i + 1 < argc && read_seconds(argv[i + 1], &o->after_s))
      i++;
    else if (argv[i][0] == '-')
      return false;
    else
      o->rest[o->n_rest++] = argv[i];
  }
  return o->n_rest >= c->least && o->n_rest <= c->most;
}

int store_main(int argc, char **argv) {
  struct arena a;
  struct error err;
  struct options o;
  const char *dir, *what = argc ? argv[0] : "";
  const struct command *c = find_command(what);

  if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
    fputs(help, stdout);
    return EXIT_DONE;
  }
  if (!c || !read_options(argc, argv, c, &o)) {
    fputs(help, stderr);
    return EXIT_USAGE;
  }
  arena_init(&a);
  if (!o.url && !config_program_dir(&a, &dir, &err))
    o.url = arena_printf(&a, "sqlite:%s/../data/nkx.sqlite", dir);
  int status = o.url ? c->run(&o) : EXIT_FAULT;
  arena_clear(&a);
  return status;
}
