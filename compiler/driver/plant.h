/* plant: a hook of tests, which change a program after a pass to see if the check names the pass.
 *
 * tests/mutation/plant.c defines the function; the products do not link it, and there it is NULL.
 */
#ifndef DRIVER_PLANT_H
#define DRIVER_PLANT_H

#include "hlo/hlo.h"
#include "ir/ir.h"

/* Changes the program that stage `index` made: the HLO module, or if that is NULL the MLIR module.  False if there is
 * nothing to change for this stage. */
__attribute__((weak)) bool plant_fault(int index, struct hlo_module *hlo, MlirModule module);

#endif
