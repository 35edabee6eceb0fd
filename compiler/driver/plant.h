/* plant: a hook of tests, which change what a pass made, before it is verified, to see if the pass is named.
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
