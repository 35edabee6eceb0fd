/* runs_rows: what runs.c and runs_lease.c share: columns of rows of runs, and the files of a run. */
#ifndef STORE_RUNS_ROWS_H
#define STORE_RUNS_ROWS_H

#include "store/db.h"

struct ident_hash;
struct run_file;

/* Appends a column to *out.  False if it is no text, or memory is short. */
bool run_take_text(const struct db_value *v, struct buf *out);
/* Copies a column to out, cut to its size; "" if it is no text. */
void run_take_short(const struct db_value *v, char *out, size_t size);
/* For db_run: writes the first column to the int64_t at user; ST_IO if it is no integer. */
MUST_USE enum status run_take_int(void *user, const struct db_value *row, int n, struct error *err);
/* Adds a file to a run, or replaces that of the same name.  ST_LIMIT if it is larger than RUN_FILE_MAX. */
MUST_USE enum status run_put_file_row(struct db *db, const struct ident_hash *id, const struct run_file *f,
                                      struct error *err);
/* Ends the runs that runners have lost too often, and runs whose runner sent wrong data, once the time of a lease is over and no
 * other runner is connected: they would wait for nobody (runs_lease.c). */
MUST_USE enum status run_fail_lost(struct db *db, int64_t now, struct error *err);

#endif
