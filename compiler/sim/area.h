/* area: the bytes of memory that an operand reads or writes, for asking whether two operands touch the same ones.
 *
 * An area is a set of rows, and a pattern of bytes that is the same in each of them.  On chip a row is a partition.  HBM
 * has one row.  Areas in different memories never meet.  Buffers that have a place lie in SBUF, in PSUM or in the scratch
 * space in HBM; each buffer without a place is a memory of its own, in which its copies follow each other.
 */
#ifndef SIM_AREA_H
#define SIM_AREA_H

#include "sim/program.h"

enum { SIM_AREA_DIMS = 4, SIM_ROW_WORDS = NISA_PARTITIONS / 64 };

struct sim_area {
  int memory;
  bool is_rough;                /* it has all bytes of the operand, and others */
  uint64_t rows[SIM_ROW_WORDS]; /* a bit each */
  int64_t from, to;             /* the bytes of the pattern are between them */
  int n;                        /* dimensions of the pattern, the one with the largest step first; 0: all bytes */
  struct sim_dim dim[SIM_AREA_DIMS];
  int64_t run; /* bytes at each position of the pattern, which begins at `from` */
};

/* SBUF and PSUM: of core 0; those of core 1 come after them. */
enum {
  SIM_MEMORY_SCRATCH,
  SIM_MEMORY_SBUF,
  SIM_MEMORY_PSUM,
  SIM_MEMORY_SBUF_1,
  SIM_MEMORY_PSUM_1,
  SIM_MEMORY_BUFFERS /* + number of the buffer */
};

/* The buffer of an operand that is an access, and its copy, as the registers say. */
int sim_area_buffer(const struct sim_operand *o, const int64_t *regs);
int64_t sim_area_copy(const struct sim_program *p, const struct sim_operand *o, const int64_t *regs);
/* The area of operand k of an instruction, an access.  If the data says which part is used, it is all that may be. */
void sim_area_of(const struct sim_program *p, const struct sim_instr *i, int k, const int64_t *regs,
                 struct sim_area *out);
/* The area of all copies of a buffer. */
void sim_area_of_buffer(const struct sim_program *p, int buffer, struct sim_area *out);

/* They have a byte in common. */
bool sim_area_meets(const struct sim_area *x, const struct sim_area *y);
/* The operand of x has all bytes of y.  It may be false although it has. */
bool sim_area_covers(const struct sim_area *x, const struct sim_area *y);

#endif
