/* told: what the servers of one site tell each other (store/peers.h), so that users see them as one. */
#ifndef API_TOLD_H
#define API_TOLD_H

#include "work/quota.h"

struct editor_place;
struct services;

/* This request is its editor's newest. */
void told_say_editor(const struct services *s, const struct editor_place *place);
/* The client at this address has used so much of a share. */
void told_say_used(const struct services *s, const char *address, enum quota_use what, int64_t n);
/* It has asked for a link that does not exist (misses.h). */
void told_say_miss(const struct services *s, const char *address);
/* It has so much open here; for quota_tell_others, with the struct services. */
void told_say_open(void *services, const char *address, const struct quota_open *open);
/* For peers_start. */
void told_tick(void *services);
/* A message of another server; for peers_start, with the struct services. */
void told_heard(void *services, const char *message);

#endif
