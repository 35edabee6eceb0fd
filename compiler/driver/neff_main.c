/* neff_main: `nkx neff info|unpack|diff`: what NEFF files hold; and `nkx neff pack DIR --like FILE`, which undoes unpack.
 *
 * It needs neither CPython nor MLIR, so `nkx` runs it itself; `nkx neff pack KERNEL` and `nkx neff vendor`
 * compile, and are neff_pack_main.c and neff_vendor_main.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "driver/main.h"
#include "driver/neff_file.h"
#include "driver/neff_folder.h"
#include "neff/inspect.h"

static const char usage[] =
    "usage: nkx neff info FILE [--json]            header, tensors, variables, queues and engines of a NEFF\n"
    "       nkx neff unpack FILE -o DIR            writes its members there\n"
    "       nkx neff diff FILE FILE2 [--json]      what differs between two\n"
    "       nkx neff pack DIR --like FILE -o FILE2  packs what unpack wrote, with the header of FILE\n"
    "       nkx neff pack KERNEL -o FILE.sim.neff  compiles a kernel and packs its engine programs; see nkx neff pack "
    "--help\n"
    "       nkx neff vendor KERNEL -o FILE.neff [--nki FILE.py]  compiles it with the vendor's compiler, if that is "
    "installed; see "
    "nkx "
    "neff vendor --help\n"
    "  A file is a NEFF of the vendor's compiler, or a simulation package, which runs on the simulated machine only.\n"
    "Exit status: 0 done, and with diff: equal; 1 a file is refused, or they differ; 2 wrong usage; 3 a limit was "
    "hit.\n";

struct opened {
  struct neff neff;
  struct neff_model model;
  bool has_model;
};

static enum status open_neff(struct arena *a, const char *path, struct opened *x, struct error *err) {
  struct error why = {0};
  enum status st = neff_file_read(a, path, &x->neff, err);
  if (st)
    return st;
  x->has_model = true;
  st = neff_model_read(a, &x->neff, &x->model, &why);
  return st ? fail(err, st, "%.80s: %.150s", path, why.text) : ST_OK;
}

static void close_neff(struct opened *x) {
  if (x->has_model)
    neff_model_clear(&x->model);
}

/* Names in a file are anybody's: they reach the terminal as text only. */
struct shown {
  FILE *to;
  char *text;
  size_t len;
};

static enum status begin_shown(struct shown *s, struct error *err) {
  *s = (struct shown){0};
  s->to = open_memstream(&s->text, &s->len);
  return s->to ? ST_OK : fail(err, ST_NOMEM, "no memory for the report");
}

static void end_shown(struct shown *s) {
  fclose(s->to);
  utf8_print(stdout, s->text, s->len);
  free(s->text);
}

/* ---- info -------------------------------------------------------------------------------------------------------- */

static void print_size(FILE *to, int64_t bytes) {
  if (bytes < 0)
    fprintf(to, "%12s", "?");
  else
    fprintf(to, "%12" PRId64, bytes);
}

static void print_tensor(FILE *to, const struct neff_tensor *t) {
  fprintf(to, "  %-7s %-32s %-10s [", t->is_output ? "output" : "input", t->name, t->dtype);
  for (size_t d = 0; d < json_array_size(t->shape); d++)
    fprintf(to, "%s%lld", d ? ", " : "", (long long)json_integer_value(json_array_get(t->shape, d)));
  fprintf(to, "%s] ", t->shape ? "" : "?");
  print_size(to, t->size);
  fprintf(to, " bytes\n");
}

static void print_subgraph(FILE *to, const struct neff_subgraph *s) {
  int64_t sizes[NEFF_VAR_TYPES] = {0};
  int counts[NEFF_VAR_TYPES] = {0};
  for (int k = 0; k < s->vars.n; k++) {
    counts[s->vars.v[k].type]++;
    if (__builtin_add_overflow(sizes[s->vars.v[k].type], s->vars.v[k].size, &sizes[s->vars.v[k].type]))
      sizes[s->vars.v[k].type] = -1;
  }
  fprintf(to, "%s\n", s->name);
  for (int t = 0; t < NEFF_VAR_TYPES; t++)
    if (counts[t]) {
      fprintf(to, "  %6d %-14s ", counts[t], neff_var_type_name((enum neff_var_type)t));
      print_size(to, sizes[t]);
      fprintf(to, " bytes  %s\n", neff_var_type_place((enum neff_var_type)t));
    }
  for (int k = 0; k < s->queues.n; k++) {
    const struct neff_queue *q = &s->queues.v[k];
    fprintf(to, "  queue  %-14s on %-5s %" PRId64 " transfers, %" PRId64 " descriptors, %" PRId64 " bytes\n", q->name,
            q->owner, q->transfers, q->descriptors, q->bytes);
  }
  for (int k = 0; k < s->n_engines; k++) {
    const struct neff_engine *e = &s->engines[k];
    fprintf(to, "  engine %-5s ", e->key);
    if (e->instructions >= 0)
      fprintf(to, "%" PRId64 " instructions", e->instructions);
    if (e->instr)
      fprintf(to, "%s%" PRId64 " bytes of code", e->instructions >= 0 ? ", " : "", e->instr_size);
    fprintf(to, "\n");
  }
}

static void print_info(FILE *to, const struct opened *x) {
  const struct neff_header *h = &x->neff.header;
  fprintf(to, "%s\n", neff_what(&x->model));
  fprintf(to, "name %s, built by %s\n", h->name, h->build);
  fprintf(to,
          "package version %" PRIu64 ", format %" PRIu64 ".%" PRIu64 ", %u cores, LNC %u, %s archive, the hash %s\n",
          h->package_version, h->major, h->minor, h->cores, h->lnc, x->neff.is_compressed ? "gzip" : "plain",
          x->neff.hash == NEFF_HASH_RIGHT   ? "is right"
          : x->neff.hash == NEFF_HASH_WRONG ? "DIFFERS from the data"
                                            : "is of an unknown kind");
  const double us = json_real_value(json_object_get(x->model.info, "simulated_time_us"));
  if (x->model.is_simulation && us > 0)
    fprintf(to, "simulated time %.2f us\n", us);
  for (int k = 0; k < x->model.tensors.n; k++)
    print_tensor(to, &x->model.tensors.v[k]);
  for (int k = 0; k < x->model.subgraphs.n; k++)
    print_subgraph(to, &x->model.subgraphs.v[k]);
  fprintf(to, "members\n");
  for (int k = 0; k < x->neff.members.n; k++)
    fprintf(to, "  %12zu %s\n", x->neff.members.v[k].size, x->neff.members.v[k].name);
}

static enum status print_json(json_t *v, struct error *err) {
  char *text = v ? json_dumps(v, JSON_INDENT(1)) : NULL;
  json_decref(v);
  if (!text)
    return fail(err, ST_NOMEM, "no memory for the report");
  puts(text);
  free(text);
  return ST_OK;
}

static enum status info(struct arena *a, const char *path, bool as_json, struct error *err) {
  struct opened x = {.has_model = false};
  struct shown shown;
  enum status st = open_neff(a, path, &x, err);
  if (!st && as_json)
    st = print_json(neff_inspect(&x.neff, &x.model), err);
  else if (!st && !(st = begin_shown(&shown, err))) {
    print_info(shown.to, &x);
    end_shown(&shown);
  }
  close_neff(&x);
  return st;
}

/* ---- unpack ------------------------------------------------------------------------------------------------------ */

/* Names of members are relative and have no "..", so that a path stays in dir. */
static enum status write_member(struct arena *a, const char *dir, const struct neff_member *m, struct error *err) {
  char *path = arena_printf(a, "%s/%s", dir, m->name);
  for (char *p = path + strlen(dir); (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    if (mkdir(path, 0777) && errno != EEXIST)
      return fail(err, ST_INPUT, "%.160s: %m", path);
  }
  FILE *f = fopen(path, "wbxe");
  if (!f)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  bool ok = fwrite(m->data, 1, m->size, f) == m->size;
  ok &= fclose(f) == 0;
  return ok ? ST_OK : fail(err, ST_IO, "%.160s: %m", path);
}

static enum status unpack(struct arena *a, const char *path, const char *dir, struct error *err) {
  struct opened x = {.has_model = false};
  enum status st = open_neff(a, path, &x, err);
  if (!st && mkdir(dir, 0777) && errno != EEXIST)
    st = fail(err, ST_INPUT, "%.160s: %m", dir);
  for (int k = 0; k < x.neff.members.n && !st; k++)
    st = write_member(a, dir, &x.neff.members.v[k], err);
  if (!st)
    printf("%d files in %s\n", x.neff.members.n, dir);
  close_neff(&x);
  return st;
}

/* ---- pack -------------------------------------------------------------------------------------------------------- */

static enum status write_neff(const char *path, const struct buf *b, struct error *err) {
  FILE *f = fopen(path, "wbe");
  if (!f)
    return fail(err, ST_INPUT, "%.160s: %m", path);
  bool ok = fwrite(b->data, 1, b->len, f) == b->len;
  ok &= fclose(f) == 0;
  return ok ? ST_OK : fail(err, ST_IO, "%.160s: %m", path);
}

/* What cannot be read as a NEFF is not written. */
static enum status check_packed(struct arena *a, const char *dir, const struct neff *x, struct error *err) {
  struct neff_model m;
  struct error why = {0};
  if (x->header.package_version != 1 && x->header.package_version != 2)
    return fail(err, ST_INPUT, "the hash of a package of version %" PRIu64 " is not documented",
                x->header.package_version);
  const enum status st = neff_model_read(a, x, &m, &why);
  neff_model_clear(&m);
  return st ? fail(err, st, "%.80s: %.150s", dir, why.text) : ST_OK;
}

static enum status pack(struct arena *a, const char *dir, const char *like, const char *path, struct error *err) {
  struct neff model, x;
  struct buf b;
  buf_init(&b, (size_t)1 << 30);
  enum status st = neff_file_read(a, like, &model, err);
  if (!st)
    st = neff_folder_read(a, dir, &model, &x, err);
  if (!st)
    st = check_packed(a, dir, &x, err);
  if (!st)
    st = neff_write(&x, &b, err);
  if (!st)
    st = write_neff(path, &b, err);
  if (!st)
    printf("%s: %zu bytes, %d files\n", path, b.len, x.members.n);
  buf_clear(&b);
  return st;
}

/* ---- diff -------------------------------------------------------------------------------------------------------- */

static void print_changes(FILE *to, const json_t *list) {
  const json_t *one;
  size_t i;
  json_array_foreach(list, i, one) {
    char *before = json_dumps(json_object_get(one, "before"), JSON_ENCODE_ANY | JSON_COMPACT);
    char *after = json_dumps(json_object_get(one, "after"), JSON_ENCODE_ANY | JSON_COMPACT);
    fprintf(to, "%-8s %s  %s -> %s\n", json_string_value(json_object_get(one, "change")),
            json_string_value(json_object_get(one, "what")), before ? before : "-", after ? after : "-");
    free(after);
    free(before);
  }
}

static enum status diff(struct arena *a, char *const paths[2], bool as_json, bool *is_equal, struct error *err) {
  struct opened x[2] = {{.has_model = false}, {.has_model = false}};
  struct shown shown;
  enum status st = open_neff(a, paths[0], &x[0], err);
  if (!st)
    st = open_neff(a, paths[1], &x[1], err);
  json_t *list = st ? NULL : neff_diff(&x[0].neff, &x[1].neff);
  *is_equal = list && !json_array_size(list);
  if (!st && as_json)
    st = print_json(list, err);
  else if (!st) {
    st = begin_shown(&shown, err);
    if (!st) {
      print_changes(shown.to, list);
      end_shown(&shown);
    }
    json_decref(list);
  }
  close_neff(&x[0]);
  close_neff(&x[1]);
  return st;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static int exit_status(enum status st) {
  return st == ST_OK ? EXIT_DONE : st == ST_INPUT ? EXIT_REFUSED : st == ST_LIMIT ? EXIT_LIMIT : EXIT_FAULT;
}

int neff_main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "", *to = NULL, *like = NULL;
  char *paths[2] = {NULL, NULL};
  int n = 0;
  bool as_json = false, ok = true, is_equal = true;
  struct error err = {0};
  struct arena a;
  enum status st = ST_OK;

  for (int i = 2; i < argc && ok; i++)
    if (!strcmp(argv[i], "--json"))
      as_json = true;
    else if (!strcmp(argv[i], "-o") && i + 1 < argc)
      to = argv[++i];
    else if (!strcmp(argv[i], "--like") && i + 1 < argc)
      like = argv[++i];
    else if (n < 2 && (argv[i][0] != '-' || !argv[i][1]))
      paths[n++] = argv[i];
    else
      ok = false;
  if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
    fputs(usage, stdout);
    return EXIT_DONE;
  }
  arena_init(&a);
  if (ok && !strcmp(what, "info") && n == 1 && !to && !like)
    st = info(&a, paths[0], as_json, &err);
  else if (ok && !strcmp(what, "unpack") && n == 1 && to && !like && !as_json)
    st = unpack(&a, paths[0], to, &err);
  else if (ok && !strcmp(what, "pack") && n == 1 && to && like && !as_json)
    st = pack(&a, paths[0], like, to, &err);
  else if (ok && !strcmp(what, "diff") && n == 2 && !to && !like)
    st = diff(&a, paths, as_json, &is_equal, &err);
  else
    ok = false;
  arena_clear(&a);
  if (!ok) {
    fputs(usage, stderr);
    return EXIT_USAGE;
  }
  if (st)
    fprintf(stderr, "nkx: %s\n", err.text);
  return st ? exit_status(st) : is_equal ? EXIT_DONE : EXIT_REFUSED;
}
