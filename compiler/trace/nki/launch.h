/* launch: recording the instances of a kernel. */
#ifndef TRACE_NKI_LAUNCH_H
#define TRACE_NKI_LAUNCH_H

#include "trace/nki/nki.h"

/* p is recorded between begin and end. */
void nki_record_begin(struct nki_recorder *r, struct nki_program *p, struct ranges *ranges, struct diags *ds);
void nki_record_end(struct nki_recorder *r);
/* Adds parameter `number`, an array, before the first instance.  False with an exception. */
bool nki_add_input(struct nki_recorder *r, const char *name, int number, enum dtype t, int rank, const int64_t *dims,
                   const struct src_loc *at);
/* The parameter as a tensor of the running instance, a new reference. */
PyObject *nki_input_object(struct nki_recorder *r, int number);

/* Reads (sizes of the axes, cores, the axis that is spread over them, step, schedule), which nkx.nki_grid.of returns; names are
 * kept in a.  False with an exception. */
bool nki_read_grid(PyObject *o, struct arena *a, struct nki_grid *out);
/* The same for kernel[grid] of a kernel of this generation; grid may be NULL. */
bool nki_launch_grid(PyObject *grid, int generation, struct arena *a, struct nki_grid *out);

/* Warns that one core runs all instances of a launch on two. */
void nki_warn_of_cores(const struct nki_program *p, struct diags *ds, const struct src_loc *at);

/* What a kernel returns to Python. */
enum nki_returned { NKI_RETURNED_NOTHING, NKI_RETURNED_TENSOR, NKI_RETURNED_SEQUENCE };

/* Calls the kernel once; a new reference, or NULL with an exception. */
typedef PyObject *nki_runner(void *user, struct nki_recorder *r);
/* Runs all instances of the program's grid.  The results are what the kernel returns; a parameter that it writes is one of
 * them.  If it returns nothing they are the parameters that it writes.  *returned: what the kernel itself returned.  False with an exception;
 * the program then has what was recorded before it. */
bool nki_record_instances(struct nki_recorder *r, nki_runner *run, void *user, enum nki_returned *returned);

#endif
