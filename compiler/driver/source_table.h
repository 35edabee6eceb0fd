/* source_table: reads the "sources" frames of a job (frames.h), which define the numbers in its stages.
 *
 * The frames may come from a hostile process: a number that was never reported has no place, and a chain of callers
 * always ends.
 */
#ifndef DRIVER_SOURCE_TABLE_H
#define DRIVER_SOURCE_TABLE_H

#include <stdbool.h>

#include <jansson.h>

struct source_table {
  json_t *files, *places, *sources; /* arrays; NULL at first */
};

struct source_place {
  const char *file, *fn; /* borrowed from the table; fn "": not known */
  json_int_t line, col, end_line, end_col;
  json_int_t caller; /* number of a place, smaller than this one's; -1: none */
};

void source_table_clear(struct source_table *t);
/* Adds the contents of a "sources" frame. */
void source_table_add(struct source_table *t, const json_t *frame);
/* Returns the array of the numbers of a source's places; NULL if src is not the number of a source.  Borrowed. */
const json_t *source_table_list(const struct source_table *t, const json_t *src);
/* Returns false if there is no such place. */
bool source_table_place(const struct source_table *t, json_int_t number, struct source_place *out);

#endif
