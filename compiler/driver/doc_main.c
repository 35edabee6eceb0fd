/* doc_main: `nkx doc NAME`: what a call of NKI or an instruction does, from the tables of the compiler.
 *
 * It needs neither CPython nor MLIR, so `nkx` runs it itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "driver/cards.h"
#include "driver/main.h"
#include "driver/nki_help.h"

static const char usage[] = "usage: nkx doc NAME\n"
                            "  Says what a call of nki.isa, a function of nki.language or an instruction does: "
                            "nc_matmul, nl.load, nisa.matmul.\n"
                            "  nkx doc --list prints all names.\n"
                            "Exit status: 0 done; 1 the name is unknown; 2 wrong usage.\n";

enum { TEXT_MAX = 1 << 20, NAME_LEN_MAX = 64, NEAR_MAX = 3 };

/* ---- the tables -------------------------------------------------------------------------------------------------- */

/* An array of both: calls of NKI, and then instructions whose names are not those of a call.  NULL without memory. */
static json_t *load(void) {
  struct buf b;
  buf_init(&b, TEXT_MAX);
  buf_puts(&b, "[");
  nki_help_put(&b);
  buf_puts(&b, ",");
  cards_put_instructions(&b);
  buf_puts(&b, "]");
  json_t *both = buf_status(&b) ? NULL : json_loadb(b.data, b.len, 0, NULL);
  json_t *all = json_incref(json_object_get(json_array_get(both, 0), "calls"));
  if (all)
    json_array_extend(all, json_array_get(both, 1));
  json_decref(both);
  buf_clear(&b);
  return all;
}

static const char *text_of(const json_t *entry, const char *key) {
  const char *s = json_string_value(json_object_get(entry, key));
  return s ? s : "";
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static bool skip(const char **name, const char *prefix) {
  const size_t n = strlen(prefix);
  if (strncmp(*name, prefix, n) != 0)
    return false;
  *name += n;
  return true;
}

/* "nki.isa.nc_matmul" and "nisa.nc_matmul" become "nc_matmul"; *module: "nisa", "nl", or "" if the name has none. */
static const char *without_module(const char *name, const char **module) {
  *module = skip(&name, "nki.isa.") || skip(&name, "nisa.")      ? "nisa"
            : skip(&name, "nki.language.") || skip(&name, "nl.") ? "nl"
            : skip(&name, "tensor.")                             ? "tensor"
                                                                 : "";
  return name;
}

static bool is_called(const json_t *entry, const char *module, const char *name) {
  const char *own_module;
  const char *own = without_module(text_of(entry, "name"), &own_module);
  return !strcmp(own, name) && (!*module || !strcmp(own_module, module));
}

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* The number of characters that are inserted, removed or replaced between both; both are at most NAME_LEN_MAX long. */
static size_t distance(const char *a, const char *b) {
  const size_t n = strlen(b);
  size_t row[NAME_LEN_MAX + 1];
  for (size_t j = 0; j <= n; j++)
    row[j] = j;
  for (size_t i = 0; a[i]; i++) {
    size_t corner = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < n; j++) {
      const size_t replaced = corner + (a[i] != b[j]);
      corner = row[j + 1];
      row[j + 1] = least(replaced, least(corner, row[j]) + 1);
    }
  }
  return row[n];
}

/* How far an entry's name is from what was asked for: 0 is nearest. */
static size_t rank(const json_t *entry, const char *name) {
  const char *module;
  const char *own = without_module(text_of(entry, "name"), &module);
  if (strlen(own) > NAME_LEN_MAX || strlen(name) > NAME_LEN_MAX)
    return NAME_LEN_MAX;
  const size_t d = distance(name, own);
  return strlen(name) >= 4 && (strstr(own, name) || strstr(name, own)) ? least(d, 2) : d;
}

/* Prints the nearest names, or nothing if none is near. */
static void suggest(const json_t *all, const char *name) {
  const size_t most = strlen(name) / 3 + 1;
  const json_t *entry;
  size_t i;
  int n = 0;
  for (size_t d = 0; d <= most && n < NEAR_MAX; d++)
    json_array_foreach(all, i, entry) {
      if (n < NEAR_MAX && rank(entry, name) == d)
        fprintf(stderr, "%s%s", n++ ? ", " : "  did you mean ", text_of(entry, "name"));
    }
  fputs(n ? "?\n" : "  `nkx doc --list` prints all names.\n", stderr);
}

/* ---- an entry ---------------------------------------------------------------------------------------------------- */

/* The strings of a list, with `between` between them. */
static void print_list(const json_t *list, const char *between) {
  const json_t *v;
  size_t i;
  json_array_foreach(list, i, v) printf("%s%s", i ? between : "", json_string_value(v));
}

static void print_row(const char *label, const json_t *list, const char *between) {
  if (!json_array_size(list))
    return;
  printf("  %-10s", label);
  print_list(list, between);
  putchar('\n');
}

static void print_operands(const json_t *entry) {
  const json_t *o;
  size_t i;
  json_array_foreach(json_object_get(entry, "operands"), i, o) {
    const json_t *memories = json_object_get(o, "memories");
    printf("  %-10s%-22s %s", i ? "" : "operands", text_of(o, "name"), text_of(o, "use"));
    if (json_array_size(memories)) {
      fputs("; ", stdout);
      print_list(memories, " or ");
    }
    puts(json_is_true(json_object_get(o, "optional")) ? "; may be left out" : "");
  }
}

/* Of a call a list of names, of an instruction one of objects. */
static void print_engines(const json_t *entry) {
  const json_t *e;
  size_t i;
  json_array_foreach(json_object_get(entry, "engines"), i, e)
      printf("%s%s", i ? ", " : "  engines   ", json_is_string(e) ? json_string_value(e) : text_of(e, "name"));
  if (i)
    putchar('\n');
}

static void print_costs(const json_t *entry) {
  const json_t *c;
  size_t i;
  json_array_foreach(json_object_get(entry, "costs"), i, c)
      printf("  %-10s%s: %s\n", i ? "" : "cost", text_of(c, "name"), text_of(c, "formula"));
}

static void print_entry(const json_t *entry) {
  const json_t *parameters = json_object_get(entry, "parameters");
  fputs(text_of(entry, "name"), stdout);
  if (parameters) {
    putchar('(');
    print_list(parameters, ", ");
    putchar(')');
  }
  printf("\n\n  %s\n\n", text_of(entry, "what"));
  print_row("beta 1", json_object_get(entry, "beta1"), ", ");
  print_operands(entry);
  print_engines(entry);
  print_row("limits", json_object_get(entry, "limits"), "\n            ");
  print_row("becomes", json_object_get(entry, "becomes"), ", ");
  print_costs(entry);
  if (*text_of(entry, "instead"))
    printf("  %-10s%s\n", "instead", text_of(entry, "instead"));
  if (*text_of(entry, "example"))
    printf("  %-10s%s\n", "example", text_of(entry, "example"));
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static enum exit_status show(const json_t *all, const char *asked) {
  const char *module;
  const char *name = without_module(asked, &module);
  const json_t *entry;
  size_t i, n = 0;
  json_array_foreach(all, i, entry) {
    if (!is_called(entry, module, name))
      continue;
    if (n++)
      putchar('\n');
    print_entry(entry);
  }
  if (n)
    return EXIT_DONE;
  fprintf(stderr, "nkx doc: nothing is called %.80s\n", asked);
  suggest(all, name);
  return EXIT_REFUSED;
}

int doc_main(int argc, char **argv) {
  if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
    return fputs(usage, stdout), EXIT_DONE;
  if (argc != 2 || (*argv[1] == '-' && strcmp(argv[1], "--list") != 0))
    return fputs(usage, stderr), EXIT_USAGE;
  json_t *all = load();
  if (!all)
    return fputs("nkx doc: no memory\n", stderr), EXIT_FAULT;
  enum exit_status status = EXIT_DONE;
  if (*argv[1] == '-') {
    const json_t *entry;
    size_t i;
    json_array_foreach(all, i, entry) puts(text_of(entry, "name"));
  } else {
    status = show(all, argv[1]);
  }
  json_decref(all);
  return status;
}
