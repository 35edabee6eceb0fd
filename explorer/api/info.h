/* info: answers with information about the service. */
#ifndef API_INFO_H
#define API_INFO_H

#include "http/http.h"

struct services;

/* Fills the answers that do not change: examples, pipeline, targets, rules.  Fails with ST_LIMIT, or with ST_IO if a file
 * cannot be read. */
MUST_USE enum status info_load(struct services *s, const char *examples_dir, struct error *err);
void info_clear(struct services *s);

enum MHD_Result api_pipeline(struct request *rq);
enum MHD_Result api_examples(struct request *rq);
enum MHD_Result api_targets(struct request *rq);
enum MHD_Result api_rules(struct request *rq);
enum MHD_Result api_openapi(struct request *rq);      /* documents.c */
enum MHD_Result api_ops(struct request *rq);          /* documents.c */
enum MHD_Result api_instructions(struct request *rq); /* cards.c */
enum MHD_Result api_nki(struct request *rq);          /* cards.c */
enum MHD_Result api_versions(struct request *rq);     /* versions.c */
enum MHD_Result api_health(struct request *rq);       /* health.c */

#endif
