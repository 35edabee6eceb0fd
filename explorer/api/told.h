/* told: what the servers of one site tell each other (store/peers.h), so that users see them as one. */
#ifndef API_TOLD_H
#define API_TOLD_H

struct editor_place;
struct services;

/* This request is its editor's newest. */
void told_say_editor(const struct services *s, const struct editor_place *place);
/* A message of another server; for peers_start, with the struct services. */
void told_heard(void *services, const char *message);

#endif
