/* sums: the loops of products that are added up become one nest.
 *
 *     %p = for … iter_args(%a = %empty) {               %q = for … iter_args(%a = %empty) {
 *       %start = copy of %a[…] to PSUM                    %start = copy of %a[…] to PSUM
 *       %s = for k … iter_args(%start) { matmul }         %s = for k … iter_args(%start) { matmul }
 *       insert_slice %s into %a[…] }              ==>     %t = for k … iter_args(%s) { matmul }
 *     %q = for … iter_args(%b = %p) {                     insert_slice %t into %a[…] }
 *       %start = copy of %b[…] to PSUM
 *       %t = for k … iter_args(%start) { matmul }
 *       insert_slice %t into %b[…] }
 */
#ifndef PASSES_TILED_SUMS_H
#define PASSES_TILED_SUMS_H

#include "passes/pass.h"

/* Merges the loops of every product that starts from the result of another one, which knob-driven-tiling leaves so only if both have
 * the same tiles and blocks.  Fails if their loops differ all the same, because a copy to PSUM would be overwritten. */
enum status sums_merge_loops(struct pass_run *run);

#endif
