/* sessions_internal: what the handlers of sessions share. */
#ifndef API_SESSIONS_INTERNAL_H
#define API_SESSIONS_INTERNAL_H

#include <jansson.h>

#include "api/part.h"
#include "api/services.h"
#include "session/hub.h"
#include "session/room.h"

enum session_step { STEP_NEW, STEP_READING, STEP_READY, STEP_WRITING, STEP_WRITTEN };

#define SESSION_TOKEN_HEADER "X-Nkx-Session-Token"

/* The state of one request about a session. */
struct session_state {
  enum session_step step;
  char id[IDENT_LEN + 1], token[IDENT_LEN + 1]; /* of what this request makes */
  struct ident_hash id_hash, token_hash;
  bool has_token, was_read_again;
  struct room *room; /* held; NULL: none yet */
  struct hub *hub;
  int person; /* whose token it is; 0: nobody's */
  json_t *body;
  struct buf bytes;   /* what the body has in base64 */
  struct buf request; /* {"request", "view"?} */
  char name[SESSION_NAME_MAX + 1];
  struct hub_write write;
  /* the outcome */
  enum status st;
  struct error err;
  bool found;
  struct buf answer;
};
struct session_state *session_state_new(struct request *rq); /* NULL: no memory */
static inline struct session_state *session_state_of(const struct request *rq) {
  return rq->state;
}

enum { SESSION_PERSON_NEEDED = 1, SESSION_PERSON_MAYBE = 0 };
/* Finds the room that the path names, and the person of the token.  False: the handler must return *answer. */
bool session_begin(struct request *rq, bool needs_person, enum MHD_Result *answer);
/* After the store was read: false if that failed or there is no such session, and *answer is set. */
bool session_has_read(struct request *rq, enum MHD_Result *answer);
/* Reads the body, an object, into state->body. */
bool session_read_body(struct request *rq, enum MHD_Result *answer);
/* Reads member "name" into state->name. */
bool session_read_name(struct request *rq, enum MHD_Result *answer);
/* Reads members "request" and "view" into state->request. */
bool session_read_request(struct request *rq, enum MHD_Result *answer);
/* Appends the bytes of a text in base64 to state->bytes; false if it is no such text, or there are more than max bytes. */
bool session_take_base64(struct session_state *s, const json_t *text, size_t max);

/* Makes state->write, whose act, number, text and pieces are set.  The handler is called again with STEP_WRITTEN. */
enum MHD_Result session_make(struct request *rq, enum session_act act);
/* True: the write failed or was refused, and *answer is set. */
bool session_failed(struct request *rq, enum MHD_Result *answer);
enum MHD_Result session_refuse(struct request *rq, enum room_refusal refusal);
enum MHD_Result session_bad_field(struct request *rq, const char *field, const char *message);
enum MHD_Result session_send(struct request *rq, unsigned status);

#endif
