/* job: the contents of a compile request, and its JSON form.
 *
 * The same parser serves the server (which checks a request before it is queued), the worker (which does not trust
 * its input) and the tests.  It needs neither CPython nor MLIR.
 *
 *   { "source": "…" | "source_base64": "…", "filename"?: "kernel.py",
 *     "files"?: [ {"name": "pkg/helper.py", "source": "…"} … ], "language"?: "nkipy|hlo|mlir|neff",
 *     "target"?: "trn1|trn2|trn3", "kernel"?: "name",
 *     "inputs"?: [ {"name"?: "x", "shape": [128, 256], "dtype": "float32"} … ],
 *     "options"?: { "stop_after"?: "cse" | "canonicalize:2", "check"?: false, "artifacts"?: false,
 *                   "simulate"?: false, "pipeline"?: "default|reference", "unroll"?: false, "instance"?: 1, "watch"?: [ {"line": 12, "file"?: "kernel.py", "operand"?: "dst", "nth"?: 3} … ],
 *                   "upgrade"?: false, "tune"?: {"seconds"?: 5, "candidates"?: 100}, "shrink"?: {"from"?: 0},
 *                   "steps"?: "cse:2" | "17", "steps_from"?: 0,
 *                   "by_hand"?: ["without cse:2" …], "patterns"?: "// STAGE: cse:2\n// CHECK: …",
 *                   "resume"?: {"stage": "cse:2" | "17", "text": "…", "kernel"?: 0},
 *                   "value"?: {"stage": "cse:2" | "17", "line"?: 12, "name"?: "%9", "operand"?: "src", "execution"?: 3,
 *                              "slice"?: [{"start"?: 0, "stop": 64, "step"?: 1} …]} },
 *     "simulate"?: false,
 *     "scope"?: "16 to 64 of A-Z a-z 0-9 - _",
 *     "version"?: "0.9.0" }
 *
 * The source may import the files: a name is a path of at most JOB_FILE_NAME_MAX letters, digits, '_', '-' and '.'
 * that ends in .py; its folders are packages.  Only "nkipy" has files.
 *
 * source_base64 contains the bytes of a serialized HloModuleProto (or HloProto), and "language" is "hlo"; or those of a NEFF, and
 * "language" is "neff".  A NEFF is described by the frame "neff" (frames.h): there are no stages, so only filename and scope
 * may be given with it.
 *
 * "simulate" may stand outside of the options, too.  A watch asks for the values of an operand after the nth execution
 * (the last one) of the instruction on a line of the kernel's last stage, or of the source if that is NISA; the operand is
 * the one that it writes unless it is named.
 *
 * A job with options.value goes as far as the stage, and has the frame "value" (frames.h) instead of stages.  It needs a line, or
 * a name, or both: the value of that name after the operation on that line.
 *
 * A job with options.resume has a stage's text as somebody changed it: when the kernel of that number reaches the stage, the
 * text takes the place of the stage's program, and the pipeline goes on from it (resume.h).
 *
 * A job with options.by_hand goes through the pipeline with these changes (by_hand.h).  Names of stages in the changes mean the
 * pipeline before them; all other names and numbers of stages in the job mean the pipeline after them.
 *
 * A job with options.steps has the rewrites inside that stage, too, in the frame "steps" (driver/steps.h): those from number
 * steps_from on, counted from 0.
 *
 * A job with options.patterns tries these lines on the stages that they name; a line that is not found is an error.
 *
 * A job with options.upgrade compiles nothing: it has the frame "upgrade", with its files rewritten for the newest NKI.  It is for
 * "nkipy" only.
 *
 * A job with options.tune compiles one kernel many times, with knobs that it tries, until the seconds or the candidates are used
 * up or no knob makes the kernel faster.  It has frames "tune" instead of stages.  It is for "nkipy" only.
 *
 * A job with options.shrink compiles nothing: it has the frame "shrink", with smaller forms of the job, from a place in their order on.
 * Whoever sent it compiles them as jobs of their own.  It is for texts.
 *
 * The scope is a part of the key and has no other effect: a client that does not know the scope can neither name the
 * result nor find out that it exists.
 *
 * The version names the compiler that is to run the job, where several are installed (explorer/pool/versions.h).  It is for whoever
 * chooses one, so job_dump does not write it.
 */
#ifndef DRIVER_JOB_H
#define DRIVER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/target.h"

struct json_t; /* of jansson */
struct neff_opened;

enum { JOB_SHRINK_FROM_MAX = 1 << 30, JOB_STEPS_FROM_MAX = 1 << 30 };
enum { JOB_CONSTANTS = 256, JOB_CONSTANTS_MAX = 1 << 30 };
enum { JOB_TUNE_SECONDS_MAX = 600, JOB_TUNE_CANDIDATES_MAX = 2000, JOB_TUNE_SECONDS = 5, JOB_TUNE_CANDIDATES = 100 };
enum {
  JOB_SOURCE_MAX = 256 << 10, /* bytes of a source and its files together, which is also the tracer's limit */
  JOB_NEFF_MAX = 8 << 20,     /* bytes of a NEFF */
  JOB_RESUME_MAX = 512 << 10, /* bytes of a changed stage */
  JOB_JSON_MAX = 1 << 20,     /* bytes of a request: the longest source fits, with each byte as an escape of two */
  JOB_FILES_MAX = 64,
  JOB_FILE_NAME_MAX = 200,
  JOB_INPUTS_MAX = 256,
  JOB_WATCHES_MAX = 16,
  JOB_RANK_MAX = 16, /* dimensions of an input, as many as an HLO shape has */
  JOB_SCOPE_MIN = 16,
  JOB_SCOPE_MAX = 64,
  JOB_VERSION_MAX = 40,
  JOB_KEY_SIZE = 65, /* 64 hexadecimal digits and a NUL */
};

/* The shape and the type of one of the kernel's inputs. */
struct job_input {
  const char *name; /* NULL: the parameter at this index */
  enum dtype dtype;
  int rank;
  int64_t dims[JOB_RANK_MAX];
};

/* A Python file that the source may import. */
struct job_file {
  const char *name;
  const char *source; /* source_len bytes and a NUL */
  size_t source_len;
};

/* Elements start, start + step, … before stop of one dimension. */
struct job_slice {
  int64_t start, stop, step;
};

/* Asks for one value of one stage (driver/value.h). */
struct job_value {
  bool is_set;         /* the job asks for one */
  const char *stage;   /* its index in digits or its name, in the kernel's own pipeline (pipeline_stage) */
  int line;            /* of the stage's text, from 1; 0: the line that defines the name */
  const char *name;    /* as printed, "%12" or "%12#1"; NULL: what the operation on the line computes */
  const char *operand; /* of an instruction of NISA, "src"; NULL: what it writes */
  int64_t nth;         /* after this execution, from 1; 0: after the last */
  int n_slices;        /* of the first dimensions; 0: the first elements of all */
  struct job_slice slices[JOB_RANK_MAX + 1];
};

/* The text of a stage, as it was changed. */
struct job_resume {
  const char *stage; /* as in job_value; NULL: no stage was changed */
  const char *text;  /* len bytes and a NUL */
  size_t len;
  int kernel; /* the number of the kernel in the result */
};

/* Asks for values of an operand in the simulated run. */
struct job_watch {
  int line;         /* of the last stage's text, from 1; if it has no instruction there, or with file, of the source */
  const char *file; /* in Python, or the end of its path; NULL: the line may be the last stage's */
  const char *operand; /* NULL: what the instruction writes */
  int64_t nth;         /* after this execution, from 1; 0: after the last */
};

/* A run on a Neuron device beside the simulated one (driver/device_run.h). */
struct job_device {
  const char *library, *cores; /* as in neff/device.h; may be NULL */
  const void *neff;            /* what is executed; NULL: what the job's vendor makes */
  size_t neff_size;
  int repeats;              /* executions after the first, for the time */
  const char *profile_path; /* file for the profile of the first; NULL: none is wanted */
};

/* Compiles the kernel's HLO with the vendor's compiler (neff/vendor.h), before its stages. */
struct vendor_options;
struct job_vendor {
  const struct vendor_options *options;
  const char *neff_path, *nki_path; /* files for what is wanted; NULL: none */
  bool nki_is_stage;                /* the kernel as NKI is one more stage (vendor_stage.h) */
  void (*log)(void *user, const char *line);
  void *user;
};

struct job {
  const char *source; /* source_len bytes and a NUL */
  size_t source_len;
  bool is_binary; /* the source is not text */
  const char *filename;
  int n_files;
  const struct job_file *files;
  enum language language;
  enum target target;
  const char *kernel; /* NULL: all */
  int n_inputs;
  const struct job_input *inputs;
  const char *stop_after; /* a stage that exists; NULL: run everything */
  bool check, artifacts, simulate;
  bool for_device;   /* with simulate: also the files that a run on a device needs, and what is expected of it */
  bool is_reference; /* only the stages that the reference has */
  const char *const *by_hand; /* [n_by_hand]: changes of the pipeline (by_hand.h) */
  int n_by_hand;
  const char *patterns; /* patterns_len bytes and a NUL: what texts of stages should have (patterns.h); NULL: nothing */
  size_t patterns_len;
  const char *steps; /* as job_value.stage; NULL: no stage's steps are wanted */
  int steps_from;
  bool keep_rounds; /* of NKI kernels: loops stay unrolled */
  int constants;    /* those with more elements are shortened in the texts; 0: none is */
  struct job_tune {
    int seconds, candidates; /* the budget: 0 and 0 unless the job searches for knobs */
  } tune;
  struct job_shrink {
    bool is_set; /* nothing is compiled; smaller forms are proposed (driver/shrink.h) */
    int from;
  } shrink;
  bool upgrade;  /* nothing is compiled; the files are rewritten for the newest NKI */
  int instance;  /* of NKI kernels: the one that nki-trace shows alone; -1: all */
  int n_watches; /* only with simulate */
  const struct job_watch *watches;
  struct job_value value;
  struct job_resume resume;
  const char *scope;   /* NULL: none */
  const char *version; /* of the compiler: its name, or its pipeline's version; NULL: this one */

  /* Set by the program that runs the job, never read from JSON or written to it: */
  const struct neff_opened *package;     /* the source is its program, and it names inputs and outputs; NULL: none */
  const char *inputs_npz;                /* file with input values; only the terminal sets it */
  const char *outputs_npz;               /* file for the simulated outputs, likewise */
  const char *trace_path;                /* file for the simulated timeline, likewise */
  const struct job_vendor *vendor;       /* NULL: none; likewise */
  const struct job_device *device;       /* with simulate; NULL: none; likewise */
  int64_t memory_max;                    /* bytes of data of a simulated run; 0: the simulator's own limit */
  int shrink_seconds, shrink_candidates; /* the job is made smaller within these limits (shrink.h); 0: it is not */
  uint64_t seed;                         /* of pseudo-random input values */
  int64_t deadline_us;                   /* of clock_now_us; 0: none.  See stage_check.h */
  const char *key;                       /* of job_key, if it is known already; else NULL */
};

void job_init(struct job *j); /* the defaults above, with an empty source */

/* Parses and checks every field; unknown fields are refused by name.  On ST_INPUT and ST_LIMIT err names the field
 * ("options.stop_after: no stage is called \"foo\"").  All texts live in a. */
MUST_USE enum status job_parse(struct arena *a, const char *json, size_t len, struct job *out, struct error *err);
/* Does the same for JSON that was parsed already, with JSON_REJECT_DUPLICATES if it comes from outside. */
MUST_USE enum status job_read(struct arena *a, const struct json_t *root, struct job *out, struct error *err);

/* Returns NULL, or the error in the name of one of a job's files, as a text that follows the name. */
const char *job_file_name_fault(const char *name, size_t len);

/* Chooses the stages of NumPy, HLO and MLIR by name, one of PIPELINE_CHOICES; false if the name is another one. */
#define PIPELINE_CHOICES "default or reference"
bool job_choose_pipeline(struct job *j, const char *name);
/* Adds the changes of "CHANGE; CHANGE" to j->by_hand; what is wrong with one is in err. */
MUST_USE enum status job_choose_by_hand(struct arena *a, const char *text, struct job *j, struct error *err);
/* Returns NULL, or the stage that the job names and that the pipeline it has chosen lacks. */
const char *job_lacking_stage(const struct job *j);

/* Parses one input in the form of the command line: "x=128x256:f32", "scale=:f32" (0-d); without a dtype it is f32. */
MUST_USE enum status job_parse_input(struct arena *a, const char *text, struct job_input *out, struct error *err);

/* Parses a watch in the form of the command line: "12", "12:src", "12:dst@3", "kernel.py:12:dst@3". */
MUST_USE enum status job_parse_watch(struct arena *a, const char *text, struct job_watch *out, struct error *err);

/* Parses a value in the form of the command line: "%12", "%12#1", "line:7", "line:7:src" (an operand), "line:7:%12", each
 * with "@N" for the Nth execution.  The stage stays as it is. */
MUST_USE enum status job_parse_value(struct arena *a, const char *text, struct job_value *out, struct error *err);

/* Returns the request as one line of JSON that job_parse reads; equal jobs have equal texts.  On the heap, the
 * caller frees it; NULL when out of memory. */
char *job_dump(const struct job *j, size_t *len);
/* Do the same for the inputs alone, and for the files alone, as an array. */
char *job_dump_inputs(const struct job *j);
char *job_dump_files(const struct job *j);

/* Computes SHA-256 over a text of job_dump, which contains everything that determines the result, and the pipeline's
 * version. */
void job_key(const char *text, size_t len, char key[JOB_KEY_SIZE]);
/* The same with another pipeline's version, whose compiler is to run the job. */
void job_key_by(const char *text, size_t len, const char *version, char key[JOB_KEY_SIZE]);

/* True for what a compiler may be called: 1 to JOB_VERSION_MAX letters, digits, '-', '_' and '.'. */
bool job_is_version(const char *name);

#endif
