/* compile_internal: what the files of one job's compilation share; compile.h is the interface.
 *
 *   compile.c           the job: its source, its kernels
 *   compile_frames.c    frames and artifacts
 *   compile_stages.c    one stage: the transformation, its verification, its check
 *   compile_simulate.c  the run of the last stage on the simulated machine
 *   compile_package.c   the simulation package
 *   compile_tensors.c   the inputs of a run on a device, and what is expected of it
 *   compile_value.c     one value of the last stage
 *   compile_resume.c    a stage's text that somebody changed
 *   steps.c             the rewrites inside a stage
 *   compile_inside.c    NKI kernels that HLO calls
 *   compile_patterns.c  lines that a stage's text should have
 *   compile_neff.c      a NEFF, which is described
 *   tune.c              knobs that make a kernel faster
 */
#ifndef DRIVER_COMPILE_INTERNAL_H
#define DRIVER_COMPILE_INTERNAL_H

#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/simulate.h"
#include "driver/stage.h"
#include "driver/stage_check.h"
#include "driver/vendor_stage.h"
#include "trace/nki/upgrade.h"

/* What a search for knobs learns from a compile (tune.c). */
struct tune_probe;

struct run {
  struct ir *ir;
  const struct job *job;
  frame_sink sink;
  void *user;
  struct arena *arena;
  struct sources sources;
  struct stage_told told; /* of the last stage that was sent */
  struct diags diags;
  int n_diags_sent;
  struct trace_kernel *traced; /* the kernel to compile; NULL: the job's source */
  MlirModule *last;            /* where the caller wants its last stage, or NULL */
  struct tune_probe *probe;    /* or NULL */
  struct patterns patterns;    /* of the job */
  bool has_failed;
  /* Memory that stages take turns with, unless something looks back further than one stage (compile_stages.c): for what
   * stages show, and for what passes need. */
  bool has_turns;
  struct arena shown[2], work[2];
  int shown_at; /* where the last stage is */
};

/* One kernel and the state of its compilation. */
struct path {
  struct run *run;
  int number;
  struct trace_kernel *kernel;
  const struct pipeline *pipeline;
  int first_stage, last_stage;   /* indices in it */
  int resume_stage;              /* the one whose text was changed; -1: none */
  const struct nki_program *nki; /* of an NKI kernel: the record, and then the program with loops */
  MlirModule module;             /* from the first stage on that is MLIR */
  bool is_nisa;                  /* the source is NISA */
  struct stage before;
  struct ir_prints prints; /* of the module that `before` shows */
  bool is_verified;        /* after a pass changed the module, all of it was verified */
  bool is_same;            /* the last pass changed nothing */
  struct stage_checks checks;
  /* With a check: the program before the current pass, in one of two forms. */
  MlirOperation old_module;
  struct buf old_proto;
  bool has_reproducer;
  const void *neff; /* what the vendor's compiler made; NULL: nothing */
  size_t neff_size;
  const char *vendor_nki; /* the kernel as NKI, as that compiler printed it, for a stage; NULL: none */
  size_t vendor_nki_len;
  int64_t vendor_nki_us;
  struct vendor_names vendor_names; /* of the HLO that it got */
  struct insides *insides;          /* calls of NKI kernels in HLO, or NULL */
  struct trail *trail;              /* of a job that asks for a value, or NULL */
};

enum { ARTIFACT_MAX = 8 << 20 }; /* bytes of one artifact */

/* ---- compile.c --------------------------------------------------------------------------------------------------- */

/* Traces and compiles kernel i of a program. */
enum status compile_kernel(struct run *r, struct trace_program *program, int i, int *n_sent);

/* ---- compile_frames.c -------------------------------------------------------------------------------------------- */

/* Sends the frame in b, and clears b. */
enum status compile_send(struct run *r, struct buf *b);
/* Sends the diagnostics that were not sent yet; those of no kernel have number -1. */
enum status compile_send_diags(struct run *r, int kernel);
enum status compile_send_stage(struct run *r, const struct stage *s, int kernel);
/* Sends and clears the frame of a stage, after one of the sources that it is the first to refer to. */
enum status compile_send_stage_frame(struct run *r, struct buf *stage, const char *name);
enum status compile_send_start(struct run *r);
enum status compile_send_kernel(struct path *p);
enum status compile_send_end(struct run *r, int64_t started_us);
/* files[n]: those of the job, rewritten. */
enum status compile_send_upgrade(struct run *r, int n, const struct nki_upgraded *files);
/* answer: JSON of the reducer. */
enum status compile_send_shrink(struct run *r, const char *answer);
/* data: the file's bytes. */
enum status compile_send_artifact(struct path *p, const char *name, const char *type, const struct buf *data);
/* what: a sentence for the user on what the file is; may be NULL. */
enum status compile_send_described_artifact(struct path *p, const char *name, const char *type, const char *what,
                                            const struct buf *data);
/* The kernel's HLO as text and proto. */
enum status compile_send_artifacts(struct path *p);

/* ---- compile_stages.c -------------------------------------------------------------------------------------------- */

/* Makes the inputs, and what the stages are compared with. */
void compile_begin_checks(struct path *p);
/* Reads the program of a stage into s: its operations and its text. */
enum status compile_read_stage(struct path *p, struct stage *s, struct error *err);
/* Runs stage `index` on p's program and sends it. */
enum status compile_stage(struct path *p, int index);
void compile_forget_old_program(struct path *p);
/* Decides whether the stages of a kernel take turns with memory. */
void compile_begin_turns(struct path *p);
/* Frees that memory at the end of the job. */
void compile_end_turns(struct run *r);

/* ---- compile_simulate.c ------------------------------------------------------------------------------------------ */

/* The request for p's last stage, without values of a reference. */
struct simulate_request compile_simulate_request(const struct path *p);

/* Runs the last stage on the simulated machine, if the job wants that and it can be done, and sends what came out. */
enum status compile_send_simulation(struct path *p);

/* ---- compile_vendor.c -------------------------------------------------------------------------------------------- */

/* Compiles the kernel's HLO with the vendor's compiler, for p->neff and the files of the job.  What fails is a diagnostic, which is
 * sent. */
enum status compile_with_vendor(struct path *p);
/* Sends p->vendor_nki, after the other stages. */
enum status compile_send_vendor_stage(struct path *p);
/* True if the vendor's compiler takes the kernel: it is HLO, and calls no NKI kernel. */
bool compile_is_for_vendor(const struct path *p);

/* ---- compile_device.c -------------------------------------------------------------------------------------------- */

/* Runs the job's NEFF on a Neuron device with the inputs of the simulation, compares, and sends what came out.  What fails is
 * a diagnostic. */
struct simulation;
enum status compile_send_device(struct path *p, const struct simulation *s);
/* What the simulator computed for output k, as the kernel's type: a pass may have narrowed it.  Rounding matters as much as for
 * the reference. */
struct trace_array compile_simulated_output(const struct simulation *s, int k, struct arena *a);

/* ---- compile_tensors.c ------------------------------------------------------------------------------------------- */

/* Sends the inputs of the simulated run and what a device should compute from them, as artifacts.  Where there can be no such
 * run, a warning says why. */
enum status compile_send_tensors(struct path *p, const struct simulation *s);

/* ---- compile_package.c ------------------------------------------------------------------------------------------- */

/* Sends the last stage as a package that the simulated machine runs: an artifact.  There is none for a kernel that was not
 * taken to the last stage. */
enum status compile_send_package(struct path *p);

/* ---- compile_neff.c ---------------------------------------------------------------------------------------------- */

/* Describes the job's source, a NEFF, in the frame "neff".  A file that is none is a diagnostic. */
enum status compile_neff(struct run *r);

/* ---- compile_resume.c -------------------------------------------------------------------------------------------- */

/* Sets p->resume_stage from the job.  ST_INPUT with a diagnostic if the kernel has no such stage, or its text is not read. */
enum status compile_find_resume(struct path *p);
/* Puts the job's text in the place of p's program, which is that of s, and reads s again.  ST_INPUT with diagnostics, whose places
 * are lines of the text; s is unchanged then. */
enum status compile_resume(struct path *p, struct stage *s);

/* ---- compile_inside.c -------------------------------------------------------------------------------------------- */

/* Records the NKI kernels that HLO calls, where the job's files have them.  What is missing is a note; a kernel that is refused is a
 * diagnostic, and its calls stay as they are. */
struct insides;
struct insides *compile_bind_native(struct path *p);
/* Lets the calls of p's module name p->insides' records. */
void compile_use_native(struct path *p);
/* True if one of them has this name and a source. */
bool compile_has_native(const struct insides *all, const char *name);
/* Compiles those kernels by themselves, as further kernels of the result: all, or that of the job's name. */
enum status compile_native(struct run *r, const struct insides *all, int *n_sent);

/* ---- compile_patterns.c ------------------------------------------------------------------------------------------ */

/* Reads the job's patterns; what is wrong with them is a diagnostic, and none are tried. */
void compile_read_patterns(struct run *r);
/* Tries the lines about stage s of p's kernel; a line that is not found is a diagnostic. */
void compile_try_patterns(struct path *p, struct stage *s);
/* Reports the lines about stages that no kernel has reached. */
void compile_end_patterns(struct run *r);

/* ---- tune.c ------------------------------------------------------------------------------------------------------ */

/* Searches, and sends frames "tune". */
enum status compile_tune(struct run *r);
/* A stage is done; the last stage of a kernel is done. */
void tune_probe_stage(struct tune_probe *probe, const struct stage *s);
enum status tune_probe_end(struct path *p);
/* Compiles a job whose frames nobody wants, with a probe.  compile.c */
enum status compile_probed(struct ir *ir, const struct job *job, struct tune_probe *probe);

/* ---- compile_value.c --------------------------------------------------------------------------------------------- */

/* Keeps what connects the stage that p->before is now with the trace. */
void compile_note_stage(struct path *p);
/* Sends the value that the job asks for; p->before is its stage. */
enum status compile_send_value(struct path *p);

#endif
