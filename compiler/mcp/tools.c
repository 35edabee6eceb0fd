/* tools: the table, and what its lines have in common. */
#include "mcp/tools.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/utf8.h"
#include "driver/job.h"
#include "driver/result_stage.h"
#include "driver/shrink.h"

enum { SHRINK_SECONDS_HERE = 60 };

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define KEY_SAYS "The `result` that compile, check or simulate returned."
#define STAGE_SAYS "A stage: its name (\"linalg-to-nisa\", \"cse:2\" for the second of that name) or its number."
#define KERNEL_SAYS "Name or number of the kernel, if the file has several; the first otherwise."

/* The members of a job, as POST /api/v1/compile takes them; the last four are its options there. */
static const struct mcp_property of_job[] = {
    {"source", MCP_OF_JOB, true, 0, 0,
     "The kernel: Python for NumPy or NKI (@nki.jit), HLO text, or MLIR. At most 256 KiB with its files.",
     "{\"type\":\"string\"}"},
    {"filename", MCP_OF_JOB, false, 0, 0, "Its name in diagnostics and places; kernel.py by default.",
     "{\"type\":\"string\"}"},
    {"files", MCP_OF_JOB, false, 0, 0, "Python files that the source imports.",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"source\":{"
     "\"type\":\"string\"}},\"required\":[\"name\",\"source\"],\"additionalProperties\":false}}"},
    {"language", MCP_OF_JOB, false, 0, 0, "nkipy (Python, also NKI) by default.",
     "{\"type\":\"string\",\"enum\":[\"nkipy\",\"hlo\",\"mlir\"]}"},
    {"target", MCP_OF_JOB, false, 0, 0, "The machine; trn2 by default.",
     "{\"type\":\"string\",\"enum\":[\"trn1\",\"trn2\",\"trn3\"]}"},
    {"kernel", MCP_OF_JOB, false, 0, 0, "Compile only the kernel of this name.", "{\"type\":\"string\"}"},
    {"inputs", MCP_OF_JOB, false, 0, 0,
     "Shapes and types of the kernel's parameters, if neither decorators, annotations nor calls in the source state "
     "them.",
     "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"shape\":{"
     "\"type\":\"array\",\"items\":{\"type\":\"integer\"}},\"dtype\":{\"type\":\"string\"}},\"required\":[\"shape\","
     "\"dtype\"],\"additionalProperties\":false}}"},
    {"stop_after", MCP_OF_JOB, false, 0, 0, "The last stage to run, by name.", "{\"type\":\"string\"}"},
    {"pipeline", MCP_OF_JOB, false, 0, 0, "reference leaves out the stages that only this compiler has.",
     "{\"type\":\"string\",\"enum\":[\"default\",\"reference\"]}"},
    {"by_hand", MCP_OF_JOB, false, 0, 0,
     "Changes of the pipeline: \"without STAGE\", \"after STAGE PASS\", \"with STAGE{OPTIONS}\".",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    {"unroll", MCP_OF_JOB, false, 0, 0, "Loops of NKI kernels stay unrolled.", "{\"type\":\"boolean\"}"},
};
enum { N_OF_JOB = sizeof of_job / sizeof *of_job, FIRST_OPTION = N_OF_JOB - 4 };

static const struct mcp_property of_stages[] = {
    {"result", MCP_TEXT, true, 0, JOB_KEY_SIZE, KEY_SAYS, NULL},
    {"kernel", MCP_NAME, false, 0, 0, KERNEL_SAYS, NULL},
};
static const struct mcp_property of_read[] = {
    {"result", MCP_TEXT, true, 0, JOB_KEY_SIZE, KEY_SAYS, NULL},
    {"stage", MCP_NAME, true, 0, 0, STAGE_SAYS, NULL},
    {"kernel", MCP_NAME, false, 0, 0, KERNEL_SAYS, NULL},
    {"from_line", MCP_INT, false, 1, INT_MAX, "The first line, from 1; 1 by default.", NULL},
    {"lines", MCP_INT, false, 1, 1000, "How many lines; 100 by default.", NULL},
};
static const struct mcp_property of_find[] = {
    {"result", MCP_TEXT, true, 0, JOB_KEY_SIZE, KEY_SAYS, NULL},
    {"text", MCP_TEXT, true, 1, 1000, "What the line contains, such as \"nisa.matmul\" or \"kernel.py:12\" (a place).",
     NULL},
    {"stage", MCP_NAME, false, 0, 0, STAGE_SAYS " All stages by default.", NULL},
    {"kernel", MCP_NAME, false, 0, 0, KERNEL_SAYS, NULL},
    {"most", MCP_INT, false, 1, 500, "How many lines to show; 50 by default. All are counted.", NULL},
};
static const struct mcp_property of_diff[] = {
    {"result", MCP_TEXT, true, 0, JOB_KEY_SIZE, KEY_SAYS, NULL},
    {"from", MCP_NAME, true, 0, 0, STAGE_SAYS, NULL},
    {"to", MCP_NAME, false, 0, 0, STAGE_SAYS " By default `from` of the other result.", NULL},
    {"with", MCP_TEXT, false, 0, JOB_KEY_SIZE, "Another result that has `to`; the same one by default.", NULL},
    {"kernel", MCP_NAME, false, 0, 0, KERNEL_SAYS, NULL},
};
static const struct mcp_property of_explain[] = {
    {"code", MCP_TEXT, false, 1, 100, "The code of a diagnostic, such as \"shape-mismatch\".", NULL},
    {"rule", MCP_TEXT, false, 1, 100, "A rule by which a pass decides, such as \"tile-size\".", NULL},
    {"result", MCP_TEXT, false, 0, JOB_KEY_SIZE, KEY_SAYS, NULL},
    {"stage", MCP_NAME, false, 0, 0, STAGE_SAYS, NULL},
    {"line", MCP_INT, false, 1, INT_MAX, "A line of that stage, from 1.", NULL},
    {"kernel", MCP_NAME, false, 0, 0, KERNEL_SAYS, NULL},
};
static const struct mcp_property of_shrink[] = {
    {"seconds", MCP_INT, false, 1, 600, "The search ends after so many; 60 by default.", NULL},
    {"candidates", MCP_INT, false, 1, 2000, "The search ends after so many; 2000 by default.", NULL},
};
static const struct mcp_property of_share[] = {
    {"title", MCP_TEXT, false, 0, 200, "The title of the link.", NULL},
};

#define OWN(p) .n_properties = sizeof(p) / sizeof *(p), .properties = (p)

const struct mcp_tool mcp_tools[] = {
    {"compile", "Compile a kernel",
     "Compiles a kernel for AWS Trainium through every stage, from Python by HLO, linalg and memory placement to "
     "NeuronCore "
     "instructions. Returns its `result`, kernels and diagnostics; read, find, diff and explain then look into the "
     "stages.",
     .need = MCP_JOB, .takes_job = true, .tell = mcp_tell_compile},
    {"check", "Compile a kernel and compare every stage with NumPy",
     "Compiles, runs every stage on inputs with a fixed seed, and compares with NumPy. Names the first stage that "
     "computes "
     "something else, which is the pass that broke the program.",
     .need = MCP_JOB, .check = true, .takes_job = true, .tell = mcp_tell_check},
    {"simulate", "Compile a kernel and run it on the simulated machine",
     "Compiles, and runs the instructions on a simulated NeuronCore: outputs beside NumPy's, the time of the run, what "
     "bounds "
     "it, how busy each engine and queue is, and the dearest reasons with their places in the source.",
     .need = MCP_JOB, .simulate = true, .takes_job = true, .tell = mcp_tell_simulate},
    {"shrink", "Make a faulty kernel small",
     "Reduces a kernel that is refused, crashes or fails its check to a few lines with the same diagnostic and failing "
     "pass.",
     .need = MCP_SHRINK, .check = true, .takes_job = true, OWN(of_shrink), .tell = mcp_tell_shrink},
    {"stages", "List the stages of a result",
     "Lists the stages of a kernel: number, name, dialect, operations, and whether the pass changed anything.",
     .need = MCP_RESULT, OWN(of_stages), .tell = mcp_tell_stages},
    {"read", "Read lines of a stage",
     "Reads a range of lines of a stage, each with the place in the source that it comes from.", .need = MCP_RESULT,
     OWN(of_read), .tell = mcp_tell_read},
    {"find", "Find lines in stages",
     "Finds the lines that contain a text, or that come from a place in the source (\"kernel.py:12\"), in one stage or "
     "in all.",
     .need = MCP_RESULT, OWN(of_find), .tell = mcp_tell_find},
    {"diff", "Compare two stages",
     "What changed between two stages of a result, or of two results (another version of the kernel, another target), "
     "apart "
     "from the names of values.",
     .need = MCP_RESULT, OWN(of_diff), .tell = mcp_tell_diff},
    {"explain", "Explain a diagnostic, a rule, or an operation",
     "Says what a diagnostic's code means, what a rule of a pass decides and which knob changes it, or why an "
     "operation is as it "
     "is: what it was in the stages before, and every decision about it. Give `code`, or `rule`, or `result`, `stage` "
     "and `line`.",
     .need = MCP_RESULT, OWN(of_explain), .tell = mcp_tell_explain},
    {"share", "Make a link to a kernel",
     "Makes a link that opens the explorer's page with the kernel and its stages, for people.", .need = MCP_SHARE,
     .takes_job = true, OWN(of_share)},
};
const int mcp_n_tools = sizeof mcp_tools / sizeof *mcp_tools;

const struct mcp_tool *mcp_tool_find(const char *name) {
  for (int i = 0; i < mcp_n_tools; i++)
    if (!strcmp(mcp_tools[i].name, name))
      return &mcp_tools[i];
  return NULL;
}

/* Property i of the tool, those of the job first; NULL: it has no more. */
static const struct mcp_property *property(const struct mcp_tool *t, int i) {
  const int n = t->takes_job ? N_OF_JOB : 0;
  return i < n ? &of_job[i] : i - n < t->n_properties ? &t->properties[i - n] : NULL;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static json_t *schema_of(const struct mcp_property *p) {
  json_t *s;
  switch (p->type) {
  case MCP_TEXT:
    s = json_pack("{s:s}", "type", "string");
    break;
  case MCP_INT:
    s = json_pack("{s:s,s:i,s:i}", "type", "integer", "minimum", p->least, "maximum", p->most);
    break;
  case MCP_NAME:
    s = json_pack("{s:[ss]}", "type", "string", "integer");
    break;
  default:
    s = json_loads(p->schema, 0, NULL);
    assert(s);
  }
  json_object_set_new(s, "description", json_string(p->says));
  return s;
}

static json_t *input_schema(const struct mcp_tool *t) {
  json_t *properties = json_object(), *required = json_array();
  const struct mcp_property *p;
  for (int i = 0; (p = property(t, i)); i++) {
    json_object_set_new(properties, p->name, schema_of(p));
    if (p->is_required)
      json_array_append_new(required, json_string(p->name));
  }
  return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties, "required", required,
                   "additionalProperties", 0);
}

json_t *mcp_tools_list(void) {
  json_t *list = json_array();
  for (int i = 0; i < mcp_n_tools; i++) {
    const struct mcp_tool *t = &mcp_tools[i];
    json_array_append_new(list,
                          json_pack("{s:s,s:s,s:s,s:o,s:{s:b,s:b,s:b}}", "name", t->name, "title", t->title,
                                    "description", t->says, "inputSchema", input_schema(t), "annotations",
                                    "readOnlyHint", t->need != MCP_SHARE, "destructiveHint", 0, "openWorldHint", 0));
  }
  return list;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static enum status check_value(const struct mcp_property *p, const json_t *v, struct error *err) {
  switch (p->type) {
  case MCP_TEXT:
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
      return fail(err, ST_INPUT, "%s: expected a string", p->name);
    if ((int)json_string_length(v) < p->least || (p->most && json_string_length(v) > (size_t)p->most))
      return fail(err, ST_INPUT, "%s: expected from %d to %d bytes", p->name, p->least, p->most);
    return ST_OK;
  case MCP_INT:
    if (!json_is_integer(v) || json_integer_value(v) < p->least || json_integer_value(v) > p->most)
      return fail(err, ST_INPUT, "%s: expected an integer from %d to %d", p->name, p->least, p->most);
    return ST_OK;
  case MCP_NAME:
    if (json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v) && json_string_length(v))
      return ST_OK;
    return json_is_integer(v) && json_integer_value(v) >= 0
               ? ST_OK
               : fail(err, ST_INPUT, "%s: expected a name or a number", p->name);
  default:
    return ST_OK;
  }
}

enum status mcp_tool_check(const struct mcp_tool *tool, const json_t *args, struct error *err) {
  const struct mcp_property *p;
  const char *key;
  json_t *v;
  json_object_foreach((json_t *)args, key, v) {
    int i = 0;
    while ((p = property(tool, i)) && strcmp(p->name, key) != 0)
      i++;
    if (!p)
      return fail(err, ST_INPUT, "%.60s: %s has no such argument", key, tool->name);
    if (check_value(p, v, err))
      return ST_INPUT;
  }
  for (int i = 0; (p = property(tool, i)); i++)
    if (p->is_required && !json_object_get(args, p->name))
      return fail(err, ST_INPUT, "%s: is missing", p->name);
  return ST_OK;
}

enum status mcp_tool_job(struct arena *a, const struct mcp_tool *tool, const json_t *args, struct job *out,
                         struct error *err) {
  json_t *request = json_object(), *options = json_object();
  assert(tool->takes_job);
  for (int i = 0; i < N_OF_JOB; i++) {
    json_t *v = json_object_get(args, of_job[i].name);
    if (v)
      json_object_set(i < FIRST_OPTION ? request : options, of_job[i].name, v);
  }
  if (tool->check)
    json_object_set_new(options, "check", json_true());
  if (tool->simulate)
    json_object_set_new(options, "simulate", json_true());
  json_object_set_new(request, "options", options);
  const enum status st = job_read(a, request, out, err);
  json_decref(request);
  if (!st && tool->need == MCP_SHRINK) {
    const json_t *seconds = json_object_get(args, "seconds"), *candidates = json_object_get(args, "candidates");
    out->shrink_seconds = seconds ? (int)json_integer_value(seconds) : SHRINK_SECONDS_HERE;
    out->shrink_candidates = candidates ? (int)json_integer_value(candidates) : SHRINK_CANDIDATES;
  }
  return st;
}

/* ---- what the tools share ---------------------------------------------------------------------------------------- */

const char *mcp_arg(const struct mcp_ask *ask, const char *name) {
  const json_t *v = json_object_get(ask->args, name);
  return json_is_integer(v) ? arena_printf(ask->arena, "%lld", (long long)json_integer_value(v)) : json_string_value(v);
}

int mcp_arg_int(const struct mcp_ask *ask, const char *name, int otherwise) {
  const json_t *v = json_object_get(ask->args, name);
  return v ? (int)json_integer_value(v) : otherwise;
}

int mcp_arg_kernel(const struct mcp_ask *ask, struct error *err) {
  const char *name = mcp_arg(ask, "kernel");
  const int n = result_kernel(ask->result, name ? name : "0");
  if (n < 0)
    (void)fail(err, ST_INPUT, "the result has no kernel %.60s", name ? name : "at all");
  return n;
}

const json_t *mcp_arg_stage(const struct mcp_ask *ask, const json_t *result, int kernel, const char *name,
                            struct error *err) {
  const char *key = mcp_arg(ask, name);
  const json_t *stage = key ? result_stage(result, kernel, key) : NULL;
  if (!stage)
    (void)fail(err, ST_INPUT, "%s: the kernel has no stage %.60s; `stages` lists them", name,
               key ? key : "without a name");
  return stage;
}

void mcp_put_line(struct buf *b, const char *line, size_t len) {
  buf_append(b, line, len > MCP_LINE_SHOWN ? utf8_cut(line, len, MCP_LINE_SHOWN) : len);
  if (len > MCP_LINE_SHOWN)
    buf_printf(b, "… (%zu bytes more)", len - utf8_cut(line, len, MCP_LINE_SHOWN));
  buf_putc(b, '\n');
}

const char *mcp_text(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

long long mcp_count_operations(const json_t *stage) {
  const json_t *n;
  const char *key;
  long long ops = 0;
  json_object_foreach(json_object_get(stage, "op_counts"), key, n) ops += json_integer_value(n);
  return ops;
}

void mcp_put_diags(struct buf *b, const json_t *diags) {
  const json_t *d;
  size_t i;
  json_array_foreach(diags, i, d) {
    const json_t *range = json_object_get(d, "range"), *hint = json_object_get(d, "hint");
    buf_printf(b, "%s %s", mcp_text(d, "severity"), mcp_text(d, "code"));
    if (range)
      buf_printf(b, " at %s:%lld:%lld", mcp_text(range, "file"),
                 (long long)json_integer_value(json_object_get(range, "line")),
                 (long long)json_integer_value(json_object_get(range, "col")));
    buf_printf(b, ": %s\n", mcp_text(d, "message"));
    if (hint)
      buf_printf(b, "  hint: %s\n", mcp_text(d, "hint"));
  }
}
