/* lessons: the lessons of this server, and the reading of a lesson of a user's own. */
#ifndef API_LESSONS_H
#define API_LESSONS_H

#include "http/http.h"

struct lessons;

/* Reads the folder lessons in the examples' folder; none if there is no such folder.  ST_INPUT if one is no lesson, ST_IO, ST_NOMEM
 * or ST_LIMIT; *out is NULL then. */
MUST_USE enum status lessons_load(const char *examples_dir, struct lessons **out, struct error *err);
void lessons_free(struct lessons *l); /* NULL is fine */

/* /api/v1/lessons: GET lists them, POST reads a lesson's text. */
enum MHD_Result api_lessons(struct request *rq);
enum MHD_Result api_lessons_read(struct request *rq);
/* GET /api/v1/lessons/NAME */
enum MHD_Result api_lesson(struct request *rq);

#endif
