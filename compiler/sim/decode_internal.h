/* decode_internal: what the files of the decoder share. */
#ifndef SIM_DECODE_INTERNAL_H
#define SIM_DECODE_INTERNAL_H

#include "base/diag.h"
#include "base/index.h"
#include "nisa/streams.h"
#include "sim/program.h"

/* What an SSA value is: a scalar in a register, or a view of a buffer.  Which buffer that is may be known only at run
 * time: a branch may return one of several.  Its number is then in register `ref`. */
struct decoded {
  MlirValue value;
  int reg;            /* of a scalar; -1 for a memref */
  int buffer, ref;    /* of a memref; one of them is -1 */
  enum sim_type type; /* of a memref's elements */
  int rank;
  int64_t dims[NISA_RANK_MAX], steps[NISA_RANK_MAX]; /* steps in bytes */
  struct sim_linear start;
  struct sim_linear copy; /* as in sim_operand */
  int group;
};

struct decoder {
  MlirOperation module;
  struct arena *arena;
  struct diags *ds;
  struct {
    struct decoded *v;
    int n, cap;
  } values;
  struct index by_value;
  struct {
    struct sim_buffer *v;
    int n, cap;
  } buffers;
  struct {
    struct sim_instr *v;
    int n, cap;
  } instrs;
  struct {
    struct sim_node *v;
    int n, cap;
  } nodes;
  struct {
    int64_t *v;
    int n, cap;
  } regs;
  struct {
    MlirOperation *v;
    int n, cap;
  } streams; /* their regions; those of cores that have no streams */
  int core;  /* in whose region the decoder is; 0 outside */
  int iteration; /* the register that counts the executions of the body of the loop that is being decoded, -1 if none does */
};

/* Adds a diagnostic about op; returns ST_INPUT. */
enum status decode_refuse(struct decoder *d, MlirOperation op, const char *what);

int decode_register(struct decoder *d, int64_t initial);
/* The register of a scalar that has been decoded. */
int decode_scalar(const struct decoder *d, MlirValue v);
const struct decoded *decode_find(const struct decoder *d, MlirValue v);
struct decoded *decode_define(struct decoder *d, MlirValue v);

/* SIM_NONE for a type that no memory or register holds. */
enum sim_type decode_type(MlirType t, bool is_unsigned);
struct sim_linear decode_add(struct decoder *d, struct sim_linear x, int reg, int64_t factor);

/* Appends a node; returns its number. */
int decode_emit(struct decoder *d, struct sim_node n);
/* The operations of a block up to its terminator. */
enum status decode_block(struct decoder *d, MlirBlock block, int depth);

/* decode_stream.c: the programs of the function's streams, after its own code. */
enum status decode_streams(struct decoder *d, const struct sim_stream **out);
/* nisa.wait, dma_trigger, barrier or rotate. */
enum status decode_sync(struct decoder *d, MlirOperation op);

/* decode_access.c: an instruction, whose result, if it has one, is defined. */
enum status decode_instr(struct decoder *d, MlirOperation op);
/* decode_view.c: an operation of the memref dialect whose result is a view or a global. */
enum status decode_view(struct decoder *d, MlirOperation op);
/* A new buffer for a memref type, and the value that names all of it. */
enum status decode_buffer(struct decoder *d, MlirValue v, enum sim_buffer_kind kind, const struct src_loc *loc,
                          int *number);
/* decode_step.c: an operation of arith. */
enum status decode_step(struct decoder *d, MlirOperation op);

#endif
