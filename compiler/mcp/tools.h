/* tools: what the explorer offers to assistants by the Model Context Protocol, in one table that every transport uses.
 *
 * A tool says what it needs: a job to run, results that were made before, or nothing.  The transport gets that, and the tool tells
 * about it: in concise text for a model, and the same facts as an object.
 */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct job;
struct json_t;

enum mcp_need {
  MCP_JOB,    /* a job is run; the tool tells about its result */
  MCP_SHRINK, /* a job is made smaller, within its limits; the tool tells about what was found */
  MCP_RESULT, /* the result with the key in `result`, if there is one, and that in `with`, likewise */
  MCP_SHARE,  /* the transport makes a link for the job */
};

enum mcp_type { MCP_TEXT, MCP_INT, MCP_NAME /* text, or a number */, MCP_OF_JOB /* job_read checks it */ };

struct mcp_property {
  const char *name;
  enum mcp_type type;
  bool is_required;
  int least, most; /* of MCP_INT; of MCP_TEXT: bytes, 0: as long as the message may be */
  const char *says;
  const char *schema; /* of MCP_OF_JOB: JSON schema without its description */
};

/* What a tool has at hand. */
struct mcp_ask {
  const struct json_t *args;
  const struct json_t *result,
      *with;           /* result objects of the API (gather.h), which may be anybody's; NULL: not asked for */
  struct arena *arena; /* with MCP_ARENA bytes reserved: what may be longer is asked for with arena_try_array */
  struct buf *text;    /* is filled */
  struct json_t *out;  /* an object that is filled */
};

struct mcp_tool {
  const char *name, *title, *says;
  enum mcp_need need;
  bool check, simulate; /* of the job */
  bool takes_job;       /* the properties of a job come before its own */
  int n_properties;
  const struct mcp_property *properties;
  /* ST_INPUT, ST_LIMIT: err says why not, for the model.  NULL: the transport does it all. */
  enum status (*tell)(const struct mcp_ask *ask, struct error *err);
};

extern const struct mcp_tool mcp_tools[];
extern const int mcp_n_tools;

/* The tool of this name, or NULL. */
const struct mcp_tool *mcp_tool_find(const char *name);
/* The list of tools as tools/list answers it; the caller releases it.  NULL when out of memory. */
struct json_t *mcp_tools_list(void);
/* Checks the names and types of the arguments, but not those of a job.  ST_INPUT: err says which is wrong. */
MUST_USE enum status mcp_tool_check(const struct mcp_tool *tool, const struct json_t *args, struct error *err);
/* Reads the job of a tool that takes one.  It lives in a. */
MUST_USE enum status mcp_tool_job(struct arena *a, const struct mcp_tool *tool, const struct json_t *args,
                                  struct job *out, struct error *err);

/* tell_result.c */
enum status mcp_tell_compile(const struct mcp_ask *ask, struct error *err);
enum status mcp_tell_check(const struct mcp_ask *ask, struct error *err);
enum status mcp_tell_simulate(const struct mcp_ask *ask, struct error *err);
enum status mcp_tell_shrink(const struct mcp_ask *ask, struct error *err);
/* tell_stage.c */
enum status mcp_tell_stages(const struct mcp_ask *ask, struct error *err);
enum status mcp_tell_read(const struct mcp_ask *ask, struct error *err);
enum status mcp_tell_find(const struct mcp_ask *ask, struct error *err);
enum status mcp_tell_diff(const struct mcp_ask *ask, struct error *err);
/* tell_why.c */
enum status mcp_tell_explain(const struct mcp_ask *ask, struct error *err);

/* ---- what the tools share ---------------------------------------------------------------------------------------- */

/* Bytes of text after which a tool stops and says where to go on. */
enum { MCP_ARENA = 16 << 10, MCP_TEXT_ENOUGH = 48 << 10, MCP_LINE_SHOWN = 1000 };

/* An argument as text; an integer is copied as its digits into the arena.  NULL: it was not given. */
const char *mcp_arg(const struct mcp_ask *ask, const char *name);
int mcp_arg_int(const struct mcp_ask *ask, const char *name, int otherwise);
/* The kernel that the arguments name, the first otherwise; -1 with err: there is none. */
int mcp_arg_kernel(const struct mcp_ask *ask, struct error *err);
/* The stage that argument `name` names, of that kernel of a result; NULL with err: there is none. */
const struct json_t *mcp_arg_stage(const struct mcp_ask *ask, const struct json_t *result, int kernel, const char *name,
                                   struct error *err);
/* Appends a line of IR, cut after MCP_LINE_SHOWN bytes with the number of those left out, and a newline. */
void mcp_put_line(struct buf *b, const char *line, size_t len);
/* A member that is a string, or "". */
const char *mcp_text(const struct json_t *o, const char *key);
long long mcp_count_operations(const struct json_t *stage);
/* Appends diagnostics, a line each. */
void mcp_put_diags(struct buf *b, const struct json_t *diags);

#endif
