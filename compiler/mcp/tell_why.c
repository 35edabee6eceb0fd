/* tell_why: what `explain` tells: a diagnostic's code, a rule, or the decisions that led to an operation. */
#include "mcp/tools.h"

#include <string.h>

#include <jansson.h>

#include "base/diag.h"
#include "base/rule.h"
#include "driver/why.h"

static enum status tell_code(const struct mcp_ask *ask, const char *code, struct error *err) {
  const char *meaning = diag_code_meaning(code);
  if (!meaning)
    return fail(err, ST_INPUT, "code: there is no diagnostic with the code %.60s", code);
  buf_printf(ask->text, "%s: %s\n", code, meaning);
  json_object_set_new(ask->out, "code", json_string(code));
  json_object_set_new(ask->out, "meaning", json_string(meaning));
  return ST_OK;
}

static enum status tell_rule(const struct mcp_ask *ask, const char *name, struct error *err) {
  const struct rule_def *r = rule_find(name);
  if (!r)
    return fail(err, ST_INPUT, "rule: there is no rule %.60s", name);
  buf_printf(ask->text, "%s (%s): %s\nBecause: %s\nKnob: %s\n", r->name, r->pass, r->says, r->because, r->knob);
  if (*r->forced)
    buf_printf(ask->text, "No other choice: %s\n", r->forced);
  json_object_set_new(ask->out, "rule", json_string(r->name));
  json_object_set_new(ask->out, "pass", json_string(r->pass));
  json_object_set_new(ask->out, "says", json_string(r->says));
  json_object_set_new(ask->out, "because", json_string(r->because));
  if (*r->forced)
    json_object_set_new(ask->out, "forced", json_string(r->forced));
  json_object_set_new(ask->out, "knob", json_string(r->knob));
  return ST_OK;
}

static enum status tell_operation(const struct mcp_ask *ask, struct error *err) {
  const int kernel = mcp_arg_kernel(ask, err);
  const char *stage = mcp_arg(ask, "stage");
  const int line = mcp_arg_int(ask, "line", 0);
  if (kernel < 0)
    return ST_INPUT;
  if (!stage || !line)
    return fail(err, ST_INPUT, "%s: is missing", stage ? "line" : "stage");
  const enum status st = why_put(ask->arena, ask->text, ask->result, kernel, stage, line, err);
  json_object_set_new(ask->out, "why", json_stringn(buf_text(ask->text), ask->text->len));
  return st;
}

enum status mcp_tell_explain(const struct mcp_ask *ask, struct error *err) {
  const char *code = mcp_arg(ask, "code"), *rule = mcp_arg(ask, "rule");
  if ((code != NULL) + (rule != NULL) + (ask->result != NULL) != 1)
    return fail(err, ST_INPUT, "expected one of: code; rule; result with stage and line");
  return code ? tell_code(ask, code, err) : rule ? tell_rule(ask, rule, err) : tell_operation(ask, err);
}
