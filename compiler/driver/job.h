/* job: what one compile request asks for, and its JSON form.
 *
 * The same parser serves the API (the server validates before it queues), the worker (which trusts nothing it
 * reads) and the tests.  Knows neither CPython nor MLIR.
 *
 *   { "source": "…" | "source_base64": "…", "filename"?: "kernel.py", "language"?: "nkipy|hlo|mlir", "target"?: "trn1|trn2|trn3", "kernel"?: "name",
 *     "inputs"?: [ {"name"?: "x", "shape": [128, 256], "dtype": "float32"} … ],
 *     "options"?: { "stop_after"?: "cse" | "canonicalize:2", "check"?: false, "artifacts"?: false },
 *     "scope"?: "16 to 64 of A-Z a-z 0-9 - _" }
 *
 * source_base64 holds the bytes of a serialized HloModuleProto (or HloProto), and "language" is "hlo" then.
 *
 * The scope is part of the key and of nothing else: who does not know it can neither name the result nor find out that
 * it was computed.
 */
#ifndef DRIVER_JOB_H
#define DRIVER_JOB_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/target.h"
#include "trace/trace.h"

enum {
  JOB_JSON_MAX = 1 << 20, /* bytes of a request: TRACE_SOURCE_MAX with every byte escaped fits */
  JOB_INPUTS_MAX = 256,
  JOB_SCOPE_MIN = 16,
  JOB_SCOPE_MAX = 64,
};

struct job {
  const char *source;
  size_t source_len;
  bool is_binary; /* the source is not text */
  const char *filename;
  enum language language;
  enum target target;
  const char *kernel; /* NULL: all */
  int n_inputs;
  struct trace_input_spec *inputs;
  const char *inputs_npz; /* set by the terminal only, never from JSON */
  const char *stop_after; /* checked against the stage list; NULL: run everything */
  bool check, artifacts;
  const char *scope; /* NULL: none */
  uint64_t seed;
  int64_t deadline_us; /* of clock_now_us, 0: none; for whoever runs it, not part of it: see stage_check.h */
};

void job_init(struct job *j); /* the defaults above, no source */

/* Parses and checks every field; unknown fields are refused by name.  On ST_INPUT/ST_LIMIT err names the field
 * ("options.stop_after: no stage is called \"foo\"").  Everything lives in a. */
MUST_USE enum status job_parse(struct arena *a, const char *json, size_t len, struct job *out, struct error *err);

/* One input as it is written in a command line: "x=128x256:f32", "scale=:f32" (0-d); without a dtype f32. */
MUST_USE enum status job_parse_input(struct arena *a, const char *text, struct trace_input_spec *out,
                                     struct error *err);

/* The request as one line of JSON, as job_parse reads it; heap, caller frees; NULL when out of memory. */
char *job_dump(const struct job *j, size_t *len);

/* SHA-256 over everything that decides the result, and the pipeline's version: 64 hex digits and a NUL.  False when out of
 * memory. */
enum { JOB_KEY_SIZE = 65 };
MUST_USE bool job_key(const struct job *j, char key[JOB_KEY_SIZE]);

#endif
