/* sources: the places in the user's source that a job's results refer to, each reported once.
 *
 * A line of a stage names a source by its number.  A source is a list of places; a place is a range in a file, the
 * function that contains it, and the place of the call that led there.  Files, places and sources are numbered from 0 in
 * the order in which results first need them, through all kernels and stages of a job, so that the size of a result does
 * not grow with the number of lines that share a source.
 *
 * Numbers are assigned while a stage's frame is written; new entries are sent in a separate frame before it.
 */
#ifndef DRIVER_SOURCES_H
#define DRIVER_SOURCES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/index.h"
#include "base/src.h"

/* The sources of recent lookups, by the addresses of their places: many lines share them. */
enum { SOURCES_RECENT = 4096 };
struct sources_recent {
  struct src_locs locs;
  int number;
};

struct sources {
  struct arena *arena;
  struct {
    const char **v;
    int n, cap;
  } files;
  struct {
    struct sources_place *v;
    int n, cap;
  } places;
  struct index by_place;
  struct {
    struct sources_list *v;
    int n, cap;
  } lists;
  struct index by_list;
  struct sources_recent *recent;
  int files_sent, places_sent, lists_sent;
};

/* File 0 is main_file.  All memory is allocated in a. */
void sources_init(struct sources *s, struct arena *a, const char *main_file);
/* Returns the number of the source with these places, of which the first SRC_LOCS_SHOWN count; -1 if there are none. */
int sources_number(struct sources *s, struct src_locs locs);
/* True if something has not been reported in a frame yet. */
bool sources_has_news(const struct sources *s);
/* Appends a "sources" frame (frames.h) with everything that is new. */
void sources_put_frame(struct buf *b, struct sources *s);
/* Appends its members "files", "places" and "sources" to an open object that has a member. */
void sources_put_members(struct buf *b, struct sources *s);

#endif
