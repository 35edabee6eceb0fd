#include "driver/run_show.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

enum { LINES_SHOWN = 8 };

const char *run_text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

long long run_int_of(const json_t *o, const char *key) {
  return (long long)json_integer_value(json_object_get(o, key));
}

static void show_number(const char *label, const json_t *v) {
  if (json_is_number(v))
    printf("  %s %.6g", label, json_number_value(v));
}

/* "float32[128, 512]  min … max … mean …", and how many elements are not finite. */
static void show_summary(const json_t *o) {
  const json_t *d;
  size_t i;
  printf("%s[", run_text_of(o, "dtype"));
  json_array_foreach(json_object_get(o, "shape"), i, d)
      printf("%s%lld", i ? ", " : "", (long long)json_integer_value(d));
  printf("]");
  show_number("min", json_object_get(o, "min"));
  show_number("max", json_object_get(o, "max"));
  show_number("mean", json_object_get(o, "mean"));
  printf("  NaN %lld", run_int_of(o, "nan"));
  if (run_int_of(o, "inf"))
    printf("  infinite %lld", run_int_of(o, "inf"));
}

void run_show_output(const json_t *o) {
  const json_t *pass = json_object_get(o, "pass"), *abs_err = json_object_get(o, "max_abs_err");
  printf("  %-10s ", run_text_of(o, "name"));
  show_summary(o);
  if (pass) {
    printf("\n             ");
    show_number(json_is_number(abs_err) ? "largest error" : "", abs_err);
    show_number("relative", json_object_get(o, "max_rel_err"));
    printf("  %s", json_is_true(pass) ? "pass" : "FAIL");
  }
  putchar('\n');
}

static void show_rows(const json_t *rows) {
  const json_t *row, *v;
  size_t i, k;
  json_array_foreach(rows, i, row) {
    printf("   ");
    json_array_foreach(row, k, v) {
      if (json_is_string(v))
        printf(" %12s", json_string_value(v));
      else
        printf(" %12.6g", json_number_value(v));
    }
    putchar('\n');
  }
}

/* One digit for each bin, 9 for the fullest, and '.' for an empty one. */
static void show_histogram(const json_t *h) {
  const json_t *counts = json_object_get(h, "counts"), *n;
  json_int_t most = 1;
  size_t i;
  if (!h)
    return;
  json_array_foreach(counts, i, n) most = json_integer_value(n) > most ? json_integer_value(n) : most;
  printf("    histogram %.6g [", json_number_value(json_object_get(h, "from")));
  json_array_foreach(counts, i, n) {
    const json_int_t v = json_integer_value(n);
    putchar(v ? '0' + (int)((double)v / (double)most * 9) : '.');
  }
  printf("] %.6g\n", json_number_value(json_object_get(h, "to")));
}

/* An instruction that is watched: where it is, of which part, and the values. */
static void show_watched_one(const json_t *v, bool in_full) {
  printf("%s of %s", run_text_of(v, "operand"), run_text_of(v, "instruction"));
  if (json_object_get(v, "part"))
    printf(", %s", run_text_of(v, "part"));
  if (json_object_get(v, "reason")) {
    printf(": %s (%lld executions)\n", run_text_of(v, "reason"), run_int_of(v, "executions"));
    return;
  }
  printf(" after execution %lld of %lld\n    ", run_int_of(v, "nth"), run_int_of(v, "executions"));
  show_summary(v);
  putchar('\n');
  if (!in_full)
    return;
  show_histogram(json_object_get(v, "histogram"));
  show_rows(json_object_get(v, "slice"));
}

/* The first instruction in full, then the others of the same line or for other parts, a summary each. */
static void show_watched(const json_t *v) {
  const json_t *parts = json_object_get(v, "parts"), *part;
  const bool is_source = json_is_true(json_object_get(v, "of_source"));
  const char *file = run_text_of(v, "file");
  size_t i;
  printf("  %s%s%sline %lld", file, *file ? " " : "", is_source && !*file ? "source " : "", run_int_of(v, "line"));
  if (!json_object_get(v, "instruction")) {
    printf(": %s (%lld executions)\n", run_text_of(v, "reason"), run_int_of(v, "executions"));
    return;
  }
  if (is_source)
    printf(", line %lld of the last stage", run_int_of(v, "at"));
  printf(": ");
  show_watched_one(v, true);
  json_array_foreach(parts, i, part) {
    printf("  line %lld: ", run_int_of(part, "at"));
    show_watched_one(part, false);
  }
  if (json_object_get(v, "more"))
    printf("  and %lld more instructions\n", run_int_of(v, "more"));
}

static void show_reference(const json_t *r) {
  const json_t *d = json_object_get(r, "differs"), *n;
  size_t i;
  if (!r)
    return;
  printf("    %s beside %s of the trace, line %lld%s", json_is_true(json_object_get(r, "pass")) ? "pass" : "DIFFERS",
         run_text_of(r, "name"), run_int_of(r, "line"), !strcmp(run_text_of(r, "of"), "numpy") ? ", in NumPy" : "");
  show_number("largest error", json_object_get(r, "max_abs_err"));
  if (d) {
    printf("  first at [");
    json_array_foreach(json_object_get(d, "index"), i, n)
        printf("%s%lld", i ? ", " : "", (long long)json_integer_value(n));
    printf("]: %.6g instead of %.6g", json_number_value(json_object_get(d, "got")),
           json_number_value(json_object_get(d, "want")));
  }
  putchar('\n');
}

/* The slice, with each row of its last dimension on a line. */
static void show_slice(const json_t *s) {
  enum { SHOWN = 8 };
  const json_t *shape = json_object_get(s, "shape"), *data = json_object_get(s, "data");
  const size_t rank = json_array_size(shape);
  const size_t columns = rank ? (size_t)json_integer_value(json_array_get(shape, rank - 1)) : 1;
  const size_t rows = columns ? json_array_size(data) / columns : 0;
  for (size_t r = 0; r < rows && r < SHOWN; r++) {
    printf("   ");
    for (size_t k = 0; k < columns && k < SHOWN; k++) {
      const json_t *v = json_array_get(data, r * columns + k);
      if (json_is_string(v))
        printf(" %12s", json_string_value(v));
      else
        printf(" %12.6g", json_number_value(v));
    }
    putchar('\n');
  }
}

void run_show_value(const json_t *v) {
  printf("  %s", run_text_of(v, "stage"));
  if (json_object_get(v, "line"))
    printf(" line %lld", run_int_of(v, "line"));
  if (json_object_get(v, "name"))
    printf(": %s", run_text_of(v, "name"));
  if (json_object_get(v, "operand"))
    printf(": %s", run_text_of(v, "operand"));
  if (json_object_get(v, "op"))
    printf(" of %s", run_text_of(v, "op"));
  if (json_object_get(v, "reason")) {
    printf(": no value: %s\n", run_text_of(v, "reason"));
    return;
  }
  printf(", execution %lld of %lld\n    ", run_int_of(v, "execution"), run_int_of(v, "executions"));
  show_summary(v);
  show_number("std", json_object_get(v, "std"));
  printf("  zero %lld", run_int_of(v, "zero"));
  if (json_object_get(v, "unwritten"))
    printf("  never written %lld", run_int_of(v, "unwritten"));
  putchar('\n');
  show_histogram(json_object_get(v, "histogram"));
  show_reference(json_object_get(v, "reference"));
  show_slice(json_object_get(v, "slice"));
}

static void show_fault(const json_t *f) {
  printf("  %s", run_text_of(f, "kind"));
  if (json_object_get(f, "instruction"))
    printf(": %s on %s", run_text_of(f, "instruction"), run_text_of(f, "engine"));
  if (json_object_get(f, "line"))
    printf(", line %lld", run_int_of(f, "line"));
  printf(": %s\n", run_text_of(f, "message"));
}

void run_show_simulation(const json_t *s) {
  const json_t *o;
  size_t i;

  if (json_object_get(s, "reason")) {
    printf("  not run: %s\n", run_text_of(s, "reason"));
    return;
  }
  printf("  %lld instructions (%lld matmuls) of %s in %.2f ms of this processor\n", run_int_of(s, "instructions"),
         run_int_of(s, "matmuls"), run_text_of(s, "stage"), (double)run_int_of(s, "time_us") / 1000);
  if (json_object_get(s, "fault"))
    show_fault(json_object_get(s, "fault"));
  json_array_foreach(json_object_get(s, "outputs"), i, o) run_show_output(o);
  json_array_foreach(json_object_get(s, "values"), i, o) show_watched(o);
}

/* ---- a comparison -------------------------------------------------------------------------------------------------- */

static void show_pair(const char *what, const char *name, const json_t *o) {
  const double x = json_number_value(json_object_get(o, "a_us")), y = json_number_value(json_object_get(o, "b_us"));
  printf("  %-6s %-24s %12.2f us %12.2f us %+12.2f us\n", what, name, x, y, y - x);
}

void run_show_comparison(const json_t *k) {
  const json_t *o;
  size_t i;
  printf("\n%s: a and b\n", run_text_of(k, "name"));
  json_array_foreach(json_object_get(k, "outputs"), i, o) {
    printf("  %-10s a ", run_text_of(o, "name"));
    show_summary(json_object_get(o, "a"));
    printf("\n             b ");
    show_summary(json_object_get(o, "b"));
    putchar('\n');
  }
  if (!json_object_get(k, "a_us"))
    return;
  show_pair("", "total", k);
  json_array_foreach(json_object_get(k, "lanes"), i, o) show_pair("busy", run_text_of(o, "name"), o);
  json_array_foreach(json_object_get(k, "waits"), i, o) show_pair("path", run_text_of(o, "for"), o);
  json_array_foreach(json_object_get(k, "lines"), i, o) {
    char place[32];
    snprintf(place, sizeof place, "%lld", run_int_of(o, "line"));
    if (i < LINES_SHOWN)
      show_pair("line", place, o);
  }
}

/* ---- a device ----------------------------------------------------------------------------------------------------- */

static void show_error(const char *of, const json_t *r) {
  if (r)
    printf("             beside %-11s largest error %.6g relative %.6g  %s\n", of,
           json_number_value(json_object_get(r, "max_abs_err")), json_number_value(json_object_get(r, "max_rel_err")),
           json_is_true(json_object_get(r, "pass")) ? "pass" : "FAIL");
}

static void show_times(const json_t *device) {
  const json_t *m = json_object_get(device, "measured"), *median = json_object_get(m, "median_us"),
               *simulated = json_object_get(device, "simulated_us");
  const double us = json_number_value(median ? median : json_object_get(m, "first_us"));
  printf("  time: %.1f us", us);
  if (median)
    printf(" (the median of %lld; the least %.1f, the first %.1f)", run_int_of(m, "executions") - 1,
           json_number_value(json_object_get(m, "least_us")), json_number_value(json_object_get(m, "first_us")));
  if (simulated)
    printf(", simulated %.1f us", json_number_value(simulated));
  printf("\n  %s\n", json_is_true(json_object_get(device, "stand_in"))
                         ? "measured was the simulator on this processor: it says nothing about a Neuron device"
                         : "measured on the host's clock around the runtime's call, which takes some time itself");
}

void run_show_device(const json_t *device) {
  const json_t *o;
  size_t i;
  if (!json_object_get(device, "library"))
    return; /* a diagnostic says why there was no run */
  printf("%s: %s, version %s\n",
         json_is_true(json_object_get(device, "stand_in")) ? "NO DEVICE, but a stand-in of the tests" : "Neuron device",
         run_text_of(device, "library"), run_text_of(device, "version"));
  json_array_foreach(json_object_get(device, "outputs"), i, o) {
    run_show_output(o);
    show_error(run_text_of(json_object_get(o, "reference"), "of"), json_object_get(o, "reference"));
    show_error("simulator", json_object_get(o, "simulator"));
  }
  if (json_object_get(device, "measured"))
    show_times(device);
}
