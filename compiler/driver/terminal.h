/* terminal: what the commands on kernels share (`nkx compile`, `nkx run`, …): the kernel's files, the options of a job, the way
 * from the options to the exit status, and diagnostics with a caret below the Python range. */
#ifndef DRIVER_TERMINAL_H
#define DRIVER_TERMINAL_H

#include "driver/job.h"

struct ir;

struct terminal {
  const char *command; /* "compile" */
  struct job job;
  struct arena *arena;
  bool is_color, is_language_given;
  struct job_input *inputs;
  int n_inputs, cap_inputs;
  struct {
    struct job_file *v;
    int n, cap;
  } files;
  struct error err;
};

/* All memory is allocated in a. */
void terminal_init(struct terminal *t, struct arena *a);

/* The options of a job, for getopt_long, and their part of a help text. */
#define TERMINAL_OPTIONS \
  {"file", required_argument, NULL, 'f'}, {"kernel", required_argument, NULL, 'k'}, \
      {"language", required_argument, NULL, 'l'}, {"target", required_argument, NULL, 't'}, \
      {"input", required_argument, NULL, 'i'}, {"inputs", required_argument, NULL, 'I'}, \
      {"pipeline", required_argument, NULL, 'P'}, {"unroll", no_argument, NULL, 'u'}, \
      {"constants", required_argument, NULL, 'Z'}, {"instance", required_argument, NULL, 'n'}, \
      {"resume", required_argument, NULL, 'E'}
#define TERMINAL_HELP_FILES \
  "  FILE.py…                   files that KERNEL imports; those in its own folder are found without this\n" \
  "  --file NAME=PATH           a file that KERNEL imports by another name: --file pkg/util.py=/tmp/new.py; " \
  "repeatable\n" \
  "  --kernel NAME              only this kernel of the file\n" \
  "  --pipeline NAME            default, or reference: only the stages that the reference has\n" \
  "  --pipeline CHANGES         \"without cse:2; after cse sccp; with canonicalize{max-iterations=1}\": leaves out a " \
  "stage's\n" \
  "                             pass, runs one more (--pipeline list prints them), gives one options; repeatable\n" \
  "  --unroll                   the loops of NKI kernels stay unrolled\n" \
  "  --constants N              constants of more elements are shortened in the texts (256); 0: none\n" \
  "  --instance N               nki-trace shows only this instance of a launch, from 0 on\n" \
  "  --resume STAGE=TEXT        the pipeline goes on from the text in this file, as if the stage had made it\n"
#define TERMINAL_HELP_INPUTS \
  "  --target trn1|trn2|trn3    the machine (trn2)\n" \
  "  --input NAME=SHAPE:DTYPE   the shape of a parameter of a plain function: --input x=128x256:f32; repeatable\n" \
  "  --inputs FILE.npz          the inputs by parameter name; they also give the shapes\n"

/* Takes option c with its value; ST_INPUT with a message in t->err for a wrong value, and for any other option. */
MUST_USE enum status terminal_option(struct terminal *t, int c, const char *value);
/* Reads the value of an option ("--seconds") that is a number from least to most. */
MUST_USE enum status terminal_read_int(struct terminal *t, const char *option, const char *text, int least, int most,
                                       int *out);
/* Reads a file, or standard input for "-", into the arena. */
MUST_USE enum status terminal_read_text(struct terminal *t, const char *path, const char **text, size_t *len);
/* Reads the patterns that texts of stages should have (patterns.h). */
MUST_USE enum status terminal_read_patterns(struct terminal *t, const char *path);
/* Reads the kernel, and the files after it. */
MUST_USE enum status terminal_read_sources(struct terminal *t, char **paths, int n);
/* Reads another kernel in place of the first, with the files that it imports from its own folder. */
MUST_USE enum status terminal_read_other(struct terminal *t, const char *path);
/* Adds the files that the kernel, whose name is a path, imports from its own folder.  Python must have been started. */
MUST_USE enum status terminal_find_files(struct terminal *t);
/* Starts Python and MLIR, and adds the files that the kernel imports from its own folder. */
MUST_USE enum status terminal_start(struct terminal *t, struct ir *ir);

/* Returns the escape sequence, or "" if standard error is not a terminal. */
const char *terminal_color(const struct terminal *t, const char *code);
/* Writes n bytes of a text to standard output: as it is to a file or another program, as utf8_print does to a terminal. */
void terminal_put_text(const char *text, size_t n);
struct json_t;
/* Prints the diagnostic of a frame to standard error. */
void terminal_show_diag(const struct terminal *t, const struct json_t *d);

/* Reports why the file or directory cannot be written; returns ST_INPUT if the user's path is the reason. */
enum status terminal_refuse_path(struct terminal *t, const char *path);
/* Writes a whole file, "-": to standard output.  A failure is described in t->err. */
MUST_USE enum status terminal_write(struct terminal *t, const char *path, const void *data, size_t len);

/* A command on kernels. */
struct terminal_command {
  const char *name; /* "compile" */
  /* Reads the options; getopt's optind is the first path then. */
  enum status (*parse)(void *command, int argc, char **argv);
  /* Reads the kernel and its files; NULL: terminal_read_sources does. */
  enum status (*read)(void *command, char **paths, int n);
  enum status (*run)(void *command);
};

/* Runs the command from its options on, prints its error, if there is one, and returns its exit status.  t is a part of what
 * `command` points to, and initialised. */
int terminal_main(struct terminal *t, const struct terminal_command *def, void *command, int argc, char **argv);

#endif
