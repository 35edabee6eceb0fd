/* sessions: people together in one kernel (session/hub.h, store/sessions.h).
 *
 *     POST /api/v1/sessions                 {"name", "snapshot", "request", "view"?}: begins one; 201 {"id", "url", "person", "token"}
 *     GET  /api/v1/sessions/ID              its state, and the kernel as its leader last had it
 *     POST /api/v1/session/join/ID          {"name"}: 200 {"person", "token"}; with a token, whose it is
 *     GET  /api/v1/session/events/ID        the stream (session/reader.h), after the event that Last-Event-ID names
 *     POST /api/v1/session/updates/ID       {"updates": [base64, …]}: 200 {"seq"} once the store has them
 *     POST /api/v1/session/presence/ID      {…}: what a person looks at
 *     POST /api/v1/session/snapshot/ID      {"seq", "data", "request", "view"?}: a page has merged the updates up to seq: the leader's, or anyone's while the
 *                                          leader is away
 *     POST /api/v1/session/lead/ID          {"act", …}: hand over, take over, make read-only, end
 *     GET  /s/ID                            the page
 *
 * Whoever has the id may join; the token, in X-Nkx-Session-Token, says who it is.  Snapshots, updates and presences are made and
 * read by the participants' pages alone.  An update that was acknowledged survives kill -9 of the server.
 */
#ifndef API_SESSIONS_H
#define API_SESSIONS_H

#include "http/http.h"

/* Bytes of a body with a snapshot in base64 and a kernel. */
enum { SESSION_BODY_MAX = 4 << 20 };

enum MHD_Result api_session_post(struct request *rq);     /* sessions.c */
enum MHD_Result api_session_get(struct request *rq);      /* sessions.c */
enum MHD_Result api_session_page(struct request *rq);     /* sessions.c */
enum MHD_Result api_session_join(struct request *rq);     /* sessions_write.c */
enum MHD_Result api_session_updates(struct request *rq);  /* sessions_write.c */
enum MHD_Result api_session_presence(struct request *rq); /* sessions_write.c */
enum MHD_Result api_session_snapshot(struct request *rq); /* sessions_write.c */
enum MHD_Result api_session_lead(struct request *rq);     /* sessions_write.c */
enum MHD_Result api_session_events(struct request *rq);   /* sessions_stream.c */

#endif
