/* package: what the files of the extension _nkxc share. */
#ifndef PACKAGE_PACKAGE_H
#define PACKAGE_PACKAGE_H

#include "trace/python.h"

#include "ir/ir.h"

/* module.c: the MLIR context, set up at the first call; NULL with an exception. */
struct ir *package_ir(void);
/* Raises CompileError with the errors' messages and codes; returns NULL. */
void *package_raise(const struct diags *ds, const char *what);
/* Decodes the function `name` of the module for simulate and profile; a capsule, or NULL with an exception. */
PyObject *package_decode(MlirModule module, const char *name);

/* neff.c: NEFFs on the simulated machine and on devices. */
extern PyMethodDef package_neff_methods[];

#endif
