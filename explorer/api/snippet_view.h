/* snippet_view: what a stored link shows besides the page: its head, its text, and its files. */
#ifndef API_SNIPPET_VIEW_H
#define API_SNIPPET_VIEW_H

#include "api/snippet.h"

/* The functions that take a request and a database run on a store thread; they read the snippet of the request's state
 * and set its answer. */

/* Appends the link's title, as plain text: its own, or the kernel's name. */
void snippet_put_title(struct buf *out, const json_t *doc);
/* Appends what stands in the page's head in place of its title: the link's title, and a description for the previews
 * that other programs make of links (Open Graph). */
void snippet_put_head(struct buf *out, const json_t *doc);

void snippet_get_source(struct request *rq, struct db *db);  /* of several files the main one */
void snippet_get_stage(struct request *rq, struct db *db);   /* a stage's text: ?stage=N&kernel=K */
void snippet_get_plain(struct request *rq, struct db *db);   /* HTML without a script (snippet_plain.c) */
void snippet_get_offline(struct request *rq, struct db *db); /* one HTML file that needs no server */
void snippet_get_preview(struct request *rq,
                         struct db *db); /* the picture beside the link, a PNG (snippet_preview.c) */
void snippet_get_archive(struct request *rq, struct db *db); /* a gzipped tar of the result's files */

/* Reads the snippet and makes a work of its frames, which the caller releases; NULL if that fails, which s->st says, or
 * there is no such snippet. */
struct work *snippet_load_work(struct snippet_state *s, struct db *db);
/* Appends the answer of GET /api/v1/snippets/ID (snippet_get.c). */
MUST_USE enum status snippet_put(struct snippet_state *s, struct db *db, struct error *err);

#endif
