/* tell_result: what `compile`, `check` and `simulate` tell about the result of their job. */
#include "mcp/tools.h"

#include <string.h>

#include <jansson.h>

enum { ADVICE_TOLD = 5, LANES_TOLD = 12 };

/* ---- the head, which all three have ------------------------------------------------------------------------------ */

static void put_tensors(struct buf *b, const char *what, const json_t *tensors) {
  const json_t *t, *dim;
  size_t i, k;
  json_array_foreach(tensors, i, t) {
    buf_printf(b, "%s%s %s[", i ? ", " : what, mcp_text(t, "name"), mcp_text(t, "dtype"));
    json_array_foreach(json_object_get(t, "shape"), k, dim)
        buf_printf(b, "%s%lld", k ? "," : "", (long long)json_integer_value(dim));
    buf_putc(b, ']');
  }
  if (json_array_size(tensors))
    buf_putc(b, '\n');
}

/* The object of a kernel; its members of the tool's own come later. */
static json_t *tell_kernel(struct buf *b, const json_t *k) {
  const json_t *stages = json_object_get(k, "stages"), *inputs = json_object_get(k, "inputs");
  const json_t *outputs = json_object_get(k, "outputs");
  const size_t n = json_array_size(stages);
  const json_t *last = n ? json_array_get(stages, n - 1) : NULL;
  json_t *o = json_pack("{s:s,s:i,s:s}", "name", mcp_text(k, "name"), "stages", (int)n, "last", mcp_text(last, "name"));
  buf_printf(b, "kernel %s: %zu stages", mcp_text(k, "name"), n);
  if (last)
    buf_printf(b, ", the last is %s with %lld operations", mcp_text(last, "name"), mcp_count_operations(last));
  buf_putc(b, '\n');
  put_tensors(b, "  inputs: ", inputs);
  put_tensors(b, "  outputs: ", outputs);
  if (inputs)
    json_object_set(o, "inputs", (json_t *)inputs);
  if (outputs)
    json_object_set(o, "outputs", (json_t *)outputs);
  return o;
}

typedef void (*tell_more)(struct buf *b, const json_t *kernel, json_t *out);

static enum status tell(const struct mcp_ask *ask, tell_more more) {
  const json_t *r = ask->result, *k, *diags = json_object_get(r, "diagnostics");
  json_t *kernels = json_array();
  size_t i;
  buf_printf(ask->text, "%s; result %s; target %s\n", mcp_text(r, "status"), mcp_text(r, "key"), mcp_text(r, "target"));
  json_array_foreach(json_object_get(r, "kernels"), i, k) {
    json_t *o = tell_kernel(ask->text, k);
    if (more)
      more(ask->text, k, o);
    json_array_append_new(kernels, o);
  }
  mcp_put_diags(ask->text, diags);
  json_object_set_new(ask->out, "result", json_string(mcp_text(r, "key")));
  json_object_set_new(ask->out, "status", json_string(mcp_text(r, "status")));
  json_object_set_new(ask->out, "target", json_string(mcp_text(r, "target")));
  json_object_set_new(ask->out, "kernels", kernels);
  json_object_set_new(ask->out, "diagnostics", diags ? json_deep_copy(diags) : json_array());
  return ST_OK;
}

enum status mcp_tell_compile(const struct mcp_ask *ask, struct error *err) {
  (void)err;
  return tell(ask, NULL);
}

/* ---- check ------------------------------------------------------------------------------------------------------- */

static void tell_checks(struct buf *b, const json_t *kernel, json_t *out) {
  const json_t *s, *first = NULL;
  int passed = 0, failed = 0, skipped = 0;
  size_t i;
  json_array_foreach(json_object_get(kernel, "stages"), i, s) {
    const json_t *check = json_object_get(s, "check");
    const char *status = mcp_text(check, "status");
    passed += !strcmp(status, "pass");
    skipped += !strcmp(status, "skipped");
    if (strcmp(status, "fail") != 0)
      continue;
    failed++;
    if (!first)
      first = s;
  }
  buf_printf(b, "  check: %d stages agree with NumPy, %d do not, %d were not run\n", passed, failed, skipped);
  json_t *o = json_pack("{s:i,s:i,s:i}", "passed", passed, "failed", failed, "skipped", skipped);
  if (first) {
    const json_t *check = json_object_get(first, "check");
    buf_printf(b, "  the first that does not is stage %lld, %s, after the pass %s (largest error %g)%s%s\n",
               (long long)json_integer_value(json_object_get(first, "index")), mcp_text(first, "name"),
               mcp_text(first, "pass"), json_number_value(json_object_get(check, "max_abs_err")),
               json_object_get(check, "reason") ? ": " : "", mcp_text(check, "reason"));
    json_object_set_new(o, "first_failed",
                        json_pack("{s:s,s:O,s:O}", "stage", mcp_text(first, "name"), "index",
                                  json_object_get(first, "index"), "check", check));
  }
  json_object_set_new(out, "check", o);
}

enum status mcp_tell_check(const struct mcp_ask *ask, struct error *err) {
  (void)err;
  return tell(ask, tell_checks);
}

/* ---- simulate ---------------------------------------------------------------------------------------------------- */

static void put_place(struct buf *b, const json_t *place) {
  if (place)
    buf_printf(b, " [%s:%lld]", mcp_text(place, "file"), (long long)json_integer_value(json_object_get(place, "line")));
}

static void tell_outputs(struct buf *b, const json_t *simulation) {
  const json_t *o;
  size_t i;
  json_array_foreach(json_object_get(simulation, "outputs"), i, o) {
    const json_t *pass = json_object_get(o, "pass");
    buf_printf(b, "  output %s: from %g to %g", mcp_text(o, "name"), json_number_value(json_object_get(o, "min")),
               json_number_value(json_object_get(o, "max")));
    if (pass)
      buf_printf(b, ", %s the reference (largest error %g)", json_is_true(pass) ? "agrees with" : "DIFFERS from",
                 json_number_value(json_object_get(o, "max_abs_err")));
    buf_putc(b, '\n');
  }
}

static void tell_lanes(struct buf *b, const json_t *lanes) {
  const json_t *l;
  size_t i;
  json_array_foreach(lanes, i, l) {
    if (i == LANES_TOLD) {
      buf_printf(b, "  … and %zu more lanes\n", json_array_size(lanes) - i);
      break;
    }
    buf_printf(b, "  %s: busy %.3g us, %.0f %%\n", mcp_text(l, "name"),
               json_number_value(json_object_get(l, "busy_us")), 100 * json_number_value(json_object_get(l, "share")));
  }
}

static void tell_advice(struct buf *b, const json_t *advice) {
  const json_t *a;
  size_t i;
  json_array_foreach(advice, i, a) {
    if (i == ADVICE_TOLD)
      break;
    buf_printf(b, "  costs %.3g us: %s", json_number_value(json_object_get(a, "cost_us")), mcp_text(a, "text"));
    put_place(b, json_object_get(a, "place"));
    buf_putc(b, '\n');
  }
}

static void tell_run(struct buf *b, const json_t *kernel, json_t *out) {
  static const char *const told[] = {"total_us", "bound", "lanes", "advice", "roofline", "dma"};
  const json_t *simulation = json_object_get(kernel, "simulation"), *profile = json_object_get(kernel, "profile");
  const json_t *fault = json_object_get(simulation, "fault");
  json_t *p = json_object();
  buf_printf(b, "  simulation: %s%s%s\n", simulation ? mcp_text(simulation, "status") : "none",
             json_object_get(simulation, "reason") ? ", " : "", mcp_text(simulation, "reason"));
  if (fault)
    buf_printf(b, "  fault %s: %s\n", mcp_text(fault, "kind"), mcp_text(fault, "message"));
  tell_outputs(b, simulation);
  if (profile)
    buf_printf(b, "  time: %.4g us, bound by %s\n", json_number_value(json_object_get(profile, "total_us")),
               mcp_text(profile, "bound"));
  tell_lanes(b, json_object_get(profile, "lanes"));
  tell_advice(b, json_object_get(profile, "advice"));
  if (simulation)
    json_object_set(out, "simulation", (json_t *)simulation);
  for (size_t i = 0; profile && i < sizeof told / sizeof *told; i++)
    json_object_set(p, told[i], json_object_get(profile, told[i]));
  json_object_set_new(out, "profile", p);
}

enum status mcp_tell_simulate(const struct mcp_ask *ask, struct error *err) {
  (void)err;
  return tell(ask, tell_run);
}

enum status mcp_tell_shrink(const struct mcp_ask *ask, struct error *err) {
  static const char *const members[] = {"code", "stage", "lines", "tried", "kept", "stopped", "request"};
  const json_t *found = json_object_get(ask->result, "shrunk");
  const json_t *first = json_array_get(json_object_get(ask->result, "diagnostics"), 0);
  if (!json_is_true(json_object_get(found, "done")))
    return fail(err, ST_INPUT, "%.200s", first ? mcp_text(first, "message") : "the search found nothing");
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (json_object_get(found, members[i]))
      json_object_set(ask->out, members[i], json_object_get(found, members[i]));
  const char *stage = mcp_text(found, "stage"), *source = mcp_text(json_object_get(found, "request"), "source");
  buf_printf(ask->text, "%s%s%s in %lld lines: %lld candidates, %lld kept; stopped: %s\n", mcp_text(found, "code"),
             *stage ? " of " : "", stage, (long long)json_integer_value(json_object_get(found, "lines")),
             (long long)json_integer_value(json_object_get(found, "tried")),
             (long long)json_integer_value(json_object_get(found, "kept")), mcp_text(found, "stopped"));
  buf_puts(ask->text, *source ? source : "The kernel is as small as it can be.\n");
  return ST_OK;
}
